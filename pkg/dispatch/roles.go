package dispatch

import (
	"math"
	"slices"
)

// A tenant has the cap of its role. If its requests have several roles, the lowest of their caps applies as long as the
// tenant has any request here, so a request never makes room for requests of a lesser role. Where tenants have users,
// roles and their caps are users'. All roles are remembered, since a reload may change the lowest.

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

// takeRole gives the tenant or the user of the newly counted w its role.
func (m *Machine) takeRole(w *Waiter) {
	t, role := w.flow.tenant, roleOf(w)
	if u := userOf(w); u != nil {
		t = u.tenant
	}
	switch {
	case t.waiting+t.inflight == 1:
		t.role, t.besides = role, t.besides[:0]
	case role == t.role || slices.Contains(t.besides, role):
	default:
		t.besides = append(t.besides, role)
		m.leastRole(t)
	}
}

// leastRole gives a tenant or a user its role with the lowest cap.
func (m *Machine) leastRole(t *tenant) {
	for i, other := range t.besides {
		if m.mostOf(other) < m.mostOf(t.role) {
			t.role, t.besides[i] = other, t.role
		}
	}
}

// reviseRoles calls leastRole for all after a change of the configuration.
func (m *Machine) reviseRoles() {
	for _, accounts := range [...]map[string]*tenant{m.flows.known, m.users.known} {
		for _, t := range accounts {
			if len(m.config.Roles) == 0 { // no roles are in use
				t.role, t.besides = "", nil
			}
			m.leastRole(t)
		}
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
