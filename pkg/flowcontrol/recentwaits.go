package flowcontrol

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// recentWaits counts the waits of the last recentMinutes minutes, each rounded to an eighth of the next lower power of
// two, so that quantiles are exact within a sixteenth. Its memory does not depend on their number.
//
// Counting a wait reads no clock: only readers advance the minutes. So all waits since the last reading count in one
// minute, even if that reading was longer ago.
type recentWaits struct {
	newest  atomic.Uint32 // the minute that counts now
	longest atomic.Int64  // the longest wait ever, in nanoseconds: no quantile is above it
	minutes [recentMinutes][waitSteps]atomic.Uint32

	mu    sync.Mutex
	begun time.Time // guarded by mu: when the newest minute has begun
}

const (
	recentMinutes = 5
	waitUnit      = 100 * time.Microsecond
	longestWait   = 1 << 30 // units: more than a day
	waitSteps     = 8 * 28
)

// WaitQuantiles are quantiles of recent waits. N is the number of waits.
type WaitQuantiles struct {
	N                uint64
	Median, P90, P99 time.Duration
}

// stepOf returns the step of a wait: one for each of the first sixteen units, then eight for each power of two.
func stepOf(wait time.Duration) int {
	units := uint64(min(max(0, wait/waitUnit), longestWait-1))
	double := max(0, bits.Len64(units)-4)
	return 8*double + int(units>>double)
}

// middleOf returns the middle of a step.
func middleOf(step int) time.Duration {
	if step < 16 {
		return time.Duration(step)*waitUnit + waitUnit/2
	}
	double := step/8 - 1
	return time.Duration(step-8*double)*waitUnit<<double + waitUnit<<double/2
}

// observe adds a wait that has ended.
func (r *recentWaits) observe(wait time.Duration) {
	r.minutes[r.newest.Load()][stepOf(wait)].Add(1)
	for longest := r.longest.Load(); int64(wait) > longest; longest = r.longest.Load() {
		r.longest.CompareAndSwap(longest, int64(wait))
	}
}

// advance forgets the minutes that have passed, except the waits since the last reading.
func (r *recentWaits) advance(now time.Time) {
	if r.begun.IsZero() {
		r.begun = now
	}
	passed := now.Sub(r.begun) / time.Minute
	if passed <= 0 {
		return
	}
	for range min(passed, recentMinutes-1) {
		next := (r.newest.Load() + 1) % recentMinutes
		for step := range r.minutes[next] {
			r.minutes[next][step].Store(0)
		}
		r.newest.Store(next)
	}
	r.begun = r.begun.Add(passed * time.Minute)
}

// quantiles returns the quantiles of the recent waits.
func (r *recentWaits) quantiles(now time.Time) (q WaitQuantiles) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	var sums [waitSteps]uint64
	for i := range r.minutes {
		for step := range r.minutes[i] {
			n := uint64(r.minutes[i][step].Load())
			sums[step] += n
			q.N += n
		}
	}
	rank := func(percent uint64) time.Duration {
		left := (q.N*percent + 99) / 100
		for step, n := range sums {
			if n >= left {
				return min(middleOf(step), time.Duration(r.longest.Load()))
			}
			left -= n
		}
		return 0
	}
	if q.N > 0 {
		q.Median, q.P90, q.P99 = rank(50), rank(90), rank(99)
	}
	return q
}
