package fairqueue

import (
	"math/rand/v2"
	"testing"
	"time"
)

var start = time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)

// seedQueue is the seed's weighted fair queue to the letter: "virFinishTime(r) = max(frq.virtualTime,
// f.lastVirFinishTime) + requestSize", with requestSize/weight for requestSize, computed once at arrival. The least tag
// of the flows' heads goes first, and a flow keeps its last tag forever. The seed does not define ties.
type seedQueue struct {
	virtualTime uint64
	flows       map[string]*seedFlow
	tieBreak    TieBreak
}

type seedFlow struct {
	lastVirFinishTime uint64
	heads             []seedRequest
}

type seedRequest struct {
	arrival       int
	virFinishTime uint64
	newcomer      bool // found its flow empty
}

// before reports whether a goes before b, the head of another flow.
func (s *seedQueue) before(a, b seedRequest) bool {
	switch {
	case a.virFinishTime != b.virFinishTime:
		return a.virFinishTime < b.virFinishTime
	case s.tieBreak == NewcomerFirst && a.newcomer != b.newcomer:
		return a.newcomer
	default:
		return a.arrival < b.arrival
	}
}

func (s *seedQueue) push(flow string, arrival int, size uint64, weight uint64) {
	f := s.flows[flow]
	if f == nil {
		f = &seedFlow{}
		s.flows[flow] = f
	}
	// Fixed point: 20 binary digits, weights in millionths, rounded down to at least one unit.
	tag := max(s.virtualTime, f.lastVirFinishTime) + max(1, size*1_000_000<<20/weight)
	f.lastVirFinishTime = tag
	f.heads = append(f.heads, seedRequest{arrival, tag, len(f.heads) == 0})
}

func (s *seedQueue) pop() (arrival int, ok bool) {
	var best *seedFlow
	for _, f := range s.flows {
		if len(f.heads) > 0 && (best == nil || s.before(f.heads[0], best.heads[0])) {
			best = f
		}
	}
	if best == nil {
		return 0, false
	}
	head := best.heads[0]
	best.heads = best.heads[1:]
	s.virtualTime = max(s.virtualTime, head.virFinishTime)
	return head.arrival, true
}

// For any sequence of push and pop with fixed weights in one lane, tagging only heads gives the same order as tags
// computed at arrival. Small sizes and weights make ties likely.
func TestWFQEqualsSeedFormula(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		names := []string{"a", "b", "c", "d", "e", "f"}[:1+random.IntN(6)]
		sizes, pushes := 1+random.IntN(30), 1+random.IntN(9) // out of 10 operations
		weights := map[string]Weight{}
		for _, name := range names {
			switch random.IntN(3) {
			case 0:
				weights[name] = Weight(1+random.IntN(4)) * WeightOne
			case 1:
				weights[name] = MinWeight + Weight(random.Int64N(int64(8*WeightOne)))
			}
		}
		tieBreak := tieBreaks[seed/10%2]
		q := unlimited(t, weights, tieBreak)
		var audit audit
		seedsOwn := &seedQueue{flows: map[string]*seedFlow{}, tieBreak: tieBreak}
		arrivals := map[*Request]int{}
		for i := range 300 {
			if random.IntN(10) < pushes {
				name := names[random.IntN(len(names))]
				r := &Request{Flow: name, Cost: Cost(1 + random.IntN(sizes))}
				mustPush(t, q, r)
				arrivals[r] = i
				seedsOwn.push(name, i, uint64(r.Cost), uint64(q.config.weight(name)))
			} else {
				want, ok := seedsOwn.pop()
				got := popNext(q)
				if (got != nil) != ok || ok && arrivals[got] != want {
					t.Fatalf("sequence %d, step %d: popped %d, the seed's formula %d %t", seed, i, arrivals[got], want, ok)
				}
			}
			if seed%10 == 0 { // it walks everything
				audit.check(t, q)
			}
		}
	}
}

var tieBreaks = []TieBreak{ByArrival, NewcomerFirst}

// unlimited returns a queue of one tier without limits.
func unlimited(t testing.TB, weights map[string]Weight, tieBreak TieBreak) *FairRequestQueue {
	t.Helper()
	cfg := DefaultConfig()
	cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity, cfg.Weights = Shared, 1_000_000, 1_000_000, weights
	cfg.TieBreak = tieBreak
	return queue(t, cfg)
}

func queue(t testing.TB, cfg Config) *FairRequestQueue {
	t.Helper()
	q, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func mustPush(t testing.TB, q *FairRequestQueue, r *Request) {
	t.Helper()
	if displaced, err := q.Push(start, r); err != nil || displaced != nil {
		t.Fatalf("push: displaced %v, %v", displaced, err)
	}
}

func reconfigure(t testing.TB, q *FairRequestQueue, cfg Config) {
	t.Helper()
	if err := q.Reconfigure(cfg); err != nil {
		t.Fatal(err)
	}
}

// popNext pops the next request, with every tier allowed; nil if there is none.
func popNext(q *FairRequestQueue) *Request {
	c := q.Peek(start, Allowed{Tiers: AllTiers})
	if c.Request != nil {
		q.Pop(c)
	}
	return c.Request
}
