package scheduling

import (
	"fmt"
	"testing"
)

// BenchmarkPlace measures the board's part of the critical section: one pick, and a release elsewhere in the lane. The
// budget for a whole decision is 2 µs for 100 endpoints and 3 µs for 2,000, without allocations.
func BenchmarkPlace(b *testing.B) {
	for _, n := range []int{10, 100, 2000} {
		cases := []struct {
			name   string
			ask    Ask
			list   bool
			except int // percent
			full   bool
		}{
			{name: "whole-pool"},
			{name: "whole-pool/all-full-by-tokens", full: true},
			{name: "half-of-the-pool/all-full-by-tokens", ask: Ask{Model: "half"}, list: true, full: true},
			{name: "model", ask: Ask{Model: "llama"}, list: true},
			{name: "half-of-the-pool", ask: Ask{Model: "half"}, list: true},
			{name: "subset-of-all-but-one", ask: Ask{Subset: Subset{Set: true, Entries: addresses(n)[1:]}}},
			{name: "except=50%", except: 50},
			{name: "except=95%", except: 95},
			{name: "half-of-the-pool/except=50%", ask: Ask{Model: "half"}, list: true, except: 50},
		}
		for _, c := range cases {
			b.Run(fmt.Sprintf("%d/%s", n, c.name), func(b *testing.B) {
				board, q := benchmarkBoard(b, n, c.ask, c.list)
				held := make([]Reservation, 3*n/2)
				for i := range held {
					held[i] = board.Place(q, Unbounded, nil)
				}
				bound := Unbounded
				if c.full {
					bound = AnyReady
					for id := range n {
						board.SetTokenBounds(EndpointID(id), 10, 10)
						board.AddTokens(EndpointID(id), 10)
					}
				}
				var except *EndpointSet
				if c.except > 0 {
					except = &EndpointSet{}
					for id := range n {
						if id*7919%100 < c.except {
							except.Add(EndpointID(id))
						}
					}
				}
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					board.Release(&held[i])
					if held[i] = board.Place(q, bound, except); held[i].Empty() {
						b.Fatal("not placed")
					}
					if !board.HasRoom(q, bound, except) {
						b.Fatal("no room")
					}
					if i++; i == len(held) {
						i = 0
					}
				}
			})
		}
	}
}

// BenchmarkSetSnapshot measures a change of the pool under the lock.
func BenchmarkSetSnapshot(b *testing.B) {
	for _, n := range []int{100, 2000} {
		board, _ := benchmarkBoard(b, n, Ask{}, false)
		full := board.Snapshot()
		one := changed(full, func(e *Endpoint) { e.Ready = e.ID != 5 })
		var rest []Endpoint
		for i := range n - 1 {
			rest = append(rest, full.At(i))
		}
		for name, other := range map[string]*Snapshot{"one-changed": one, "one-gone": NewSnapshot(2, rest)} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					board.SetSnapshot(other)
					board.SetSnapshot(full)
				}
			})
		}
	}
}

// BenchmarkPrepare100 measures a request's cost before the lock.
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
			board, q := benchmarkBoard(b, 100, c.ask, c.list)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := q.scheduler.Prepare(board.Snapshot(), c.ask); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchmarkBoard(b *testing.B, n int, ask Ask, list bool) (*Board, *Query) {
	b.Helper()
	s, err := New(DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	endpoints := make([]Endpoint, n)
	for i, address := range addresses(n) {
		endpoints[i] = Endpoint{ID: EndpointID(i), Address: address, Ready: true}
		if list {
			endpoints[i].Models = []string{"llama", []string{"half", "other"}[i%2]}
		}
	}
	board := NewBoard(s, nil)
	setPool(board, 1, endpoints...)
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

// BenchmarkPlaceRated measures a pick for a prompt that 64 endpoints have more of cached than the others, and one for
// an uncached prompt: at most 5 µs for 2,000 endpoints.
func BenchmarkPlaceRated(b *testing.B) {
	for _, n := range []int{100, 2000} {
		rated, cold := &Ratings{Prompt: 10_000, Floor: 1000}, &Ratings{Prompt: 10_000}
		for i := range MaxAbove {
			rated.Above = append(rated.Above, Cached{ID: EndpointID(i * n / MaxAbove), Tokens: int64(2000 + 100*i)})
		}
		for i := range MaxNear {
			cold.Near = append(cold.Near, EndpointID(n-1-i))
		}
		for name, r := range map[string]*Ratings{"64-above": rated, "8-near": cold} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				board, q := benchmarkBoard(b, n, Ask{}, false)
				q.Rate(r)
				b.ReportAllocs()
				for b.Loop() {
					held := board.Place(q, Unbounded, nil)
					board.Release(&held)
				}
			})
		}
	}
}
