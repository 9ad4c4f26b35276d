package flowcontrol

import (
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// capped reports whether flows are capped at all. With Enabled false nobody waits for a cap.
func (c *RequestQueueController) capped() bool {
	return c.config.Enabled && (c.config.MaxInFlightPerFlow > 0 || c.config.MaxInFlightPerFlowPerBackend > 0)
}

// atCap says whether the flow has as many leases as it may have in total.
func (c *RequestQueueController) atCap(a *flowAccount) bool {
	return c.config.MaxInFlightPerFlow > 0 && a.inflight >= c.config.MaxInFlightPerFlow
}

// fullFor are the endpoints at which the flow has as many leases as it may have there. It is valid until the next call.
func (c *RequestQueueController) fullFor(a *flowAccount) []Endpoint {
	most := c.config.MaxInFlightPerFlowPerBackend
	if most == 0 {
		return nil
	}
	c.full = c.full[:0]
	for _, at := range a.at {
		if at.n >= most {
			c.full = append(c.full, at.endpoint)
		}
	}
	return c.full
}

// count counts l against its flow's cap at its endpoint. Leases from before a reload that capped them do not count.
func (c *RequestQueueController) count(l *Lease) {
	if c.config.MaxInFlightPerFlowPerBackend == 0 {
		return
	}
	l.counted = true
	for i := range l.flow.at {
		if l.flow.at[i].endpoint == l.endpoint {
			l.flow.at[i].n++
			return
		}
	}
	l.flow.at = append(l.flow.at, endpointCount{l.endpoint, 1})
}

func (c *RequestQueueController) uncount(l *Lease) {
	if !l.counted {
		return
	}
	l.counted = false
	at := l.flow.at
	for i := range at {
		if at[i].endpoint != l.endpoint {
			continue
		}
		if at[i].n--; at[i].n == 0 {
			at[i] = at[len(at)-1]
			l.flow.at = at[:len(at)-1]
		}
		return
	}
}

// repark parks the flow's waiters exactly where its own caps stand in their way. It is called when the flow's leases
// or waiters, the caps or the endpoints have changed.
func (c *RequestQueueController) repark(a *flowAccount) {
	if !c.capped() || a.waiting == 0 {
		return
	}
	c.queue.UnparkFlow(a.tier, a.flow)
	var few [4]*fairqueue.Request
	heads := c.queue.HeadsOf(a.tier, a.flow, few[:0])
	for _, r := range heads {
		l := r.Owner.(*Lease)
		c.hunts(l)
		c.asks(l, func() {
			if c.capsStop(l) {
				c.park(r, a)
			}
		})
	}
}

// park parks the flow of r, of account a, in its lane.
func (c *RequestQueueController) park(r *fairqueue.Request, a *flowAccount) {
	c.queue.ParkFlow(r)
	l := r.Owner.(*Lease)
	if !a.listed && !c.atCap(a) && c.placer.HasReady(l.placement, c.fullFor(a)) {
		// Somewhere it is an endpoint's own limit that stands in its way: others' leases matter.
		a.listed = true
		c.parked = append(c.parked, a)
	}
}

// reparkAt looks again at the flows that were parked because they are at their cap at some endpoints, when others of
// their lane took nobody: one lease at e is less.
func (c *RequestQueueController) reparkAt(e Endpoint) {
	kept := c.parked[:0]
	for _, a := range c.parked {
		switch {
		case !a.listed: // of a flow that is gone
		case a.waiting == 0:
			a.listed = false
		default:
			kept = append(kept, a)
		}
	}
	clear(c.parked[len(kept):])
	c.parked = kept
	for _, a := range kept {
		if !slices.Contains(c.fullFor(a), e) {
			c.repark(a)
		}
	}
}

// capsStop says whether the flow is at its cap wherever l could go; endpoints that take no more from anybody do not
// count.
func (c *RequestQueueController) capsStop(l *Lease) bool {
	if c.atCap(l.flow) {
		return true
	}
	full := c.fullFor(l.flow)
	if !slices.ContainsFunc(full, func(e Endpoint) bool { return c.placer.CanServe(l.placement, e) }) {
		return false
	}
	if e := c.placer.Place(l.placement, Unbounded, full); e != NoEndpoint {
		c.giveBack(e)
		return false
	}
	return true
}
