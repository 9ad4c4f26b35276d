package flowcontrol

import (
	"fmt"
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// The metrics have the service gap of the waiting flows and its bound, with disciplines vtc and fairshare only. The
// flows a, b and c, with weights 1, 1 and 2, always wait, and have got 30, 0 and 20.
func TestFairnessMetrics(t *testing.T) {
	for discipline, want := range map[fairqueue.Discipline]string{
		fairqueue.VTC: "map[default:30] map[default:true]", fairqueue.FairShare: "map[default:30] map[default:true]", fairqueue.WFQ: "map[] map[]",
	} {
		inBubble(t, ready(1), func(c *Config) {
			c.Stock.WatermarkPerBackend, c.Stock.LowerBoundPerBackend, c.Stock.UpperBoundPerBackend = 1, 1, 1
			c.Queue.Discipline, c.Queue.Weights = discipline, map[string]fairqueue.Weight{"c": 2 * fairqueue.WeightOne}
		}, func(b *bench) {
			running := b.arrives(b.t.Context(), one("running"))
			var waiting []*arrival
			for _, flow := range []string{"a", "a", "c", "c", "b", "b"} {
				r := one(flow)
				r.Cost = 10
				waiting = append(waiting, b.arrives(b.t.Context(), r))
			}
			complete(running.lease)
			order := map[fairqueue.Discipline][]int{
				fairqueue.VTC: {2, 0, 4}, fairqueue.FairShare: {0, 2, 4}, // the heavier one is first where newcomers pay in advance
			}[discipline]
			for i, n := range order {
				b.want(waiting[n], "dispatched")
				if i < 2 {
					waiting[n].lease.OnRequestComplete(Completion{Cost: map[int]fairqueue.Cost{0: 30, 2: 20}[n]})
				}
			}
			gaps, bounds := map[string]float64{}, map[string]bool{}
			for _, m := range b.scrape("weir_fairness_gap") {
				gaps[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
			for _, m := range b.scrape("weir_fairness_bound") {
				bounds[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue() >= 30
			}
			if got := fmt.Sprint(gaps, " ", bounds); got != want {
				t.Errorf("discipline %d: %s, want %s", discipline, got, want)
			}
			b.Drain()
			for _, a := range waiting {
				if a.lease != nil {
					complete(a.lease)
				}
			}
		})
	}
}
