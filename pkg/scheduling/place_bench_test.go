package scheduling

import (
	"fmt"
	"testing"
)

// BenchmarkPlace100 is the budget of the critical section: at most 2 µs and no allocation for one pick among 100
// endpoints, release included.
func BenchmarkPlace100(b *testing.B) {
	cases := []struct {
		name string
		ask  Ask
		list bool
	}{
		{name: "whole-pool"},
		{name: "model", ask: Ask{Model: "llama"}, list: true},
		{name: "subset-of-100", ask: Ask{Subset: Subset{Set: true, Entries: addresses(100)}}},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			board, q := benchmarkBoard(b, c.ask, c.list)
			held := make([]EndpointID, 150)
			for i := range held {
				held[i] = board.Place(q, BelowUpper)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				board.Release(held[i])
				if held[i] = board.Place(q, BelowUpper); held[i] < 0 {
					b.Fatal("not placed")
				}
				if i++; i == len(held) {
					i = 0
				}
			}
		})
	}
}

// BenchmarkPrepare100 is what a request costs before the lock.
func BenchmarkPrepare100(b *testing.B) {
	cases := []struct {
		name string
		ask  Ask
		list bool
	}{
		{name: "whole-pool"},
		{name: "model", ask: Ask{Model: "llama"}, list: true},
		{name: "subset-of-3", ask: Ask{Subset: Subset{Set: true, Entries: addresses(3)}}},
		{name: "subset-of-100", ask: Ask{Subset: Subset{Set: true, Entries: addresses(100)}}},
	}
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			board, q := benchmarkBoard(b, c.ask, c.list)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := q.scheduler.Prepare(board.Snapshot(), c.ask); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchmarkBoard(b *testing.B, ask Ask, list bool) (*Board, *Query) {
	b.Helper()
	s, err := New(DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	endpoints := make([]Endpoint, 100)
	for i, address := range addresses(100) {
		endpoints[i] = Endpoint{ID: EndpointID(i), Address: address, Ready: true, LowerBound: 1_800_000, UpperBound: 2_200_000}
		if list {
			endpoints[i].Models = []string{"llama"}
		}
	}
	board := NewBoard(s, nil)
	board.SetSnapshot(NewSnapshot(1, endpoints))
	q, err := s.Prepare(board.Snapshot(), ask)
	if err != nil {
		b.Fatal(err)
	}
	return board, q
}

func addresses(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("10.0.%d.%d:8000", i/250, i%250+1)
	}
	return out
}
