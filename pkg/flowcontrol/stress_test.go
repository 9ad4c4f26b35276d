package flowcontrol

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	dto "github.com/prometheus/client_model/go"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Real goroutines race for grants, give up, preempt one another, are served elsewhere, complete twice and late, while
// the backends and the configuration change, and at last the controller drains: every request has one outcome, each
// kind of end occurs, and the accounts are zero at the end.
func TestEveryRequestHasOneOutcomeUnderRace(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Queue.TotalCapacity, cfg.Queue.FlowCapacity, cfg.Queue.QueueTTL = 60, 20, 5*time.Millisecond
	cfg.Queue.Tiers = []fairqueue.TierConfig{
		{Name: "high", QueueSize: -1}, {Name: "low", QueueSize: 30, StarvationThreshold: 5 * time.Millisecond},
	}
	cfg.Queue.CapacityMode = fairqueue.Shared
	cfg.Tiers = []dispatch.TierConfig{{ReservedFloor: 1, CanPreempt: true}, {}}
	cfg.EnqueueAll = true
	cfg.MaxInFlightPerFlow, cfg.MaxInFlightPerFlowPerBackend = 4, 2
	placer := ready(4)
	placer.upper = 2
	c, err := New(cfg, placer, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running, changes sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	c.SetBackends(numbered(4), nil, nil)

	var outcomes [NumOutcomes]atomic.Int64
	var elsewhere, spaced atomic.Int64
	one := func(random *rand.Rand) {
		life, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(30)+1)*time.Millisecond)
		defer cancel()
		r := &Request{Flow: fmt.Sprint(random.IntN(5)), Tier: random.IntN(2), Placement: pool}
		if random.IntN(3) == 0 {
			r.Placement = subset(fmt.Sprint(random.IntN(4)))
		}
		l, err := c.TryEnqueue(life, r)
		if err != nil {
			outcomes[OutcomeOf(err)].Add(1)
			time.Sleep(200 * time.Microsecond) // or there would be little else
			return
		}
		if random.IntN(4) > 0 {
			time.Sleep(time.Duration(random.IntN(500)) * time.Microsecond)
		}
		if random.IntN(3) == 0 {
			l.OnServed(Endpoint(random.IntN(4)), 200)
			elsewhere.Add(1)
		}
		byStream := error(nil)
		if random.IntN(2) == 0 {
			byStream = l.OnFirstByte()
		}
		var twice sync.WaitGroup
		for range 2 {
			twice.Go(func() { l.OnRequestComplete(Completion{Status: 200}) })
		}
		twice.Wait()
		preempted := false
		select {
		case <-l.Preempted():
			preempted = true
		default:
		}
		switch {
		case byStream == nil && !preempted:
			outcomes[OutcomeDispatched].Add(1)
		case preempted && (byStream == nil || errors.Is(byStream, ErrPreempted)):
			outcomes[OutcomePreempted].Add(1)
		default:
			t.Errorf("preempted %t, and its first byte is told %v", preempted, byStream)
		}
	}

	const workers, each = 32, 300
	var requests sync.WaitGroup
	for w := range workers {
		requests.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for range each {
				one(random)
			}
		})
	}
	busy, idle := context.WithCancel(ctx)
	changes.Go(func() {
		for ready := 1; busy.Err() == nil; ready = (ready + 1) % 5 {
			c.SetBackends(numbered(ready), nil, func() {
				for e := range placer.ready {
					placer.ready[e] = e < ready
				}
			})
			time.Sleep(time.Millisecond)
		}
	})
	changes.Go(func() {
		for turn := 0; busy.Err() == nil; turn++ {
			next := cfg
			switch turn % 6 {
			case 1:
				next.ReleaseSpacing = 200 * time.Microsecond
				spaced.Add(1)
			case 2:
				next.MaxInFlightPerFlow, next.MaxInFlightPerFlowPerBackend = 0, 0
			case 3:
				next.Enabled = false
			case 4:
				next.HoldWhenEmpty, next.VictimOrder = false, dispatch.LeastCostFirst
			case 5:
				next.EnqueueAll, next.Queue.PromotionBudget = false, 1_000_000
			}
			if err := c.Reconfigure(next, nil); err != nil {
				t.Error(err)
			}
			time.Sleep(3 * time.Millisecond)
		}
	})
	requests.Wait()
	idle()
	changes.Wait()
	if err := c.Reconfigure(cfg, nil); err != nil {
		t.Fatal(err)
	}
	var late atomic.Int64
	begun := make(chan struct{}) // closed when each of them has ended one on average
	for w := range workers {     // and now it drains while they come
		requests.Go(func() {
			random := rand.New(rand.NewPCG(2, uint64(w)))
			for n := 0; n < 50 || outcomes[OutcomeDraining].Load() == 0; n++ {
				one(random)
				if late.Add(1) == workers {
					close(begun)
				}
			}
		})
	}
	<-begun
	c.Drain()
	requests.Wait()

	total := int64(0)
	for o := range outcomes {
		if n := outcomes[o].Load(); n > 0 {
			t.Logf("%v: %d", Outcome(o), n)
			total += n
		}
	}
	if all := workers*each + late.Load(); total != all {
		t.Errorf("%d outcomes for %d requests", total, all)
	}
	for _, must := range []Outcome{
		OutcomeDispatched, OutcomePreempted, OutcomeNoEndpoint, OutcomeShed, OutcomeDraining,
	} {
		if outcomes[must].Load() == 0 {
			t.Errorf("nobody ended as %v", must)
		}
	}
	for o := range outcomes {
		var m dto.Metric
		if err := c.metrics.outcomes[o].Write(&m); err != nil || int64(m.GetCounter().GetValue()) != outcomes[o].Load() {
			t.Errorf("%v: %d were told so, counted %v %v", Outcome(o), outcomes[o].Load(), m.GetCounter().GetValue(), err)
		}
	}
	if elsewhere.Load() == 0 || spaced.Load() == 0 || c.State().Panics != 0 {
		t.Errorf("%d served elsewhere, %d times spaced, %d panics", elsewhere.Load(), spaced.Load(), c.State().Panics)
	}
	stop()
	running.Wait()
	if s := c.State(); s.Stock != 0 || s.Tokens != 0 || s.Queued != 0 || s.LiveFlows != 0 || s.PromotedHeld != 0 || placer.total() != 0 {
		t.Errorf("accounts are not zero at the end: %+v, reserved %d", s, placer.total())
	}
	if len(c.live) > 0 {
		t.Errorf("%d requests live at the end", len(c.live))
	}
}
