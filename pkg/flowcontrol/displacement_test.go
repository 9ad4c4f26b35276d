package flowcontrol

import (
	"fmt"
	"slices"
	"testing"
)

// "1,000 quiet-tenant requests of the same tier as the flood, never more waiting than its fair share of the queue: none
// rejected, none displaced." The flood fills every free place.
func TestAQuietTenantInAFullQueueIsNeverRefused(t *testing.T) {
	const capacity, share = 40, 20
	crowded := func(c *Config) {
		smg(1)(c)
		c.Queue.TotalCapacity, c.Queue.FlowCapacity = capacity, capacity
		c.Queue.Tiers, c.Tiers = c.Queue.Tiers[bulk:], c.Tiers[bulk:]
	}
	inBubble(t, ready(1), crowded, func(b *bench) {
		tenant := func(flow string) *arrival { return b.arrives(b.t.Context(), one(flow)) }
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
