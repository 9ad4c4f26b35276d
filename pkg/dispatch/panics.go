package dispatch

import "time"

// A waiter whose every Placer call panics would block all waiters behind it. So the machine notes the request of each
// call, and a second consecutive panic ends the waiter as OutcomeInternal. Its holdings and reservations are released,
// and all other requests continue.

// mostPanics is the number of panics after which an event leaves the rest of its work to a later Advance. So the lock
// is not held for all waiters if every placement panics.
const mostPanics = 16

// panicsEnd is the number of consecutive panics that ends a waiter.
const panicsEnd = 2

// rare has the fields that few requests need.
type rare struct {
	panics  int       // consecutive panics of the Placer for it while it waits
	struck  time.Time // when the last of them happened
	failure error     `graph:"-"` // see Waiter.Failure
	metered           // by a quota
	facts   *Facts    `graph:"-"` // nil: not asked for
	met     Limit     // the limit that rejected it, for Waiter.Limit
	strayed bool      // an endpoint unknown to the machine answered it

	user     *flowAccount // of its user, where tenants have users
	userFull bool         // its user's queue was full
}

// rarely returns the rare fields of w, and makes missing ones.
func (w *Waiter) rarely() *rare {
	if w.rare == nil {
		w.rare = new(rare)
	}
	return w.rare
}

// Failed must be called after a panic in an event, or in a Failed or Preempt after it. It counts the panic against the
// request of the Placer call, or ends that request, and completes the event. A panic in Failed requires another Failed;
// after mostPanics it leaves the rest to a later Advance.
func (m *Machine) Failed(now time.Time, failure error) {
	m.now = now
	m.counts.panics++
	w := m.asking
	m.asking, m.preemptor, m.mayTurn = nil, nil, m.busies
	m.pending.failures++
	enough := m.pending.failures >= mostPanics
	if a := m.pending.arrival; a != nil && (w == a || enough) {
		m.pending.arrival = nil
		m.fail(a, failure)
	} else if w != nil && w.stage == StageWaiting { // a request that does not wait keeps its lease or its outcome
		m.undo(w)
		t := w.rarely()
		t.struck = now
		t.panics++
		ended := t.panics >= panicsEnd
		if ended {
			m.fail(w, failure)
		}
		// The call may have been on behalf of all waiters of its lane.
		if lane := w.queued.Lane; ended || m.preempts.Has(w.queued.Tier) || lane != "" && m.lanes.notes[lane] == nil {
			m.pending.lanes = m.queue.InLane(lane, m.pending.lanes)
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

// NoteFailure counts a panic outside the machine that belongs to an event. It changes nothing else.
func (m *Machine) NoteFailure() { m.counts.panics++ }

// fail ends a request that waits or is being decided on as internal.
func (m *Machine) fail(w *Waiter, failure error) {
	waits := w.stage == StageWaiting
	m.queue.Remove(&w.queued)
	m.undo(w)
	w.rarely().failure = failure
	if waits {
		m.end(w, OutcomeInternal)
	} else {
		m.reject(w, OutcomeInternal)
	}
	m.uncountWaiter(w)
}

// undo releases the holdings of a request with an incomplete grant.
func (m *Machine) undo(w *Waiter) {
	switch {
	case w.held.Held():
		m.settle(w)
	case !w.reservation.Empty():
		m.free(w.placement, w.reservation)
	}
	w.reservation = Reservation{}
}
