package dispatch

import (
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Raise is told that a request in flight costs at least this much, since its answer has outgrown the estimate: its lease
// and its flow's charge are raised. A lower cost, or a lease that is settled, changes nothing.
func (m *Machine) Raise(now time.Time, l *Lease, to fairqueue.Cost) {
	m.begin(now)
	if !l.held.Held() || int64(to) <= l.held.Cost() {
		return
	}
	m.adjust(l, to)
	m.queue.Adjust(now, &l.waiter.queued, to)
	m.run()
}

// TrueUp is told what a request in flight has really cost, which may be less than was charged: it corrects the lease and
// the flow's charge. Call it before Complete; a lease that is settled keeps its cost.
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
	victim := l.victimAt > 0
	m.victims.remove(l)
	m.ledger.Adjust(&l.held, int64(to))
	if victim {
		m.victims.add(l)
	}
}
