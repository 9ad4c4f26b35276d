package flowcontrol

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// The states of one flow are one for each tier and class in which it waits, for any number of lanes. If it only runs
// there, its state has no share.
func TestFlowsOf(t *testing.T) {
	inBubble(t, ready(2), func(c *Config) {
		perBackend(c, 1, 1)
		c.EnqueueAll = true
		c.Queue.Tiers, c.Tiers = []fairqueue.TierConfig{{Name: "high", QueueSize: -1, QueueTimeout: time.Hour, StarvationThreshold: time.Hour}, {Name: "low", QueueSize: -1, QueueTimeout: time.Hour, StarvationThreshold: time.Hour}}, make([]dispatch.TierConfig, 2)
		c.Queue.Classes = []fairqueue.ClassConfig{{Name: "small", Quantum: 1}, {Name: "large", Quantum: 3}}
	}, func(b *bench) {
		ask := func(flow string, tier int, class string, lane subset) *arrival {
			defer time.Sleep(time.Second)
			return b.arrives(b.t.Context(), &Request{Flow: flow, Tier: tier, Path: &fairqueue.Path{Class: class}, Placement: lane})
		}
		held := []*arrival{ask("a", 0, "small", pool), ask("c", 1, "large", pool)}
		ask("a", 1, "small", pool)
		ask("a", 1, "large", "0")
		ask("a", 1, "large", "1")
		ask("b", 1, "large", pool)
		ask("b", 0, "large", pool)
		all := b.Flows(100)
		for _, flow := range []string{"a", "b"} {
			var want []string
			for _, f := range all {
				if f.Flow == flow {
					want = append(want, fmt.Sprintf("%+v", f))
				}
			}
			if flow == "a" {
				want = append(want, fmt.Sprintf("%+v", FlowState{Flow: "a", Tier: "high", InFlight: 1}))
			}
			var got []string
			for _, f := range b.FlowsOf([]string{flow}) {
				got = append(got, fmt.Sprintf("%+v", f))
			}
			slices.Sort(got)
			slices.Sort(want)
			if len(want) < 2 || !slices.Equal(got, want) {
				t.Errorf("%s: got\n%v, want\n%v", flow, got, want)
			}
		}
		if got := b.FlowsOf([]string{"c", "nobody"}); len(got) != 1 || got[0].Flow != "c" || got[0].InFlight != 1 {
			t.Errorf("one that runs: %+v", got)
		}
		for _, a := range held {
			complete(a.lease)
		}
	})
}
