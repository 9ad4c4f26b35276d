package dispatch

import (
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Overtaken is a waiter overtaken by a request whose prompt an engine has cached.
type Overtaken struct {
	Waiter, By *Waiter
	// Saved is the number of prompt tokens that engines need not read because the slot did not go in turn.
	Saved int64
}

// Overtaken returns the waiters overtaken in the current event. The slice is valid until the next event.
func (m *Machine) Overtaken() []Overtaken { return m.overtaken }

// match makes one of the requests that may take w's turn the candidate: the one with the least regret at the free slot.
// It returns its waiter, and the endpoints at which its tenant is at its cap. If w itself has no regret, or no slot, it
// visits no other request.
func (m *Machine) match(next *fairqueue.Candidate, w *Waiter, full *EndpointSet) (*Waiter, *EndpointSet) {
	least, ok := m.placer.Regret(w.placement, BelowLower, full)
	if !ok || least == 0 {
		return w, full
	}
	best, regret := w, least
	m.queue.Matches(next, m.competes, func(r *fairqueue.Request) bool {
		o := waiterOf(r)
		if o == w || m.atCap(o.flow.tenant) || m.userAtCap(o) || m.overdue(o) {
			return true
		}
		m.asking = o
		if tokens, ok := m.placer.Regret(o.placement, BelowLower, m.fullFor(o.flow.tenant)); ok && tokens < least {
			best, least = o, tokens
		}
		m.answered(o)
		return least > 0
	})
	m.asking, m.saved = best, regret-least
	*next = next.Instead(&best.queued)
	return best, m.fullFor(best.flow.tenant)
}

// mayCompete reports whether other flows may take a flow's turn: not if stock is reserved for tiers.
func (c *Config) mayCompete() bool {
	return !slices.ContainsFunc(c.Tiers, func(t TierConfig) bool { return t.ReservedFloor > 0 || t.ReservedPerSlot > 0 })
}

// noteOvertaken notes which requests the candidate overtakes.
func (m *Machine) noteOvertaken(next *fairqueue.Candidate, w *Waiter) {
	m.beside = next.Overtakes(m.beside)
	for _, r := range m.beside {
		m.overtaken = append(m.overtaken, Overtaken{waiterOf(r), w, m.saved})
	}
	m.beside = renew(m.beside)
}
