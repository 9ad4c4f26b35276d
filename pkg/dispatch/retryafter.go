package dispatch

import (
	"crypto/sha256"
	"strings"
	"time"
)

// Rejected clients come back to the millisecond, in step, so each rejection for lack of room gets a moment of its own:
// the next free place of the drain schedule. Places are one drain interval apart, and the first is behind those who wait
// now. What is no lack of room takes none.
//
// The schedule is as long as the present queue needs to drain: it begins when that is over, and ends at twice that, at
// the latest after placeLast. Past its end rejections are spread over it evenly. So what was promised to others before,
// and what they have made of it, moves nobody further than that. Each flow has places of its own, as far apart as there are
// flows with places ahead, and takes one of the pool's for the first of them only: however many it takes, it pushes no
// other flow's.
const (
	placeDefault = 10 * time.Millisecond // of a queue that has not drained yet
	placeLeast   = time.Millisecond
	placeFirst   = time.Second
	placeLast    = 50 * time.Second // clients ignore 60 s and more, or sleep through it
	// placeEnd is the earliest end of the schedule, so that a burst finds places however short the queue is.
	placeEnd = 5 * time.Second
	// paceMost is how many of the last releases count for the pace, roughly.
	paceMost = 8
)

// pace is how fast a queue drains: the pool's, or one flow's.
type pace struct {
	interval time.Duration // smoothed time between two releases
	samples  int           // of it, up to paceMost
	last     time.Time     // of the last release
}

// waits is told that somebody waits where nobody did: the time before was idleness, not draining.
func (p *pace) waits(now time.Time) { p.last = now }

// drained is told of a release from the queue.
func (p *pace) drained(now time.Time) {
	if !p.last.IsZero() {
		p.samples = min(p.samples+1, paceMost) // the first ones count alike: slots come free together
		p.interval += (now.Sub(p.last) - p.interval) / time.Duration(p.samples)
	}
	p.last = now
}

// schedule is the drain schedule of a moment, as times from then.
type schedule struct {
	step, first, last time.Duration
}

// schedule is the one of a queue in which so many wait.
func (p *pace) schedule(waiting int) schedule {
	s := schedule{step: placeDefault}
	if p.samples > 0 {
		s.step = max(placeLeast, min(p.interval, placeLast))
	}
	drain := placeLast
	if waiting < int(placeLast/s.step) {
		drain = s.step * time.Duration(waiting)
	}
	s.first = min(max(placeFirst, drain), placeLast/2)
	s.last = min(max(2*drain, placeEnd), placeLast)
	return s
}

// evenly is a time within the schedule: any run of them is spread evenly, each a millisecond of its own.
func (s schedule) evenly(n uint64) time.Duration { return s.first + share(s.last-s.first, n) }

// share is the n-th of a low-discrepancy sequence over d, from 0 up to but not including d.
func share(d time.Duration, n uint64) time.Duration {
	const golden = 0x9e3779b97f4a7c15
	return time.Duration((n*golden)>>44) * d >> 20
}

// mostTurns bounds the flows that have a turn of their own; with more the rest take the pool's places.
const mostTurns = 1024

// places are the places given, by flow.
type places struct {
	turns map[turn]time.Time // the next place by flow
	pool  time.Time          // the next place of the pool
	swept time.Time
	n     uint64 // how many rejections were spread
}

// turn names a sequence of places.
type turn struct {
	tier int
	flow string
	own  bool // by the flow's own pace: its first place is none of the pool's
}

// longestTurn is the longest key of a flow, in bytes, that is kept as it is.
const longestTurn = 64

// short is the turn with a key of its own and of bounded length: keys are as long as clients like, and their memory is
// the request's.
func (t turn) short() turn {
	if len(t.flow) > longestTurn {
		sum := sha256.Sum256([]byte(t.flow))
		t.flow = string(sum[:])
	}
	return t
}

// take is the time until the next free place.
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
	if wait > s.last { // past its end: any time of it, and the place stays free
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

// sweep forgets the flows whose places are all over, once a second.
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

// soon spreads those that should come back at once over 1 to 1,000 ms.
func (p *places) soon() time.Duration {
	p.n++
	return share(time.Second, p.n).Truncate(time.Millisecond) + time.Millisecond
}

// later spreads those for whom there is no knowing over 1 to 2 s.
func (p *places) later() time.Duration {
	p.n++
	return placeFirst + share(time.Second, p.n)
}

// retryAfter is when the client of a rejected request should come back; 0: no word of it.
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
				waiting-- // itself
			}
			return m.places.take(m.now, t, w.flow.pace.schedule(waiting))
		}
		return m.places.take(m.now, t, m.pace.schedule(m.queue.Len()))
	case OutcomeQueueFull, OutcomeShed, OutcomeDisplaced, OutcomeTTLExpired, OutcomeNoMemory:
		return m.places.take(m.now, t, m.pace.schedule(m.queue.Len()))
	default:
		return 0
	}
}

// refusal is retryAfter of a request that ends before it arrives; flow is its flow, or the model where that is not known.
func (m *Machine) refusal(flow string, o Outcome) time.Duration {
	switch o {
	case OutcomeNoEndpoint, OutcomeInternal:
		return m.places.later()
	case OutcomeNoMemory:
		return m.places.take(m.now, turn{tier: -1, flow: flow}, m.pace.schedule(m.queue.Len()))
	default:
		return 0
	}
}
