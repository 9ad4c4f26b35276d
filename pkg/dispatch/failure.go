package dispatch

import "time"

// A waiter for whom the Placer panics each time would stop the releases whenever it is the next. So every question to the
// Placer has a name to it, that of the request it is asked for, and the second panic in a row for one waiter ends it as
// internal. What it held or had reserved is given back; everybody else goes on.

// mostPanics is how many panics one event goes on after. Where every waiter's placement panics the rest is left to a
// later Advance, so that the lock is not held for all of them.
const mostPanics = 16

// panicsEnd is how many panics in a row end a waiter.
const panicsEnd = 2

// Failed is told that the event, or a Failed or Preempt after it, has panicked: the request that was asked for is struck
// or ended, and the rest of the event is done. It may panic in turn, which is to be told with another Failed; after
// mostPanics it leaves the rest to a later Advance.
func (m *Machine) Failed(now time.Time, failure error) {
	m.now = now
	m.counts.panics++
	w := m.asking
	m.asking, m.preemptor = nil, nil
	m.pending.failures++
	enough := m.pending.failures >= mostPanics
	if a := m.pending.arrival; a != nil && (w == a || enough) {
		m.pending.arrival, m.pending.passedOn = nil, false
		m.fail(a, failure)
	} else if w != nil && w.stage == StageWaiting { // whoever waits no more has its lease or its end, and keeps it
		m.undo(w)
		w.struck = now.UnixNano()
		w.panics++
		ended := w.panics >= panicsEnd
		if ended {
			m.fail(w, failure)
		}
		// Perhaps it was asked for in the name of all that wait in its lane.
		if r := m.queue.HeadIn(w.queued.Tier, w.queued.Lane); r != nil && (ended || m.preempts.Has(r.Tier)) {
			m.pending.lanes = append(m.pending.lanes, r)
		}
	}
	if enough {
		m.retryAt = now.Add(m.config.PopperWaitBase)
		if j := m.config.PopperWaitJitterMax; j > 0 {
			m.retryAt = m.retryAt.Add(time.Duration(m.random.Int64N(int64(j))))
		}
		return
	}
	m.run()
}

// NoteFailure counts a panic outside the machine that belongs to an event, and changes nothing else.
func (m *Machine) NoteFailure() { m.counts.panics++ }

// fail ends a request as internal that waits or is being decided on.
func (m *Machine) fail(w *Waiter, failure error) {
	waits := w.stage == StageWaiting
	m.queue.Remove(&w.queued)
	m.undo(w)
	w.failure = failure
	if waits {
		m.end(w, OutcomeInternal)
	} else {
		m.reject(w, OutcomeInternal)
	}
	m.leaves(w)
}

// undo gives back what a request holds that did not get as far as its grant.
func (m *Machine) undo(w *Waiter) {
	switch {
	case w.lease.held.Held():
		m.settle(w)
	case !w.lease.reservation.Empty():
		m.pending.freed = append(m.pending.freed, w.lease.reservation)
	}
	w.lease.reservation = Reservation{}
}
