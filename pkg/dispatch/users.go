package dispatch

import (
	"strconv"
	"strings"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Where requests name two flows (fairqueue.Config.Levels), the outer flow is a tenant's and the inner one belongs to a
// user of the tenant. A user has accounts like a tenant's, and caps work alike for both, except that a user has no cap
// at single endpoints. So a user's cap depends only on its own holdings: it is parked in all its lanes or in none, and
// awaits no room. It is parked under its tenant, whose other users continue. A request at its user's cap, whose tier
// may preempt, takes over a lease of the same user.

// users are the accounts of users, by the names of their tenants and their own.
type users struct {
	on bool // tenants have users
	flowAccounts
	name []byte `graph:"-"` // reused
}

// userName identifies a user.
type userName struct {
	above *tenant
	under []string `graph:"key"` // fairqueue.Path.Under of its requests
}

// userOf returns the account of w's user in its tier; nil if tenants have no users, or w is not counted yet.
func userOf(w *Waiter) *flowAccount {
	if w.rare == nil {
		return nil
	}
	return w.rare.user
}

// appendUser appends the unique name of a tenant's user.
func (m *Machine) appendUser(b []byte, tenant string, p *fairqueue.Path) []byte {
	b = appendName(b, tenant)
	for i := range m.config.Queue.Levels - 1 {
		if p != nil && i < len(p.Under) {
			b = appendName(b, p.Under[i])
		} else {
			b = appendName(b, "")
		}
	}
	return b
}

// appendName appends a name so that it ends where the next one begins.
func appendName(b []byte, name string) []byte {
	return append(append(strconv.AppendInt(b, int64(len(name)), 10), ':'), name...)
}

// Renaming returns the function that renames keys: it replaces a name by what name returns for it, and both names in the name
// of a user. The empty key stays.
func Renaming(name func(string) string) func(key string) string {
	one := func(key string) string {
		if key == "" {
			return ""
		}
		return name(key)
	}
	return func(key string) string {
		names := namesIn(key)
		if names == nil {
			return one(key)
		}
		var b []byte
		for _, n := range names {
			b = appendName(b, one(n))
		}
		return string(b)
	}
}

// namesIn returns the names that appendName has put together; nil if it has not.
func namesIn(key string) (names []string) {
	for key != "" {
		digits, rest, _ := strings.Cut(key, ":")
		n, err := strconv.Atoi(digits)
		if err != nil || n < 0 || n > len(rest) || strconv.Itoa(n) != digits {
			return nil
		}
		names, key = append(names, rest[:n]), rest[n:]
	}
	return names
}

// countUser counts w as a waiting request of its user; its tenant has counted it already.
func (m *Machine) countUser(w *Waiter) {
	m.users.name = m.appendUser(m.users.name[:0], w.queued.Flow, w.queued.Path)
	key := ""
	if known := m.users.known[string(m.users.name)]; known != nil {
		key = known.key
	} else {
		key = string(m.users.name)
	}
	a := m.users.addWaiter(w.queued.Tier, key)
	u := a.tenant
	if u.user == nil {
		u.user = new(userName)
		if w.queued.Path != nil {
			u.user.under = w.queued.Path.Under
		}
	}
	u.user.above = w.flow.tenant
	w.rarely().user = a
}

// uncountUser stops counting w as a waiting request of its user.
func (m *Machine) uncountUser(w *Waiter) { m.users.removeWaiter(userOf(w)) }

// uncountUsersLease removes the settled lease l from its user's count.
func (m *Machine) uncountUsersLease(l *Lease) {
	u := userOf(l.Waiter())
	u.removeLease(l.held.Tokens())
	m.users.restIfIdle(u)
}

// userLimit returns the cap of each user whose role has none.
func (m *Machine) userLimit() limit {
	if last := len(m.config.Levels) - 1; last > 0 {
		return limit{m.config.Levels[last].MaxInFlight, m.config.Levels[last].MaxTokensInFlight}
	}
	return limit{}
}

// userAtCap reports whether w's user is at its cap.
func (m *Machine) userAtCap(w *Waiter) bool {
	u := userOf(w)
	return u != nil && m.atCap(u.tenant)
}

// holderOf returns the account whose leases w may take over at a cap: its user's if the user is at its cap, else its
// tenant's.
func (m *Machine) holderOf(w *Waiter) *tenant {
	if u := userOf(w); u != nil && m.atCap(u.tenant) {
		return u.tenant
	}
	return w.flow.tenant
}

// unparkUser unparks the waiters of a user, of every tier.
func (m *Machine) unparkUser(u *tenant) {
	for _, a := range u.flows {
		if a.waiting > 0 {
			m.queue.UnparkUnder(a.tier, u.user.above.key, u.user.under)
		}
	}
}

// reparkUser parks a user's waiters if it is at its cap, and unparks them otherwise.
func (m *Machine) reparkUser(u *tenant) {
	u.changed = false
	u.parked = m.capped && u.waiting > 0 && m.atCap(u)
	if !u.parked {
		m.unparkUser(u)
		return
	}
	var few [4]*fairqueue.Request
	for _, a := range u.flows {
		if a.waiting == 0 {
			continue
		}
		for _, r := range m.queue.HeadsUnder(a.tier, u.user.above.key, u.user.under, few[:0]) {
			m.queue.ParkUnder(r)
		}
		m.requestSwap(u, a.tier)
	}
}
