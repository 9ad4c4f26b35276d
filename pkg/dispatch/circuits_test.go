package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// A tenant whose requests fail everywhere, at once or after a while, opens no circuit, from its first request on. Apart
// from its requests' time at the engines it costs others at most 5 % of their answers.
func TestATenantThatFailsEverywhereCostsOthersLittle(t *testing.T) {
	const engines, slots, takes, length = 2, 8, 100 * time.Millisecond, 10 * time.Second
	for _, discipline := range []fairqueue.Discipline{fairqueue.WFQ, fairqueue.VTC, fairqueue.FairShare} {
		for _, bad := range []int{1, 4, 16} {
			for _, failsAfter := range []time.Duration{time.Millisecond, 5 * time.Millisecond, takes} {
				what := fmt.Sprintf("discipline %d, beside %d clients of it that fail after %v", discipline, bad, failsAfter)
				x := &contest{shared: newShared(t, engines, slots, func(cfg *Config) {
					cfg.Circuits, cfg.Queue.Discipline = true, discipline
				})}
				add := func(n int, takes time.Duration, status int, flow func() string) {
					for range n {
						x.clients = append(x.clients, &client{flow: flow, estimate: 1, costs: 1, takes: takes, status: status})
					}
				}
				for i := range 4 {
					add(engines*slots/4, takes, 200, func() string { return fmt.Sprint("good ", i) })
				}
				good := len(x.clients)
				add(bad, failsAfter, 500, func() string { return "bad" })
				x.each = func() {
					for _, e := range x.Engines(x.clock, nil) {
						if e.Circuit != stock.CircuitClosed {
							t.Fatalf("%s: the circuit of engine %d is %v", what, e.Endpoint, e.Circuit)
						}
					}
				}
				x.lasts(length)
				served, failed := 0, 0
				for i, k := range x.clients {
					if i < good {
						served += k.answers
					} else {
						failed += k.answers
					}
				}
				all := engines * slots * int(length/takes)
				if least := all*19/20 - failed*int(failsAfter)/int(takes); served < least {
					t.Errorf("%s: others have %d of %d answers, and %d fail; want %d at least", what, served, all, failed, least)
				}
			}
		}
	}
}
