package dispatch

import "time"

// Real clients retry exactly at the given time, so each rejection for lack of room gets its own time: the next free
// place of the drain schedule. Places are one drain interval apart; the first one follows the present waiters. Other
// rejections take no place.
//
// The schedule begins when the present queue will have drained, and ends at twice that time, or after placeLast if that
// is earlier. Each flow takes one place at a time: its further rejections, and all rejections beyond the end, are
// spread evenly over the schedule, between its places. So a flow with many rejections does not push other flows back,
// and no client gets a time beyond the end. The rejections of a full flow are spread over a schedule of its own, so
// that a thousand flows that are full at once do not get the same time.
const (
	placeDefault = 10 * time.Millisecond // for a queue that has not drained yet
	placeLeast   = time.Millisecond
	placeFirst   = time.Second
	placeLast    = 50 * time.Second // clients ignore 60 s and more, or sleep that long
	// placeEnd is the earliest end of the schedule, so that a burst finds places even with a short queue.
	placeEnd = 5 * time.Second
)

// schedule is the drain schedule at one moment, as times from that moment.
type schedule struct {
	step, first, last time.Duration
}

// schedule returns the schedule of a queue with this many waiters.
func (p *pace) schedule(now time.Duration, waiting, capacity int) schedule {
	s := schedule{step: max(placeLeast, p.interval(now, waiting, capacity))}
	drain := placeLast
	if waiting < int(placeLast/s.step) {
		drain = s.step * time.Duration(waiting)
	}
	s.first = min(max(placeFirst, drain), placeLast/2)
	s.last = min(max(2*drain, placeEnd), placeLast)
	return s
}

// share returns the n-th element of a low-discrepancy sequence over d, from 0 up to but not including d.
func share(d time.Duration, n uint64) time.Duration {
	const golden = 0x9e3779b97f4a7c15
	return time.Duration((n*golden)>>44) * d >> 20
}

// places are the places taken.
type places struct {
	next time.Time // of the pool's schedule
	n    uint64    // number of spread rejections
	own  uint64    // number of spread rejections of full flows, since no such client was expected
	last time.Time // the last time given to one of those
}

// take returns the time until the next free place of the pool's schedule, and takes it. The flow's last place is in
// told: while that is ahead, the rejection is spread over the schedule and takes no place.
func (p *places) take(now time.Time, told *time.Time, s schedule) time.Duration {
	if told.After(now) {
		return p.spread(s)
	}
	if first := now.Add(s.first); p.next.Before(first) {
		p.next = first
	}
	wait := p.next.Sub(now)
	if wait > s.last {
		return p.spread(s)
	}
	*told, p.next = p.next, p.next.Add(s.step)
	return wait
}

// takeOwn returns a time for a rejection of a full flow, spread over the flow's own schedule together with other full
// flows' rejections. The first one gets the schedule's first time, once no client of an earlier rejection is expected.
func (p *places) takeOwn(now time.Time, s schedule) time.Duration {
	if now.After(p.last) {
		p.own = 0
	}
	wait := s.first + share(s.last-s.first, p.own)
	p.own++
	if at := now.Add(wait); at.After(p.last) {
		p.last = at
	}
	return wait
}

// spread returns the next time spread evenly over a schedule. It is never at a place, but at least 1 ms beside if
// places are that far apart.
func (p *places) spread(s schedule) time.Duration {
	p.n++
	wait := share(s.last-s.first, p.n)
	if s.step > 2*placeLeast {
		after, free := wait%s.step, s.step-2*placeLeast
		wait += placeLeast + (after<<20/s.step)*free>>20 - after
	}
	return s.first + min(wait, s.last-s.first)
}

// soon returns a time for clients that may retry at once, from 1 to 1,000 ms.
func (p *places) soon() time.Duration {
	p.n++
	return share(time.Second, p.n).Truncate(time.Millisecond) + time.Millisecond
}

// later returns a time from 1 to 2 s, for clients without a better estimate.
func (p *places) later() time.Duration {
	p.n++
	return placeFirst + share(time.Second, p.n)
}

// retryAfter returns the Retry-After of a rejected request; 0 means none.
func (m *Machine) retryAfter(w *Waiter, o Outcome) time.Duration {
	switch o {
	case OutcomePreempted, OutcomeDraining:
		return m.places.soon()
	case OutcomeQuotaExceeded:
		return w.rare.wait
	case OutcomeShed:
		if w.flow == nil { // it was never counted
			return m.nextToken(w)
		}
		return m.places.take(m.now, &w.flow.told, m.pace.schedule(m.sinceEpoch(), m.queue.Len(), m.ledger.Capacity()))
	case OutcomeFlowFull:
		full := w.flow
		if u := userOf(w); u != nil && w.rare.userFull {
			full = u
		}
		waiting := full.waiting
		if w.waiting {
			waiting-- // the request itself
		}
		return m.places.takeOwn(m.now, full.pace.schedule(m.sinceEpoch(), waiting, m.ledger.Capacity()))
	case OutcomeQueueFull, OutcomeDisplaced, OutcomeTTLExpired:
		return m.places.take(m.now, &w.flow.told, m.pace.schedule(m.sinceEpoch(), m.queue.Len(), m.ledger.Capacity()))
	default:
		return m.refusal(o)
	}
}

// refusal is retryAfter for a request that has not arrived.
func (m *Machine) refusal(o Outcome) time.Duration {
	switch o {
	case OutcomeNoEndpoint, OutcomeInternal:
		return m.places.later()
	case OutcomeNoMemory:
		return m.places.spread(m.pace.schedule(m.sinceEpoch(), m.queue.Len(), m.ledger.Capacity()))
	default:
		return 0
	}
}
