package dispatch

import "math"

// A tenant has the cap of its role. If its requests come with several roles, the least of their caps counts, from the first
// request that it has here until it has none: no request opens places for those of a lesser role. Where tenants have users, a
// role is a user's, and so is its cap.

// cappedByRole reports whether any role has a cap.
func (m *Machine) cappedByRole() bool {
	for _, r := range m.config.Roles {
		if r.MaxInFlight > 0 {
			return true
		}
	}
	return false
}

// limitOf returns the cap of a tenant, or of a user.
func (m *Machine) limitOf(t *tenant) limit {
	l := m.flowLimit()
	if t.user != nil {
		l = m.userLimit()
	}
	if len(m.config.Roles) > 0 {
		if most := m.config.Roles[t.role].MaxInFlight; most > 0 {
			l.requests = most
		}
	}
	return l
}

// takeRole gives the tenant or the user of w, which has just been counted, its role.
func (m *Machine) takeRole(w *Waiter) {
	t, role := w.flow.tenant, roleOf(w)
	if u := userOf(w); u != nil {
		t = u.tenant
	}
	if t.waiting+t.inflight == 1 || m.mostOf(role) < m.mostOf(t.role) {
		t.role = role
	}
}

// mostOf returns the cap of a role in requests.
func (m *Machine) mostOf(role string) int {
	most, others := m.config.Roles[role].MaxInFlight, m.flowLimit().requests
	if m.users.on {
		others = m.userLimit().requests
	}
	switch {
	case most > 0:
		return most
	case others > 0:
		return others
	default:
		return math.MaxInt
	}
}

// roleOf returns the name of a request's role, or "".
func roleOf(w *Waiter) string {
	if w.queued.Path == nil {
		return ""
	}
	return w.queued.Path.Role
}
