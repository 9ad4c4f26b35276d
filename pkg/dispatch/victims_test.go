package dispatch

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// The first victim in any lane, large or small, is the one that a look at all of them finds.
func TestFirstVictim(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, order := range []VictimOrder{NewestFirst, LeastCostFirst} {
		v := &victims{order: order}
		var held []*Lease
		for range 5000 {
			if len(held) > 0 && r.IntN(100) < 48 {
				i := r.IntN(len(held))
				v.remove(held[i])
				held = slices.Delete(held, i, i+1)
			} else {
				l := &Lease{held: stock.NewLease(3, stock.Tokens(r.Int64N(5)), false)}
				l.reservation = scheduling.Reserved(Endpoint(r.IntN(150)))
				v.addNewest(l)
				held = append(held, l)
			}
			if r.IntN(500) == 0 {
				v.reorder([]VictimOrder{NewestFirst, LeastCostFirst}[r.IntN(2)])
			}
			lane, ready := &laneNote{lane: fairqueue.Lane("x")}, r.IntN(101)
			for e := range Endpoint(150) {
				if r.IntN(100) < ready {
					lane.endpoints = append(lane.endpoints, e)
				}
			}
			var full EndpointSet
			for e := range Endpoint(150) {
				if r.IntN(3) == 0 {
					full.Add(e)
				}
			}
			var want *Lease
			for _, l := range held {
				if slices.Contains(lane.endpoints, l.Endpoint()) && !full.Has(l.Endpoint()) && (want == nil || v.before(l, want)) {
					want = l
				}
			}
			got := v.first(3, lane, func(e Endpoint) bool { return slices.Contains(lane.endpoints, e) && !full.Has(e) })
			if got != want {
				t.Fatalf("%+v, want %+v", got, want)
			}
		}
	}
}

// A victim that goes back into the queue, since it was not told yet, may preempt in turn: one of a lower tier, at another
// endpoint than the one it lost.
func TestAVictimPreemptsInTurn(t *testing.T) {
	b := newBench(t, []int{1, 1}, func(c *Config) { perBackend(c, 1, 1) })
	first, second := b.arrives(0, "a", "0", StageSent), b.arrives(0, "a", "1", StageSent)
	middle := b.arrives(1, "a", "", StageWaiting)
	b.complete(first)
	b.want(middle, StageGranted)
	b.complete(second)
	low := b.arrives(2, "a", "1", StageSent)
	high := b.arrives(0, "a", "0", StageSent)
	b.want(low, StageEnded)
	b.want(middle, StageGranted)
	if low.Outcome() != OutcomePreempted || middle.Lease().Endpoint() != 1 {
		t.Errorf("the low one ended as %v, and the middle one is at %d", low.Outcome(), middle.Lease().Endpoint())
	}
	b.complete(middle)
	b.complete(high)
	b.nothing("at the end")
}
