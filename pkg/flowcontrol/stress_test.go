package flowcontrol

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// Real goroutines race for grants, give up, complete twice and late, while the backends change: every request has
// one outcome, and the accounts are zero at the end.
func TestEveryRequestHasOneOutcomeUnderRace(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Queue.TotalCapacity, cfg.Queue.FlowCapacity, cfg.Queue.QueueTTL = 60, 20, 20*time.Millisecond
	cfg.Queue.Tiers = []fairqueue.TierConfig{{Name: "high", QueueSize: -1}, {Name: "low", QueueSize: 30}}
	cfg.Queue.CapacityMode = fairqueue.Shared
	cfg.Tiers = []TierConfig{{ReservedFloor: 1}, {}}
	cfg.EnqueueAll = true
	placer := ready(4)
	placer.upper = 2
	c, err := New(cfg, placer, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	c.SetBackends(make([]stock.Backend, 4), nil)

	var outcomes [NumOutcomes]atomic.Int64
	const workers, each = 32, 300
	var requests sync.WaitGroup
	for w := range workers {
		requests.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for range each {
				life, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(30)+1)*time.Millisecond)
				r := &Request{Flow: fmt.Sprint(random.IntN(5)), Tier: random.IntN(2), Placement: pool}
				if random.IntN(3) == 0 {
					r.Placement = subset(fmt.Sprint(random.IntN(4)))
				}
				l, err := c.TryEnqueue(life, r)
				outcomes[OutcomeOf(err)].Add(1)
				if err == nil {
					if random.IntN(4) > 0 {
						time.Sleep(time.Duration(random.IntN(500)) * time.Microsecond)
					}
					var twice sync.WaitGroup
					for range 2 {
						twice.Go(func() { l.OnRequestComplete(Completion{Status: 200}) })
					}
					twice.Wait()
				}
				cancel()
			}
		})
	}
	running.Go(func() {
		for ready := 1; ctx.Err() == nil; ready = ready%4 + 1 {
			c.SetBackends(make([]stock.Backend, ready), func() {
				for e := range placer.ready {
					placer.ready[e] = e < ready
				}
			})
			time.Sleep(time.Millisecond)
		}
	})
	requests.Wait()
	total := int64(0)
	for o := range outcomes {
		if n := outcomes[o].Load(); n > 0 {
			t.Logf("%v: %d", Outcome(o), n)
			total += n
		}
	}
	if total != workers*each {
		t.Errorf("%d outcomes for %d requests", total, workers*each)
	}
	stop()
	running.Wait()
	if s := c.State(); s.Stock != 0 || s.Queued != 0 || s.LiveFlows != 0 || placer.total() != 0 {
		t.Errorf("accounts are not zero at the end: %+v, reserved %d", s, placer.total())
	}
}
