package dispatch

import (
	"strconv"
	"strings"
	"time"
)

// Real clients retry exactly when they are told, so each rejection for lack of room gets a time of its own: the next
// free place of the drain schedule. Places are one drain interval apart, and the first comes after the present waiters.
// Other rejections take no place.
//
// The schedule is as long as the present queue needs to drain: it begins when the queue will have drained, and ends at
// twice that time, at the latest after placeLast. Rejections beyond its end are spread over it evenly. So however many
// places were given before, no client is told a later time than that. Each flow has its own places, spaced by the
// number of flows that have places ahead, and takes a place of the pool only for the first of them: however many a flow
// takes, it does not push back others.
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
func (p *pace) schedule(now time.Time, waiting, capacity int) schedule {
	s := schedule{step: max(placeLeast, p.interval(now, waiting, capacity))}
	drain := placeLast
	if waiting < int(placeLast/s.step) {
		drain = s.step * time.Duration(waiting)
	}
	s.first = min(max(placeFirst, drain), placeLast/2)
	s.last = min(max(2*drain, placeEnd), placeLast)
	return s
}

// evenly returns a time within the schedule: any sequence of them is spread evenly, at distinct milliseconds.
func (s schedule) evenly(n uint64) time.Duration { return s.first + share(s.last-s.first, n) }

// share returns the n-th element of a low-discrepancy sequence over d, from 0 up to but not including d.
func share(d time.Duration, n uint64) time.Duration {
	const golden = 0x9e3779b97f4a7c15
	return time.Duration((n*golden)>>44) * d >> 20
}

// mostTurns bounds the flows with places of their own; any more use the pool's places.
const mostTurns = 1024

// places are the places taken, by flow.
type places struct {
	turns map[turn]time.Time // the next place by flow
	pool  time.Time          // the pool's next place
	swept time.Time
	n     uint64 // number of rejections that were spread
}

// turn identifies a sequence of places.
type turn struct {
	tier int
	flow string
	own  bool // at the flow's own pace: its first place is not one of the pool's
}

// longestTurn is the longest flow key, in bytes, that is kept unchanged.
const longestTurn = 64

// short returns the turn with a key of bounded length, since clients choose how long keys are: of a long one both ends
// and the length. That costs the same for every key. Long keys that agree in these share their places.
func (t turn) short() turn {
	if n := len(t.flow); n > longestTurn {
		const end = (longestTurn - 16) / 2
		t.flow = t.flow[:end] + strconv.FormatInt(int64(n), 36) + t.flow[n-end:]
	}
	return t
}

// take takes the next free place and returns the time until it.
func (p *places) take(now time.Time, t turn, s schedule) time.Duration {
	if p.turns == nil {
		p.turns = map[turn]time.Time{}
	}
	p.sweep(now)
	key := t.short()
	first := now.Add(s.first)
	next, known := p.turns[key]
	known = known && next.After(first)
	from, step := &next, s.step
	switch {
	case !known && t.own && len(p.turns) < mostTurns:
		next = first
	case !known:
		from = &p.pool
		if p.pool.Before(first) {
			p.pool = first
		}
	case !t.own:
		step *= time.Duration(len(p.turns))
	}
	wait := from.Sub(now)
	if wait > s.last { // past the end: any time of the schedule, and the place stays free
		p.n++
		return s.evenly(p.n)
	}
	*from = from.Add(step)
	if !known && !t.own {
		next = now.Add(wait + s.step*time.Duration(len(p.turns)+1))
	}
	if known || len(p.turns) < mostTurns {
		if !known {
			key.flow = strings.Clone(key.flow)
		}
		p.turns[key] = next
	}
	return wait
}

// sweep drops the flows whose places are all over, at most once a second.
func (p *places) sweep(now time.Time) {
	if now.Sub(p.swept) < time.Second {
		return
	}
	p.swept = now
	for key, next := range p.turns {
		if !next.After(now) {
			delete(p.turns, key)
		}
	}
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
	t := turn{tier: w.queued.Tier, flow: w.queued.Flow}
	switch o {
	case OutcomePreempted, OutcomeDraining:
		return m.places.soon()
	case OutcomeNoEndpoint, OutcomeInternal:
		return m.places.later()
	case OutcomeFlowFull:
		if w.flow != nil {
			t.own = true
			waiting := w.flow.waiting
			if w.waiting {
				waiting-- // the request itself
			}
			return m.places.take(m.now, t, w.flow.pace.schedule(m.now, waiting, m.ledger.Capacity()))
		}
		return m.places.take(m.now, t, m.pace.schedule(m.now, m.queue.Len(), m.ledger.Capacity()))
	case OutcomeQueueFull, OutcomeShed, OutcomeDisplaced, OutcomeTTLExpired, OutcomeNoMemory:
		return m.places.take(m.now, t, m.pace.schedule(m.now, m.queue.Len(), m.ledger.Capacity()))
	default:
		return 0
	}
}

// refusal is retryAfter for a request that ends before it arrives; flow is its flow, or the model if the flow is
// unknown.
func (m *Machine) refusal(flow string, o Outcome) time.Duration {
	switch o {
	case OutcomeNoEndpoint, OutcomeInternal:
		return m.places.later()
	case OutcomeNoMemory:
		return m.places.take(m.now, turn{tier: -1, flow: flow}, m.pace.schedule(m.now, m.queue.Len(), m.ledger.Capacity()))
	default:
		return 0
	}
}
