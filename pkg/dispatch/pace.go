package dispatch

import (
	"math/bits"
	"time"
)

// A pace measures the drain rate of a queue: the pool's, or one flow's. It counts releases over a window of time with
// waiting requests. A mean of the times between releases would not do: slots taken together end together, so nearly all
// of those times are 0.
//
// Time is multiplied by the capacity, so a pace measures how long a release holds a slot. That does not change with the
// number of slots, so after a change of the capacity the pace is right at once.
//
// Times are durations since the queue's epoch, since each release computes two of them.
type pace struct {
	held     uint64        // time with waiting requests × capacity, in ns
	released uint64        // the releases in it, in parts of oneRelease
	last     time.Duration // time is counted up to here
	begun    bool          // there is a last
}

const (
	// paceWindow is the time in which old releases lose most of their weight. One release takes at most a quarter of
	// it, so the first of several slots that end together do not set the pace alone.
	paceWindow = 30 * time.Second
	// idleKept is the remaining weight of releases before an idle time, so that few new releases outweigh them.
	idleKept = 8

	oneRelease  = 1 << 32
	oneWeight   = 1 << 20
	maxHold     = 1 << 40 // ns, 18 minutes: the most that counts between two releases
	maxCapacity = 1 << 20
)

// beginWait records the first waiter after an idle time, which does not count as draining.
func (p *pace) beginWait(now time.Duration) {
	if p.released > oneRelease/idleKept {
		p.forget(min(max(0, now-p.last), paceWindow-paceWindow/idleKept))
	}
	p.last, p.begun = now, true
}

// drained records a release from the queue; capacity is that of the stock.
func (p *pace) drained(now time.Duration, capacity int) {
	if p.begun {
		since := min(max(0, now-p.last), maxHold)
		p.forget(min(since, paceWindow/4))
		p.held += uint64(since) * counted(capacity)
		p.released += oneRelease
	}
	p.last, p.begun = now, true
}

// forget reduces the weight of the past by d / window, at least a millionth.
func (p *pace) forget(d time.Duration) {
	if d == 0 {
		return
	}
	keep := oneWeight - max(1, uint64(d*oneWeight/paceWindow))
	hi, lo := bits.Mul64(p.held, keep)
	p.held = hi<<44 | lo>>20
	hi, lo = bits.Mul64(p.released, keep)
	p.released = hi<<44 | lo>>20
}

// interval returns the time between two releases at a capacity, at most placeLast; placeDefault without any release. If
// requests wait, no slot has become free since the last release, so each slot is held for at least that long.
func (p *pace) interval(now time.Duration, waiting, capacity int) time.Duration {
	if p.released == 0 {
		return placeDefault
	}
	hold := ^uint64(0) // the mean, if it is not beyond all bounds
	if hi, lo := bits.Mul64(p.held, oneRelease); hi < p.released {
		hold, _ = bits.Div64(hi, lo, p.released)
	}
	if waiting > 0 {
		hold = max(hold, uint64(max(0, now-p.last)))
	}
	return time.Duration(min(hold/counted(capacity), uint64(placeLast))).Round(time.Microsecond)
}

// counted returns the capacity that counts: an idle pool takes one request, whatever the bounds.
func counted(capacity int) uint64 { return uint64(min(max(1, capacity), maxCapacity)) }
