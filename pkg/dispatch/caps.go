package dispatch

import (
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// limit is the most that a flow may hold, in requests and in tokens; 0 means no limit.
type limit struct {
	requests int
	tokens   stock.Tokens
}

func (l limit) none() bool { return l == limit{} }

// reached reports whether a flow that holds so much may not take another lease.
func (l limit) reached(requests int, tokens stock.Tokens) bool {
	return l.requests > 0 && requests >= l.requests || l.tokens > 0 && tokens >= l.tokens
}

// flowLimit returns the cap of each flow.
func (m *Machine) flowLimit() limit {
	return limit{m.config.MaxInFlightPerFlow, m.config.MaxTokensInFlightPerFlow}
}

// endpointLimit returns the cap of each flow at each endpoint.
func (m *Machine) endpointLimit() limit {
	return limit{m.config.MaxInFlightPerFlowPerBackend, m.config.MaxTokensInFlightPerFlowPerBackend}
}

// capped reports whether flows are capped at all. With Enabled false no request waits for a cap.
func (m *Machine) capped() bool {
	return m.config.Enabled && !(m.flowLimit().none() && m.endpointLimit().none())
}

// atCap reports whether the flow holds as much as it may in total.
func (m *Machine) atCap(a *flowAccount) bool { return m.flowLimit().reached(a.inflight, a.tokens) }

// fullFor returns the endpoints at which the flow holds as much as it may; nil if there are none.
func (m *Machine) fullFor(a *flowAccount) *EndpointSet {
	if m.endpointLimit().none() || a.byEndpoint.full.Len() == 0 {
		return nil
	}
	return &a.byEndpoint.full
}

// countLease counts l against its flow's cap at its endpoints. Leases taken before a reload introduced the cap do not
// count.
func (m *Machine) countLease(l *Lease) {
	if m.endpointLimit().none() {
		return
	}
	l.counted = true
	m.countAt(l, 1, l.held.Tokens())
}

func (m *Machine) uncountLease(l *Lease) {
	if !l.counted {
		return
	}
	l.counted = false
	m.countAt(l, -1, -l.held.Tokens())
}

// countAt changes what the flow of l holds at each of its endpoints.
func (m *Machine) countAt(l *Lease, requests int32, tokens stock.Tokens) {
	for _, e := range l.reservation.All() {
		l.waiter.flow.byEndpoint.change(e, requests, tokens, m.endpointLimit())
	}
	m.flows.listFull(l.waiter.flow)
}

// countTokens changes the tokens of l, which is held, in its flow's account.
func (m *Machine) countTokens(l *Lease, change stock.Tokens) {
	l.waiter.flow.tokens += change
	if l.counted {
		m.countAt(l, 0, change)
	}
	if change < 0 {
		m.touch(l.waiter.flow) // it may be below its cap again
	}
}

// recountLeases updates the accounts when the cap at an endpoint may have changed.
func (m *Machine) recountLeases() {
	for a := range m.flows.all() {
		a.byEndpoint.recount(m.endpointLimit())
		m.flows.listFull(a)
	}
}

// repark parks the flow's waiters exactly where its own caps prevent them from going.
func (m *Machine) repark(a *flowAccount) {
	if a.waiting == 0 {
		return
	}
	m.queue.UnparkFlow(a.tier, a.flow)
	if !m.capped() {
		return
	}
	var few [4]*fairqueue.Request
	for _, r := range m.queue.HeadsOf(a.tier, a.flow, few[:0]) {
		w := waiterOf(r)
		m.asking = w
		m.requestSearch(w)
		if m.cappedEverywhere(w) {
			m.park(w)
		}
		m.asking = nil
	}
}

// park parks the flow of w in its lane.
func (m *Machine) park(w *Waiter) {
	m.queue.ParkFlow(&w.queued)
	a := w.flow
	if !a.listed && !m.atCap(a) && m.placer.HasReady(w.placement, m.fullFor(a)) {
		// Elsewhere it is an endpoint's own limit that prevents it, so other flows' leases matter.
		a.listed = true
		m.parked = append(m.parked, a)
	}
}

// touchAt touches the flows that are parked because they are at their cap at some endpoints and the others of their
// lane had no room: there may be room at e.
func (m *Machine) touchAt(e Endpoint) {
	kept := m.parked[:0]
	for _, a := range m.parked {
		switch {
		case !a.listed: // its flow is gone
		case a.waiting == 0:
			a.listed = false
		default:
			kept = append(kept, a)
		}
	}
	clear(m.parked[len(kept):])
	m.parked = kept
	for _, a := range kept {
		if !m.fullFor(a).Has(e) {
			m.touch(a)
		}
	}
}

// cappedEverywhere reports whether the flow is at its cap wherever w could go, ignoring endpoints that have no room for any
// flow.
func (m *Machine) cappedEverywhere(w *Waiter) bool {
	if m.atCap(w.flow) {
		return true
	}
	full := m.fullFor(w.flow)
	if full == nil || !m.placer.Meets(w.placement, full) {
		return false
	}
	return !m.placer.HasRoom(w.placement, Unbounded, full)
}
