package dispatch

import "time"

// Real clients retry exactly when they are told, so each rejection for lack of room gets a time of its own: the next
// free place of the drain schedule. Places are one drain interval apart, and the first comes after the present waiters.
// Other rejections take no place.
//
// The schedule is as long as the present queue needs to drain: it begins when the queue will have drained, and ends at
// twice that time, at the latest after placeLast. Each flow takes one place of it at a time: its further rejections, and
// all beyond the end, are spread evenly over the schedule, beside its places. So however many rejections there are, a flow
// does not push back others, and no client is told a later time than the end. A flow that is full has a schedule of its own,
// over which its rejections are spread, so that a thousand flows that are full at once are not told the same time.
const (
	placeDefault = 10 * time.Millisecond // for a queue that has not drained yet
	placeLeast   = time.Millisecond
	placeFirst   = time.Second
	placeLast    = 50 * time.Second // clients ignore 60 s and more, or sleep that long
	// placeEnd is the earliest end of the schedule, so that a burst finds places however short the queue is.
	placeEnd = 5 * time.Second
)

// schedule is the drain schedule at one moment, as times from then.
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
	n    uint64    // number of rejections that were spread
	own  uint64    // number of rejections of full flows that were spread since none was awaited
	last time.Time // at which one of those is awaited
}

// take returns the time until the next free place of the pool's schedule, and takes it. The flow's last place is in told:
// while that is ahead, the rejection is spread over the schedule, and takes none.
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

// takeOwn returns a time for a rejection of a flow that is full, spread over the flow's own schedule together with those of
// other full flows. The first one, when no client of another is awaited any more, is the schedule's first time.
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

// spread returns the next of the times that are spread evenly over a schedule, none of them at a place: 1 ms beside at least,
// as far as the places are that far apart.
func (p *places) spread(s schedule) time.Duration {
	p.n++
	wait := share(s.last-s.first, p.n)
	if s.step > 2*placeLeast {
		after, free := wait%s.step, s.step-2*placeLeast
		wait += placeLeast + (after<<20/s.step)*free>>20 - after
	}
	return s.first + min(wait, s.last-s.first)
}

// soon returns a time for clients that may retry at once, spread over 1 to 1,000 ms.
func (p *places) soon() time.Duration {
	p.n++
	return share(time.Second, p.n).Truncate(time.Millisecond) + time.Millisecond
}

// later returns a time, spread over 1 to 2 s, for clients about which nothing better is known.
func (p *places) later() time.Duration {
	p.n++
	return placeFirst + share(time.Second, p.n)
}

// retryAfter returns when the client of a rejected request should retry; 0 means that it is not told.
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
