package dispatch

import (
	"time"

	"github.com/weir-epp/weir/pkg/quota"
)

// metered is what a request has that its tenant's quota counts. The estimate is reserved at its arrival, before anything
// else is decided about it. The reservation ends as a refund if the request is rejected or preempted, and otherwise with
// what Used says; without that the estimate stays.
type metered struct {
	tenant   string
	limit    quota.Limit // at the arrival
	uses     int64
	hold     quota.Hold
	standing quota.Standing // fixed once it has a lease
	wait     time.Duration  // if the window has no room: until it has
}

// QuotaStanding is what is left of a tenant's quota; see quota.Standing.
type QuotaStanding = quota.Standing

// meter notes what a quota needs of an arrival, if its tenant has one.
func (m *Machine) meter(w *Waiter, a *Arrival) {
	limit := m.config.Quotas.Limit(a.Tenant, roleOf(w))
	if limit.None() {
		return
	}
	tenant := a.Tenant
	if m.users.on && m.config.Quotas.Tenants[tenant].None() { // it is a role's, which is a user's
		tenant = string(m.appendUser(nil, tenant, a.Path))
	}
	uses := a.Uses
	if uses < 1 {
		uses = int64(w.queued.Cost)
	}
	w.rarely().metered = metered{tenant: tenant, limit: limit, uses: uses}
}

// withinQuota reserves what an arrival is estimated to use of its tenant's quota, and reports whether there is room for it.
// It does so once, even if the decision is made again after a panic.
func (m *Machine) withinQuota(w *Waiter) bool { return w.rare == nil || m.reservesQuota(w) }

// reservesQuota is withinQuota for a request that may have a limit.
func (m *Machine) reservesQuota(w *Waiter) bool {
	if w.rare.limit.None() || w.rare.hold.Held() {
		return true
	}
	r := &w.rare.metered
	r.standing, r.wait = m.quotas.Reserve(m.now, r.tenant, r.limit, r.uses, &r.hold)
	return r.wait == 0
}

// refund gives back what a request has reserved that is not served, and returns the standing after that; ok is false if it
// has reserved nothing.
func (m *Machine) refund(w *Waiter) (s QuotaStanding, ok bool) {
	r := w.rare
	if r == nil || !r.hold.Held() {
		return QuotaStanding{}, false
	}
	return m.quotas.Settle(m.now, &r.hold, 0, r.limit), true
}

// Used says how many tokens a request in flight has used, of its prompt and its answer, at its end. Only the first call
// has an effect.
func (m *Machine) Used(now time.Time, l *Lease, tokens int64) {
	m.begin(now)
	if r := l.rare; r != nil && r.hold.Held() && l.held.Held() {
		m.quotas.Settle(m.now, &r.hold, tokens, r.limit)
	}
}

// Quota returns the standing of the request's tenant in its quota, as of the arrival or, after a rejection, of the refund;
// ok is false if no quota counts the request. A request that has a lease keeps its own, so that its stream may ask for it
// while other events happen.
func (w *Waiter) Quota() (s QuotaStanding, ok bool) {
	if w.rare == nil {
		return QuotaStanding{}, false
	}
	return w.rare.standing, w.rare.standing.Limit > 0
}

// Metered reports whether a quota counts the request.
func (w *Waiter) Metered() bool { return w.rare != nil && w.rare.standing.Limit > 0 }
