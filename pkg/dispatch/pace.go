package dispatch

import (
	"math/bits"
	"time"
)

// A pace measures how fast a queue drains: the pool's, or one flow's. It is releases over a window of time in which
// requests have waited, not a mean of the times between releases: slots that are taken together end together, and then
// nearly all of those times are 0.
//
// Time counts by the capacity that there was, so what is measured is for how long a release has a slot. That stays the
// same when slots come or go, and so the pace is right at once, not a window later.
//
// Times are durations since the queue's epoch, since each release computes two of them.
type pace struct {
	held     uint64        // the time in which requests have waited, times the capacity, in ns
	released uint64        // the releases in it, in parts of oneRelease
	last     time.Duration // until then the time is counted
	begun    bool          // there is a last
}

const (
	// paceWindow is the time within which old releases lose most of their weight; at one release they lose a quarter at
	// most, so the first slots of several that end together do not look like all of them.
	paceWindow = 30 * time.Second
	// idleKept is the weight that releases from before an idle time still have, so that few new ones outweigh them.
	idleKept = 8

	oneRelease  = 1 << 32
	oneWeight   = 1 << 20
	maxHold     = 1 << 40 // ns, 18 minutes: of the time between two releases no more counts
	maxCapacity = 1 << 20
)

// beginWait records that a request waits where none did: the time before was idle time, not draining.
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

// forget takes from the weight of what was the part that a time is of the window, or a millionth.
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

// interval returns the time between two releases at a capacity, at most placeLast; placeDefault if there was no release.
// If requests wait, no slot has come free since the last release, so each is held for at least as long as that.
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
