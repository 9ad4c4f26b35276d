package extproc

import (
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/metering"
)

// grant is the controller's grant to a request: its lease and its destination. A request that was not offered has the
// zero value.
type grant struct {
	// placement is nil until the request is offered. From then on the controller has its flow and its tier.
	placement Placement
	// queued is when it began to wait in the queue; zero if it never waited.
	queued time.Time
	// charge is its charge in tokens; nil if it is charged otherwise (cost.go).
	charge *metering.Charge
	// affinity follows its prompt; nil if the engines with it cached are unknown.
	affinity Affinity
	// lease is nil until it is granted.
	lease Lease
	// quota is the rest of the tenant's quota; nil if none counts the request.
	quota *flowcontrol.QuotaStanding
	// preempted is nil if it cannot, or can no longer, be preempted.
	preempted <-chan struct{}
	// destination is the ordered list of its endpoints, and picked the first one; "" if it was not placed.
	destination, picked string
	// prefill is the address of the prefill engine that reads the prompt; "" if none does, or no longer.
	prefill string
	// sent is when the destination was sent; zero if it was not.
	sent time.Time
}

// take takes a lease and the destination chosen with it. A nil lease grants neither.
func (g *grant) take(l Lease) {
	if l == nil {
		return
	}
	g.lease, g.preempted, g.quota = l, l.Preempted(), l.Quota()
	address, fallbacks := g.placement.Chosen()
	_, g.prefill = g.placement.Prefill()
	g.picked, g.destination = address, address
	if address != "" && len(fallbacks) > 0 {
		g.destination += "," + strings.Join(fallbacks, ",")
	}
}

// waited returns the request's time in the queue, up to now or to its grant, and reports whether it bypassed the queue.
func (g *grant) waited() (wait time.Duration, bypass bool) {
	switch {
	case g.lease != nil:
		wait, queued := g.lease.Queued()
		return wait, !queued
	case !g.queued.IsZero():
		return time.Since(g.queued), false
	default:
		return 0, false
	}
}

// prefilled releases the prefill place, since the model server has begun to answer.
func (g *grant) prefilled() {
	if g.prefill != "" {
		g.prefill = ""
		g.lease.OnPrefilled()
	}
}

// firstByte ends preemption. The error means that the request was preempted just before.
func (g *grant) firstByte() error {
	g.prefilled()
	if g.lease != nil {
		if err := g.lease.OnFirstByte(); err != nil {
			return err
		}
	}
	g.preempted = nil
	return nil
}

// expects lowers the charge if the engine is expected to have some of the prompt cached.
func (g *grant) expects(cached int64) {
	if g.charge == nil || cached <= 0 {
		return
	}
	if cost, less := g.charge.Expect(cached); less {
		g.lease.OnExpected(fairqueue.Cost(cost))
	}
}

// outgrown raises the charge if more tokens of the answer were seen than charged.
func (g *grant) outgrown(seen int64) {
	if g.charge == nil || g.lease == nil {
		return
	}
	if cost, stock, raised := g.charge.Outgrown(seen); raised {
		g.lease.OnCost(fairqueue.Cost(cost), flowcontrol.Tokens(stock))
	}
}
