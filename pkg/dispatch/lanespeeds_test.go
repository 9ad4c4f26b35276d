package dispatch

import (
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Two tenants wait for one engine. If one of them, or a third tenant, uses any number of other engines without other
// waiters, that does not change the shares of the two.
func TestEnginesThatNobodyElseWaitsFor(t *testing.T) {
	for _, discipline := range []fairqueue.Discipline{fairqueue.WFQ, fairqueue.VTC, fairqueue.FairShare} {
		for _, elsewhere := range []string{"f", "third"} {
			for _, others := range []int{1, 4, 12} {
				x := &contest{shared: newShared(t, 1+others, 4, func(cfg *Config) {
					cfg.Queue.Discipline, cfg.Queue.TotalCapacity, cfg.Queue.FlowCapacity = discipline, 10_000, 10_000
				})}
				add := func(flow string, n int, takes time.Duration, lane ...int) {
					for range n {
						x.clients = append(x.clients, &client{
							flow: func() string { return flow }, estimate: 1, costs: 1, takes: takes, lane: lane,
						})
					}
				}
				add("f", 12, 100*time.Millisecond, 0)
				add("g", 12, 100*time.Millisecond, 0)
				var rest []int
				for e := range others {
					rest = append(rest, 1+e)
				}
				add(elsewhere, 6*others, 10*time.Millisecond, rest...)
				x.lasts(12 * time.Second)
				f, g := 0, 0
				for i := range 12 {
					f, g = f+x.clients[i].answers, g+x.clients[12+i].answers
				}
				if ratio := float64(f) / float64(g); ratio < 0.95 || ratio > 1.05 || f+g < 12*40*9/10 {
					t.Errorf("discipline %d, %d other engines of %s: f has %d answers and g %d", discipline, others, elsewhere, f, g)
				}
			}
		}
	}
}
