package dispatch

import (
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// unsized has the band of the one endpoint be the configuration's.
func (b *bench) unsized() {
	b.event(func() { b.SetBackends(b.clock, []stock.Backend{{ID: 0}}, nil) })
}

// Between the bounds a class whose clients always send the next request at once leaves the others their turns: with as
// many clients as there is room, each class of equal quanta gets half of the dispatches.
func TestNoClassStarvesBetweenTheBounds(t *testing.T) {
	b := newBench(t, []int{1}, func(c *Config) {
		inClasses(c)
		unstarved(c)
		perBackend(c, 18, 22)
		c.Queue.Classes[0].Quantum = c.Queue.Classes[1].Quantum
	})
	b.unsized()
	served := map[string]int{}
	classOf := map[*Waiter]string{}
	var live []*Waiter
	arrives := func(class string) {
		w := new(Waiter)
		a := Arrival{Flow: class, Tier: 1, Path: &fairqueue.Path{Class: class}, Placement: reach("")}
		b.event(func() { b.Arrive(b.clock, w, a) })
		classOf[w] = class
		live = append(live, w)
	}
	for range 22 {
		arrives("y")
	}
	for range 22 {
		arrives("x")
	}
	for range 1000 {
		for i, w := range live {
			if w.Lease() == nil {
				continue
			}
			live = append(live[:i:i], live[i+1:]...)
			b.complete(w)
			served[classOf[w]]++
			arrives(classOf[w])
			break
		}
	}
	if served["x"] < 450 || served["y"] < 450 {
		t.Errorf("of 1,000 requests %v were served, want half of each class", served)
	}
}

// With a budget of 0 nobody is promoted, however long he waits, and whether or not he would overtake anybody.
func TestNoBudgetNoPromotion(t *testing.T) {
	for budget, want := range map[int64]Stage{0: StageWaiting, 100_000: StageGranted} {
		b := newBench(t, []int{1}, func(c *Config) {
			threeTiers(c, budget)
			perBackend(c, 1, 2)
			c.Tiers = []TierConfig{{}, {}, {}}
		})
		b.unsized()
		holder, other := b.arrives(0, "a", "", StageSent), b.arrives(0, "a", "", StageSent)
		low := b.arrives(2, "b", "", StageWaiting)
		b.complete(other)
		b.want(low, StageWaiting) // between the bounds
		b.clock = b.clock.Add(10 * tick)
		b.event(func() { b.Advance(b.clock) })
		b.want(low, want)
		b.complete(holder)
	}
}
