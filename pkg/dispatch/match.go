package dispatch

import (
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Overtaken is a waiter that another one has overtaken, because of what an engine has cached of that one's prompt.
type Overtaken struct {
	Waiter, By *Waiter
	// Saved is how many fewer tokens the engines have to read of prompts than if the place had gone in turn.
	Saved int64
}

// Overtaken returns those that were overtaken in the current event. The slice is valid until the next event.
func (m *Machine) Overtaken() []Overtaken { return m.overtaken }

// match makes the request the candidate that has least to lose at the place that is free, of those that may take the turn of
// w, and returns its waiter and the endpoints at which its tenant is at its cap. Where w itself loses nothing, or has no
// place, it looks at no other.
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

// mayCompete reports whether other flows compete for the place of one: not where stock is reserved for tiers.
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
