package dispatch

import (
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Raise raises the cost of a request in flight, on its lease and in its flow's charge, because its answer has outgrown
// the estimate. A lower cost, or a lease that is settled, changes nothing.
func (m *Machine) Raise(now time.Time, l *Lease, to fairqueue.Cost) {
	m.begin(now)
	if !l.held.Held() || int64(to) <= l.held.Cost() {
		return
	}
	m.adjust(l, to)
	m.queue.Adjust(now, &l.waiter.queued, to)
	m.run()
}

// TrueUp corrects the cost of a request in flight, on its lease and in its flow's charge, to its actual cost, which may be
// less than was charged. A lease that is settled keeps its cost; see UsageLate.
func (m *Machine) TrueUp(now time.Time, l *Lease, to fairqueue.Cost) {
	m.begin(now)
	if !l.held.Held() {
		return
	}
	m.adjust(l, to)
	m.queue.TrueUp(now, &l.waiter.queued, to)
	m.run()
}

// MostLate is the number of completed requests, the last ones, whose cost may still become known. The machine keeps
// nothing of them; the bound is for whoever repeats its events, and must find them again.
const MostLate = 4096

// TakesUsage reports whether UsageLate has an effect: w is complete, what it has cost is not known, and fewer than
// MostLate requests have been completed like that since.
func (m *Machine) TakesUsage(w *Waiter) bool { return w.lacking > 0 && m.lacking-w.lacking < MostLate }

// UsageLate corrects the charges of a request that is complete to its actual cost, once. Its stock was settled with its
// lease. Without TakesUsage it has no effect.
func (m *Machine) UsageLate(now time.Time, w *Waiter, cost fairqueue.Cost) {
	m.begin(now)
	if !m.TakesUsage(w) {
		return
	}
	w.lacking = 0
	m.queue.TrueUp(now, &w.queued, cost)
	m.run()
}

// adjust changes the cost of a lease that is held. A victim changes its position, since its cost may be its rank.
func (m *Machine) adjust(l *Lease, to fairqueue.Cost) {
	victim, before := l.victimIndex > 0, l.held.Cost()
	m.victims.remove(l)
	m.ledger.Adjust(&l.held, int64(to))
	m.countCost(l, l.held.Cost()-before)
	if change := l.held.Cost() - before; l.costed && change != 0 {
		m.costAt(l, change)
	}
	if victim {
		m.victims.add(l)
	}
}
