package dispatch

import "time"

// If the Placer panicked each time it is asked for a certain waiter, no waiter behind it would ever be released. So the
// machine notes which request it asks for, and a second consecutive panic for a waiter ends it as internal. Whatever it
// held or had reserved is released, and all others continue.

// mostPanics is the number of panics after which one event gives up. If every waiter's placement panics, the rest is
// left to a later Advance, so that the lock is not held for all of them.
const mostPanics = 16

// panicsEnd is the number of consecutive panics that ends a waiter.
const panicsEnd = 2

// rare has the fields that few requests need.
type rare struct {
	panics  int       // consecutive panics of the Placer for it while it waits
	struck  time.Time // when the last of them happened
	failure error     // see Waiter.Failure
	metered           // by a quota
	facts   *Facts    // nil: nobody asks for them
	met     Limit     // that it was rejected by, as far as Waiter.Limit needs it
	strayed bool      // an endpoint answered it that the machine does not know

	user     *flowAccount // of its user, where tenants have users
	userFull bool         // its user's queue was full
}

// rarely returns these fields of w; it makes them if w has none.
func (w *Waiter) rarely() *rare {
	if w.rare == nil {
		w.rare = new(rare)
	}
	return w.rare
}

// Failed must be called after the event, or a Failed or Preempt after it, has panicked. It counts the panic against the
// request that the Placer was asked for, or ends that request, and does the rest of the event. It may panic again,
// which requires another Failed; after mostPanics it leaves the rest to a later Advance.
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
	} else if w != nil && w.stage == StageWaiting { // a request that no longer waits keeps its lease or its outcome
		m.undo(w)
		t := w.rarely()
		t.struck = now
		t.panics++
		ended := t.panics >= panicsEnd
		if ended {
			m.fail(w, failure)
		}
		// It may have been asked for on behalf of all that wait in its lane.
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

// undo releases the holdings of a request whose grant was not completed.
func (m *Machine) undo(w *Waiter) {
	switch {
	case w.held.Held():
		m.settle(w)
	case !w.reservation.Empty():
		m.free(w.placement, w.reservation)
	}
	w.reservation = Reservation{}
}
