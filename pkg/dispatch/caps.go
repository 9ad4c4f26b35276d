package dispatch

import (
	"cmp"
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// limit is a cap on a tenant's holdings, in requests and in tokens; 0 means no limit.
type limit struct {
	requests int
	tokens   stock.Tokens
}

func (l limit) none() bool { return l == limit{} }

// reached reports whether a tenant with these holdings must not take another lease.
func (l limit) reached(requests int, tokens stock.Tokens) bool {
	return l.requests > 0 && requests >= l.requests || l.tokens > 0 && tokens >= l.tokens
}

// flowLimit returns the cap of each tenant whose role has none.
func (m *Machine) flowLimit() limit {
	l := limit{m.config.MaxInFlightPerFlow, m.config.MaxTokensInFlightPerFlow}
	if len(m.config.Levels) > 0 {
		l = limit{cmp.Or(m.config.Levels[0].MaxInFlight, l.requests), cmp.Or(m.config.Levels[0].MaxTokensInFlight, l.tokens)}
	}
	return l
}

// endpointLimit returns the cap of each tenant at each endpoint.
func (m *Machine) endpointLimit() limit {
	return limit{m.config.MaxInFlightPerFlowPerBackend, m.config.MaxTokensInFlightPerFlowPerBackend}
}

// deriveCaps derives the kinds of caps from the configuration. With Enabled false no request waits for a cap.
func (m *Machine) deriveCaps() {
	m.cappedAt = !m.endpointLimit().none()
	m.capped = m.config.Enabled && (m.cappedAt || !m.flowLimit().none() || !m.userLimit().none() || m.cappedByRole())
}

// atCap reports whether the tenant is at its total cap.
func (m *Machine) atCap(t *tenant) bool {
	return m.limitOf(t).reached(t.inflight+int(t.places), t.tokens)
}

// belowCapsAt reports whether the caps of w's tenant, and of its user, permit it at an endpoint.
func (m *Machine) belowCapsAt(w *Waiter, e Endpoint) bool {
	t := w.flow.tenant
	return !m.atCap(t) && !m.fullFor(t).Has(e) && !m.userAtCap(w)
}

// fullFor returns the endpoints at which the tenant is at its cap; nil if there are none.
func (m *Machine) fullFor(t *tenant) *EndpointSet {
	if !m.cappedAt || t.byEndpoint.full.Len() == 0 {
		return nil
	}
	return &t.byEndpoint.full
}

// countLease counts l against its tenant's cap at its endpoints. Leases taken before a reload introduced the cap do not
// count.
func (m *Machine) countLease(l *Lease) {
	if !m.cappedAt {
		return
	}
	l.counted = true
	m.countAt(l, 1, l.held.Tokens())
}

// uncountLease stops counting a counted lease.
func (m *Machine) uncountLease(l *Lease) {
	l.counted = false
	m.countAt(l, -1, -l.held.Tokens())
}

// countAt changes the holdings of l's tenant at each of l's endpoints.
func (m *Machine) countAt(l *Lease, requests int32, tokens stock.Tokens) {
	t := l.flow.tenant
	for _, e := range l.reservation.All() {
		t.byEndpoint.change(e, requests, tokens, m.endpointLimit())
	}
	m.flows.listFull(t)
}

// countTokens changes the tokens of the held lease l in its flow's account and its tenant's.
func (m *Machine) countTokens(l *Lease, change stock.Tokens) {
	l.flow.addTokens(change)
	if u := userOf(l.Waiter()); u != nil {
		u.addTokens(change)
	}
	if l.counted {
		m.countAt(l, 0, change)
	}
	if change != 0 {
		m.touchOf(l.Waiter()) // it may be below its cap again, or at it now
	}
}

// recountLeases updates the accounts when the cap at an endpoint may have changed.
func (m *Machine) recountLeases() {
	for _, t := range m.flows.known { // live or not: failures may hold slots
		t.byEndpoint.recount(m.endpointLimit())
		m.flows.listFull(t)
	}
}

// repark parks the tenant's waiters, of every tier, exactly where the tenant's caps block them.
func (m *Machine) repark(t *tenant) {
	if t.user != nil {
		m.reparkUser(t)
		return
	}
	for _, a := range t.flows {
		if a.waiting > 0 {
			m.queue.UnparkFlow(a.tier, t.key)
		}
	}
	if !m.capped {
		t.roused, t.rousing = t.roused[:0], t.rousing[:0]
	}
	if !m.capped || t.waiting == 0 {
		return
	}
	var few [4]*fairqueue.Request
	t.parked = false
	goes := false // some of its waiters could go
	for _, a := range t.flows {
		if a.waiting == 0 {
			continue
		}
		for _, r := range m.queue.HeadsOf(a.tier, t.key, few[:0]) {
			w := waiterOf(r)
			m.asking = w
			m.requestSearch(w)
			if m.cappedEverywhere(w) {
				m.park(w)
				t.parked = true
				m.requestSwap(t, a.tier)
			} else if !m.userAtCap(w) { // else all its waiters there are at the cap
				goes = true
			}
			m.asking = nil
		}
	}
	m.rouseNext(t, goes)
}

// park parks the flow of w in its lane.
func (m *Machine) park(w *Waiter) {
	t := w.flow.tenant
	// At other endpoints an endpoint's own limit blocks it, so other tenants' leases matter.
	awaits := !m.atCap(t) && m.placer.HasReady(w.placement, m.fullFor(t))
	m.queue.ParkFlow(&w.queued)
	if awaits {
		m.queue.AwaitRoom(&w.queued)
		m.lanes.heed(m.note(w))
	}
}

// A tenant at its cap at some endpoints may wait for room at other endpoints, which are full for every tenant. Many
// tenants may wait for one endpoint; when it has room, not all of them are visited. The first tenant of each tier and
// lane is roused, and rouses the next as soon as it has gone or changed. While it waits the others need no visit:
// wherever one of them could go, it could go too.

// rouseAt rouses the flows that await room at e.
func (m *Machine) rouseAt(e Endpoint) {
	if !m.cappedAt || len(m.lanes.notes) == 0 {
		return
	}
	m.lanes.heeding(e, func(n *laneNote) {
		m.awaiting = m.queue.Awaiting(n.lane, func(r *fairqueue.Request) bool {
			return m.belowCapsAt(waiterOf(r), e)
		}, m.awaiting[:0])
		for _, r := range m.awaiting {
			t := waiterOf(r).flow.tenant
			if !slices.Contains(t.rousing, e) {
				t.rousing = append(t.rousing, e)
				m.pending.touched = append(m.pending.touched, t)
			}
		}
		clear(m.awaiting)
	})
}

// rouseNext makes a tenant that has changed rouse the next tenants awaiting room at the endpoints for which it was
// roused, whether or not it has been visited since. goes means that some of its waiters could go now.
func (m *Machine) rouseNext(t *tenant, goes bool) {
	if t.changed {
		for _, told := range [...][]Endpoint{t.roused, t.rousing} { // as they are: it may be roused again
			for _, e := range told {
				m.rouseAt(e)
			}
		}
	}
	switch t.changed = false; {
	case !goes:
		t.roused = t.roused[:0]
	default:
		for _, e := range t.rousing {
			if !slices.Contains(t.roused, e) {
				t.roused = append(t.roused, e)
			}
		}
	}
	t.rousing = t.rousing[:0]
}

// cappedEverywhere reports whether the tenant is at its cap wherever w could go, ignoring endpoints that are full for
// every tenant.
func (m *Machine) cappedEverywhere(w *Waiter) bool {
	if m.atCap(w.flow.tenant) {
		return true
	}
	full := m.fullFor(w.flow.tenant)
	if full == nil || !m.placer.Meets(w.placement, full) {
		return false
	}
	return !m.placer.HasRoom(w.placement, Unbounded, full)
}

// touchFullIn touches the tenants at their cap at some endpoint that wait in one of the lanes, which are all concerned
// ones: the rest of the lane may be such endpoints. It visits the tenants waiting there, or all tenants at their cap,
// whichever are fewer.
func (m *Machine) touchFullIn(lanes []*laneNote) {
	waiting := 0
	for _, n := range lanes {
		waiting += m.queue.FlowsIn(n.lane)
	}
	if waiting > len(m.flows.full) {
		for _, t := range m.flows.full {
			if t.waiting > 0 && m.waitsInConcerned(t) {
				m.touch(t)
			}
		}
		return
	}
	for _, n := range lanes {
		m.heads = m.queue.HeadsIn(n.lane, renew(m.heads))
		for _, r := range m.heads {
			if t := waiterOf(r).flow.tenant; m.fullFor(t) != nil {
				m.touch(t)
			}
		}
	}
}

// waitsInConcerned reports whether a tenant waits in a lane that the present change concerns.
func (m *Machine) waitsInConcerned(t *tenant) bool {
	m.heads = renew(m.heads)
	for _, a := range t.flows {
		m.heads = m.queue.HeadsOf(a.tier, t.key, m.heads)
	}
	return slices.ContainsFunc(m.heads, func(r *fairqueue.Request) bool {
		n := m.lanes.notes[r.Lane]
		return n != nil && n.concerned
	})
}
