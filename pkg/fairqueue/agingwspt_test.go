package fairqueue

import (
	"math"
	"testing"
	"time"
)

// ln is the natural logarithm, to a millionth and one unit in the last place, and never decreases.
func TestLn(t *testing.T) {
	last := int64(-1)
	for _, n := range []uint64{1, 2, 3, 4, 5, 7, 8, 10, 99, 100, 1000, 65535, 65536, 65537, 1_000_000, 1<<30 - 1, 1 << 30, 1<<31 + 1} {
		got := ln(n)
		if want := math.Log(float64(n)) * (1 << agingBits); math.Abs(float64(got)-want) > 2 {
			t.Errorf("ln %d = %d, want %.1f", n, got, want)
		}
		if got < last {
			t.Errorf("ln %d = %d, less than before", n, got)
		}
		last = got
	}
}

// aged returns a queue with one class of order wspt that ages by a factor of e in this time.
func aged(t *testing.T, ageing time.Duration) *FairRequestQueue {
	t.Helper()
	return classes(t, Stay, ClassConfig{Name: "a", Quantum: 1000, Order: WSPT, Ageing: ageing})
}

// Section 8, point 2: a waiter of cost 1,000 beside arrivals of cost 10; each second one arrives and one goes. The
// arrivals within ln(100)·T after it overtake it, and later ones do not; without ageing all do.
func TestAgeingOfWSPT(t *testing.T) {
	for _, test := range []struct {
		ageing   time.Duration
		priority int
		cost     Cost
		want     int // arrivals that overtake it
	}{
		{10 * time.Second, 0, 10, 46}, // ln(1000/10)·10 = 46.05 s
		{20 * time.Second, 0, 10, 92},
		{10 * time.Second, 0, 100, 23}, // ln(10)·10 = 23.03 s
		{10 * time.Second, 9, 10, 23},  // as if it cost 100
		{10 * time.Second, 0, 1000, 0}, // equals go by arrival
		{10 * time.Second, 0, 2000, 0},
		{0, 0, 10, 200},
	} {
		q := aged(t, test.ageing)
		long := &Request{Path: &Path{Priority: test.priority}, Cost: 1000}
		if _, err := q.Push(start, long); err != nil {
			t.Fatal(err)
		}
		overtook := 0
		for i := range 200 {
			now := start.Add(time.Duration(i+1) * time.Second)
			if _, err := q.Push(now, &Request{Path: &Path{}, Cost: test.cost}); err != nil {
				t.Fatal(err)
			}
			c := q.Peek(now, Allowed{Tiers: AllTiers})
			q.Pop(c)
			if c.Request == long {
				break
			}
			overtook++
		}
		if overtook != test.want {
			t.Errorf("T %v, priority %d, arrivals of cost %d: %d overtake it, want %d", test.ageing, test.priority, test.cost, overtook, test.want)
		}
	}
}

// Strict priority goes before age, and requests that came before the queue's first one are older.
func TestAgeingAndStrictPriority(t *testing.T) {
	q := aged(t, time.Second)
	push := func(at time.Duration, cost Cost, strict int, owner string) {
		if _, err := q.Push(start.Add(at), &Request{Path: &Path{Strict: strict}, Cost: cost, Owner: owner}); err != nil {
			t.Fatal(err)
		}
	}
	push(0, 1, 0, "cheap")
	push(time.Hour, 1000, 1, "strict")
	push(-time.Hour, MaxCost, 0, "old")
	got := ""
	for r := popNext(q); r != nil; r = popNext(q) {
		got += r.Owner.(string) + " "
	}
	if got != "strict old cheap " {
		t.Errorf("got %s", got)
	}
}

// A reload that turns ageing on sorts the waiting requests.
func TestReloadOfAgeing(t *testing.T) {
	q := aged(t, 0)
	long := &Request{Path: &Path{}, Cost: 1000}
	for i, r := range []*Request{long, {Path: &Path{}, Cost: 10}} {
		if _, err := q.Push(start.Add(time.Duration(i)*time.Minute), r); err != nil {
			t.Fatal(err)
		}
	}
	if q.HeadIn(0, "") == long {
		t.Fatal("the long one is first without ageing")
	}
	cfg := q.config
	cfg.Classes = []ClassConfig{{Name: "a", Quantum: 1000, Order: WSPT, Ageing: time.Second}}
	reconfigure(t, q, cfg)
	if q.HeadIn(0, "") != long {
		t.Error("a minute is worth more than a factor of 100 with T of 1 s")
	}
}

// The scores of section 3 of parity/dynamo.md: (1 + priority)/cost, the largest first.
func TestScoresOfWSPT(t *testing.T) {
	q := classes(t, Stay, ClassConfig{Name: "a", Quantum: 1000, Order: WSPT})
	for _, p := range []struct{ raw, cached int64 }{{1024, 0}, {1024, 16}, {512, 512}, {1024, 960}} {
		mustPush(t, q, prompted("a", p.raw, p.cached))
	}
	for _, want := range []Cost{1, 64, 1008, 1024} { // 1/1, 1/64, 1/1008, 1/1024
		if r := popNext(q); r.Cost != want {
			t.Errorf("got 1/%d, want 1/%d", r.Cost, want)
		}
	}
	mustPush(t, q, prompted("a", 1024, 960))
	urgent := prompted("a", 1024, 16)
	urgent.Path.Priority = 15 // 16/1008 = 1/63
	mustPush(t, q, urgent)
	if popNext(q) != urgent {
		t.Error("1/64 goes before 16/1008")
	}
}
