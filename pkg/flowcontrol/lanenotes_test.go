package flowcontrol

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/pkg/stock"
)

// manyLanes is a controller over n endpoints of one slot, each with a lane of its own.
func manyLanes(t *testing.T, n int) *RequestQueueController {
	f := &lots{reserved: make([]int, n), lanes: map[string][]Endpoint{}}
	for e := range n {
		f.lanes[fmt.Sprint(e)] = []Endpoint{Endpoint(e)}
	}
	cfg := DefaultConfig()
	smg(1)(&cfg)
	cfg.Queue.Tiers[system].QueueSize, cfg.Queue.TotalCapacity, cfg.Queue.FlowCapacity = -1, 10_000, 10_000
	c, err := New(cfg, f, nothing)
	if err != nil {
		t.Fatal(err)
	}
	c.SetBackends(make([]stock.Backend, n), nil)
	return c
}

func (c *RequestQueueController) mustOffer(t *testing.T, tier int, lane string, want stage) *Lease {
	t.Helper()
	l := c.newLease(t.Context(), &Request{Flow: "f", Tier: tier, Placement: lot(lane)})
	if at, _ := c.offer(time.Now(), l, tier, false); at != want {
		t.Fatalf("lane %s: stage %d, want %d: %v", lane, at, want, l.err)
	}
	return l
}

// However many lanes there are in which somebody waits: each waiter goes when its own endpoint has room, or can be had by
// preemption, and nobody else does.
func TestEachOfManyLanesGoesWithItsEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		c := manyLanes(t, n)
		var held, waiters []*Lease
		for e := range n {
			held = append(held, c.mustOffer(t, system, fmt.Sprint(e), stageSent))
		}
		for e := range n {
			waiters = append(waiters, c.mustOffer(t, system, fmt.Sprint(e), stageWaiting))
		}
		for e := range n {
			before := c.State().Successes
			complete(held[e])
			if waiters[e].stage != stageGranted || c.State().Successes != before+1 {
				t.Fatalf("endpoint %d has room: its waiter is at stage %d, %d released", e, waiters[e].stage, c.State().Successes-before)
			}
			waiters[e].stage = stageSent
		}
		for e := range n { // and now for victims
			complete(waiters[e])
			held[e] = c.mustOffer(t, bulk, fmt.Sprint(e), stageSent)
			if held[e].OnFirstByte() != nil {
				t.Fatal("preempted")
			}
		}
		for e := range n {
			waiters[e] = c.mustOffer(t, system, fmt.Sprint(e), stageWaiting)
		}
		for e := range n {
			held[e].OnServed(Endpoint(e)) // nothing moves
			complete(held[e])
			if waiters[e].stage != stageGranted {
				t.Fatalf("endpoint %d: stage %d", e, waiters[e].stage)
			}
			waiters[e].stage = stageSent
			complete(waiters[e])
		}
	})
}

// What is remembered of lanes goes with their waiters: lanes have names that a gateway's subsets make, any number of them.
func TestLanesWithoutWaitersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := manyLanes(t, 1)
		f := c.placer.(*lots)
		held := c.mustOffer(t, system, "0", stageSent)
		for i := range 5000 {
			lane := fmt.Sprint("subset-", i)
			f.lanes[lane] = []Endpoint{0}
			waiter := c.mustOffer(t, system, lane, stageWaiting)
			c.mu.Lock()
			c.queue.Remove(&waiter.queued)
			c.leaves(waiter)
			c.arm(time.Now())
			c.unlock()
		}
		m := &c.memory
		if len(m.notes) > 2*fewNotes || len(m.at[0]) > 2*fewNotes || len(m.hunts[system]) > 2*fewNotes || len(m.wholes) != 0 {
			t.Errorf("%d notes, %d at the endpoint, %d hunts", len(m.notes), len(m.at[0]), len(m.hunts[system]))
		}
		complete(held)
	})
}
