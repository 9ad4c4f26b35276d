package flowcontrol

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// A queue that is full of one tenant's work, with one slot behind it.

// crowded is a shared queue that a single flow may fill.
func crowded(capacity int) func(*Config) {
	return func(c *Config) {
		smg(1)(c)
		c.Queue.TotalCapacity, c.Queue.FlowCapacity = capacity, capacity
		c.Queue.Tiers = []fairqueue.TierConfig{{Name: "critical", QueueSize: -1}, {Name: "sheddable", QueueSize: -1}}
		c.Tiers = make([]TierConfig, 2)
	}
}

const critical, sheddable = 0, 1

// "With a full shared queue of sheddable work of one tenant (flowCapacity = totalCapacity): a critical request of
// another enters and displaces." The displaced one gets its own answer at once.
func TestACriticalRequestEntersAFullQueue(t *testing.T) {
	for _, guaranteed := range []bool{false, true} {
		change := func(c *Config) { crowded(100)(c); c.Queue.GuaranteedTop = guaranteed }
		inBubble(t, ready(1), change, func(b *bench) {
			holder := b.arrives(b.t.Context(), &Request{Flow: "noisy", Tier: sheddable, Placement: pool})
			var noisy []*arrival
			for range 100 {
				noisy = append(noisy, b.arrives(b.t.Context(), &Request{Flow: "noisy", Tier: sheddable, Placement: pool}))
			}
			b.want(b.arrives(b.t.Context(), &Request{Flow: "noisy", Tier: sheddable, Placement: pool}), "flow-full")
			time.Sleep(time.Second)
			urgent := b.arrives(b.t.Context(), &Request{Flow: "other", Tier: critical, Placement: pool})
			b.want(urgent, "waits")
			newest := noisy[99]
			b.want(newest, "displaced")
			var r *Rejection
			if !errors.As(newest.err, &r) || r.RetryAfter < time.Second || !newest.at.Equal(time.Now()) {
				b.t.Errorf("%+v at %v: want an answer at once that says when to come back", r, newest.at)
			}
			for i, a := range noisy[:99] {
				if o := a.outcome(); o != "waits" {
					b.t.Fatalf("number %d of the noisy tenant: %s", i, o)
				}
			}
			complete(holder.lease)
			b.want(urgent, "dispatched")
			b.Drain()
			complete(urgent.lease)
		})
	}
}

// "1,000 quiet-tenant requests of the same tier as the flood, never more waiting than its fair share of the queue: none
// rejected, none displaced." The flood fills whatever place is free.
func TestAQuietTenantInAFullQueueIsNeverRefused(t *testing.T) {
	const capacity, share = 40, 20
	inBubble(t, ready(1), crowded(capacity), func(b *bench) {
		tenant := func(flow string) *arrival {
			return b.arrives(b.t.Context(), &Request{Flow: flow, Tier: sheddable, Placement: pool})
		}
		serving := tenant("noisy")
		var quiet, noisy []*arrival
		noisyEnds := map[string]int{}
		for range capacity {
			noisy = append(noisy, tenant("noisy"))
		}
		for sent := 0; sent < 1000 || len(quiet) > 0; {
			for sent < 1000 && len(quiet) < share {
				quiet = append(quiet, tenant("quiet"))
				sent++
			}
			noisy = append(noisy, tenant("noisy"))
			if n := b.State().Queued; n != capacity {
				b.t.Fatalf("%d of %d wait: the queue is not full", n, capacity)
			}
			complete(serving.lease)
			quiet = slices.DeleteFunc(quiet, func(a *arrival) bool {
				switch o := a.outcome(); o {
				case "waits":
					return false
				case "dispatched":
					serving = a
				default:
					b.t.Fatalf("a quiet request ended with %s", o)
				}
				return true
			})
			noisy = slices.DeleteFunc(noisy, func(a *arrival) bool {
				o := a.outcome()
				if o == "dispatched" {
					serving = a
				}
				noisyEnds[o]++
				return o != "waits"
			})
		}
		if noisyEnds["displaced"] == 0 || noisyEnds["queue-full"]+noisyEnds["flow-full"] == 0 {
			b.t.Errorf("the flood was not one: %s", fmt.Sprint(noisyEnds))
		}
		b.Drain()
		complete(serving.lease)
	})
}
