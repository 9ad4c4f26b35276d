package dispatch

import (
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// unsized makes the only endpoint's band the configuration's.
func (b *bench) unsized() {
	b.event(func() { b.SetBackends(b.clock, []stock.Backend{{ID: 0}}, nil) })
}

// Between the bounds, a class whose clients always send the next request at once does not take the others' turns. With
// as many clients as slots, each of two classes with equal quanta gets half of the dispatches.
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
