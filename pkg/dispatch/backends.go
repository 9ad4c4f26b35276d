package dispatch

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// SetBackends sets the ready backends, sorted by ID; the Placer must already have the same endpoints. It releases
// waiters that can go now; leases at a removed backend stay until they are complete. The caller must not change the
// slice afterwards. foreign has the new stock of other Weirs at some backends. A backend that is not listed keeps its
// foreign stock if it was ready before, and otherwise has none.
func (m *Machine) SetBackends(now time.Time, ready []stock.Backend, foreign []stock.Foreign) {
	m.begin(now)
	m.times = m.placer.Times()
	m.pending.reopen = true // unless there are few changes
	changed, all := m.tellLedger(m.withLearned(ready), m.changed[:0])
	m.countForeign(foreign)
	m.forgetFailing()
	if !all {
		changed, all = m.placer.TakeChanges(changed)
	}
	m.forgetEngines(changed, all)
	if m.changed = changed; !all {
		m.reopenFor(changed)
		m.pending.reopen = false
	}
	m.run()
}

// tellLedger passes the ready backends to the ledger: only the changed ones, if they are few. It appends the changed
// ones to some; all means that any backend may have changed.
func (m *Machine) tellLedger(ready []stock.Backend, some []Endpoint) (changed []Endpoint, all bool) {
	before := m.ready
	m.ready = ready
	same := equalAtStart(before, ready)
	end := equalAtEnd(before[same:], ready[same:])
	const few = 64
	gone, here := before[same:len(before)-end], ready[same:len(ready)-end]
	if !m.inOrder || !ascending(ready, same, end) || len(gone)+len(here) > few {
		m.inOrder = ascending(ready, 0, 0)
		m.ledger.SetBackends(ready)
		m.tellBounds()
		return some, true
	}
	for _, b := range gone {
		if _, stays := slices.BinarySearchFunc(here, b.ID, byID); stays {
			continue // with its foreign stock
		}
		m.ledger.RemoveBackend(b.ID)
		some = append(some, Endpoint(b.ID))
	}
	for _, b := range here {
		m.bound(b.ID, m.ledger.SetBackend(b))
		some = append(some, Endpoint(b.ID))
	}
	return some, false
}

func byID(b stock.Backend, id stock.BackendID) int { return cmp.Compare(b.ID, id) }

// block is the number of backends compared at once, as memory: SetBackends spends most of its time on the comparison.
const block = 64

// equalAtStart returns the number of leading backends that are equal in both.
func equalAtStart(a, b []stock.Backend) int {
	n, most := 0, min(len(a), len(b))
	for n+block <= most && *(*[block]stock.Backend)(a[n:]) == *(*[block]stock.Backend)(b[n:]) {
		n += block
	}
	for n < most && a[n] == b[n] {
		n++
	}
	return n
}

// equalAtEnd returns the number of trailing backends that are equal in both.
func equalAtEnd(a, b []stock.Backend) int {
	n, most := 0, min(len(a), len(b))
	for n+block <= most && *(*[block]stock.Backend)(a[len(a)-n-block:]) == *(*[block]stock.Backend)(b[len(b)-n-block:]) {
		n += block
	}
	for n < most && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// tellBounds passes every ready backend's bounds on to the Placer.
func (m *Machine) tellBounds() {
	for _, b := range m.ready {
		bounds, _ := m.ledger.Bounds(b.ID)
		m.bound(b.ID, bounds)
	}
}

// bound passes a ready backend's bounds on to the Placer.
func (m *Machine) bound(id stock.BackendID, bounds stock.Bounds) {
	m.placer.SetBounds(Endpoint(id), millionths(bounds.Requests.Lower), millionths(bounds.Requests.Upper))
	m.placer.SetTokenBounds(Endpoint(id), int64(bounds.Tokens.Lower.Ceil()), int64(bounds.Tokens.Upper.Ceil()))
}

// millionths converts a bound to the Placer's unit.
func millionths(bound stock.Micro) int64 {
	whole, rest := int64(bound/stock.One), int64(bound%stock.One)
	return whole*scheduling.Millionths + rest*scheduling.Millionths/int64(stock.One)
}

// ascending reports whether the backends between the first and the last unchanged ones, and their neighbours there, are
// in ascending order of ID.
func ascending(list []stock.Backend, first, last int) bool {
	for i := max(1, first); i <= min(len(list)-1, len(list)-last); i++ {
		if list[i-1].ID >= list[i].ID {
			return false
		}
	}
	return true
}

// SetForeign sets the stock of other Weirs at some of the backends. It counts at ready backends only. Waiters that can
// go now are released.
func (m *Machine) SetForeign(now time.Time, changes []stock.Foreign) {
	m.begin(now)
	m.countForeign(changes)
	m.run()
}

// countForeign passes the stock of other Weirs to the ledger, and its counted part to the Placer.
func (m *Machine) countForeign(changes []stock.Foreign) {
	for _, f := range changes {
		if known := m.failing[Endpoint(f.ID)]; known != nil {
			known.foreign = f.Held.Counted()
			m.tellForeign(known)
			continue
		}
		if counts, ready := m.ledger.SetForeign(f); ready {
			m.placer.SetForeign(Endpoint(f.ID), counts.Requests, int64(counts.Tokens))
			m.roomAt(Endpoint(f.ID)) // it may be less than before
		}
	}
}

// SetSignals passes an engine's signals on to the Placer. Where bounds follow the engines, the endpoint's may change.
func (m *Machine) SetSignals(now time.Time, e Endpoint, s Signals) {
	m.begin(now)
	m.placer.SetSignals(e, s)
	if len(m.engines) > 0 {
		m.followEngine(e, &s)
	}
	m.run()
}
