package extproc

import (
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/metering"
	"github.com/weir-epp/weir/pkg/request"
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

// flow returns the key of the request's flow, or "" while unknown.
func (g *grant) flow(q *request.Request) string {
	if g.placement != nil {
		return q.Flow
	}
	return q.KnownFlow()
}

// outcome returns the outcome of an ended request, as counted by the controller; rejection is nil unless it was
// rejected. It is called after the lease is settled.
func (g *grant) outcome(rejection *flowcontrol.Rejection) flowcontrol.Outcome {
	switch {
	case g.lease == nil && rejection != nil:
		return rejection.Outcome
	case g.lease == nil: // a panic before any outcome could be counted
		return flowcontrol.OutcomeInternal
	}
	select {
	case <-g.lease.Preempted():
		return flowcontrol.OutcomePreempted
	default:
	}
	if g.sent.IsZero() {
		return flowcontrol.OutcomeClientCancelled
	}
	return flowcontrol.OutcomeDispatched
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
