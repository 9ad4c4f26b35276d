package flowcontrol

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// A flow that was idle for an hour returns with many requests: it is served within its share of the next (D+1) grants
// of each active flow, with D in flight, and has banked nothing. The same holds in a tier that shares by weight.
func TestAnHourIdle(t *testing.T) {
	const cost, slots = 100, 4
	for name, c := range map[string]struct {
		change func(c *Config)
		tier   int // of the idle flow
	}{
		"wfq": {func(c *Config) { c.Queue.Discipline = fairqueue.WFQ }, 0},
		"vtc": {func(*Config) {}, 0},
		"weighted tiers": {func(c *Config) {
			c.Queue.TierMode, c.Tiers = fairqueue.Weighted, nil
			c.Queue.Tiers = []fairqueue.TierConfig{
				{Name: "one", Weight: 2 * fairqueue.WeightOne, QueueSize: fairqueue.NoLimit},
				{Name: "two", Weight: fairqueue.WeightOne, QueueSize: fairqueue.NoLimit},
			}
			c.Tiers = make([]dispatch.TierConfig, 2)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, ready(1), func(cfg *Config) { inTokens(cfg); c.change(cfg) }, func(b *bench) {
				var mu sync.Mutex
				var order []string
				over := false
				var clients sync.WaitGroup
				serves := func(flow string, tier int) {
					for {
						l, err := b.TryEnqueue(b.t.Context(), &Request{Flow: flow, Tier: tier, Cost: cost, Placement: pool})
						if err != nil {
							b.t.Error(err)
							return
						}
						mu.Lock()
						stop := over
						order = append(order, flow)
						mu.Unlock()
						time.Sleep(time.Second)
						if l.OnRequestComplete(Completion{Status: 200, Cost: cost}); stop {
							return
						}
					}
				}
				idle, err := b.TryEnqueue(b.t.Context(), &Request{Flow: "idle", Tier: c.tier, Cost: cost, Placement: pool})
				if err != nil {
					b.t.Fatal(err)
				}
				idle.OnRequestComplete(Completion{Status: 200, Cost: 1})
				for range 8 {
					clients.Go(func() { serves("one", 0) })
					clients.Go(func() { serves("two", 0) })
				}
				time.Sleep(time.Hour + time.Millisecond)
				mu.Lock()
				order = nil
				mu.Unlock()
				for range 8 {
					clients.Go(func() { serves("idle", c.tier) })
				}
				time.Sleep(100 * time.Second)
				mu.Lock()
				over = true
				served := map[string]int{}
				for i, flow := range order {
					if served[flow]++; i == 3*(slots+1) && served["idle"] == 0 {
						b.t.Errorf("it is not among the first %d: %v", i, served)
					}
					if ahead := served["idle"] - min(served["one"], served["two"]); ahead > 2*(slots+1) {
						b.t.Errorf("after %d grants it is ahead by %d: %v", i+1, ahead, served)
					}
				}
				if all := len(order); served["idle"] < all*9/30 || served["idle"] > all*11/30 {
					b.t.Errorf("served %v, want a third each", served)
				}
				mu.Unlock()
				clients.Wait()
				synctest.Wait()
			})
		})
	}
}
