package dispatch

import (
	"time"

	"github.com/weir-epp/weir/pkg/quota"
)

// metered has the fields of a request that its tenant's quota counts. The estimate is reserved at arrival, before any
// other decision about the request. A rejection or preemption refunds it; Used replaces it with the real usage; without
// Used the estimate stays.
type metered struct {
	tenant   string      `graph:"key"`
	limit    quota.Limit // at the arrival
	uses     int64
	hold     quota.Hold
	standing quota.Standing // fixed once it has a lease
	wait     time.Duration  // until the window has room, if it has none
}

// QuotaStanding is the rest of a tenant's quota; see quota.Standing.
type QuotaStanding = quota.Standing

// meter notes an arrival's data for its tenant's quota, if there is one.
func (m *Machine) meter(w *Waiter, a *Arrival) {
	limit := m.config.Quotas.Limit(a.Tenant, roleOf(w))
	if limit.None() {
		return
	}
	tenant := a.Tenant
	if m.users.on && m.config.Quotas.Tenants[tenant].None() { // the quota is a role's, and roles are users'
		tenant = string(m.appendUser(nil, tenant, a.Path))
	}
	uses := a.Uses
	if uses < 1 {
		uses = int64(w.queued.Cost)
	}
	w.rarely().metered = metered{tenant: tenant, limit: limit, uses: uses}
}

// withinQuota reserves an arrival's estimate in its tenant's quota, and reports whether there is room for it. It
// reserves once, even if the decision is repeated after a panic.
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

// refund returns the reservation of an unserved request, and the new standing; ok is false without a reservation.
func (m *Machine) refund(w *Waiter) (s QuotaStanding, ok bool) {
	r := w.rare
	if r == nil || !r.hold.Held() {
		return QuotaStanding{}, false
	}
	return m.quotas.Settle(m.now, &r.hold, 0, r.limit), true
}

// Used replaces the reservation of a request in flight, at its end, with the tokens of its prompt and its answer. Only
// the first call has an effect.
func (m *Machine) Used(now time.Time, l *Lease, tokens int64) {
	m.begin(now)
	if r := l.rare; r != nil && r.hold.Held() && l.held.Held() {
		m.quotas.Settle(m.now, &r.hold, tokens, r.limit)
	}
}

// Quota returns the standing of the request's tenant in its quota, as of the arrival or, after a rejection, of the
// refund; ok is false if no quota counts the request. A request with a lease keeps its own standing, so that its stream
// may read it during other events.
func (w *Waiter) Quota() (s QuotaStanding, ok bool) {
	if w.rare == nil {
		return QuotaStanding{}, false
	}
	return w.rare.standing, w.rare.standing.Limit > 0
}

// Metered reports whether a quota counts the request.
func (w *Waiter) Metered() bool { return w.rare != nil && w.rare.standing.Limit > 0 }
