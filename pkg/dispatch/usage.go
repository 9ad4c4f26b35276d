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
// less than was charged. Call it before Complete; a lease that is settled keeps its cost.
func (m *Machine) TrueUp(now time.Time, l *Lease, to fairqueue.Cost) {
	m.begin(now)
	if !l.held.Held() {
		return
	}
	m.adjust(l, to)
	m.queue.TrueUp(now, &l.waiter.queued, to)
	m.run()
}

// adjust changes the cost of a lease that is held. A victim changes its position, since its cost may be its rank.
func (m *Machine) adjust(l *Lease, to fairqueue.Cost) {
	victim := l.victimIndex > 0
	m.victims.remove(l)
	m.ledger.Adjust(&l.held, int64(to))
	if victim {
		m.victims.add(l)
	}
}
