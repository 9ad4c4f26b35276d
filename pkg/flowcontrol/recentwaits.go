package flowcontrol

import (
	"math/bits"
	"sync"
	"time"
)

// recentWaits has the waits of the last recentMinutes minutes, each to an eighth of the next lower power of two, so that
// their quantiles are known within a sixteenth. It takes the same memory however many there are.
type recentWaits struct {
	mu      sync.Mutex
	minute  int64 // the newest one
	minutes [recentMinutes][waitSteps]uint32
}

const (
	recentMinutes = 5
	waitUnit      = 100 * time.Microsecond
	longestWait   = 1 << 30 // units: more than a day
	waitSteps     = 8 * 28
)

// WaitQuantiles are quantiles of recent waits. N is their number.
type WaitQuantiles struct {
	N                uint64
	Median, P90, P99 time.Duration
}

// stepOf returns the step of a wait: its own for each of the first sixteen units, from there eight for each power of two.
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

// observe adds a wait that has ended now.
func (r *recentWaits) observe(now time.Time, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	r.minutes[r.minute%recentMinutes][stepOf(wait)]++
}

// advance forgets the minutes that have passed.
func (r *recentWaits) advance(now time.Time) {
	minute := max(r.minute, now.Unix()/60) // a clock that is set back changes nothing
	for m := max(r.minute+1, minute-recentMinutes+1); m <= minute; m++ {
		clear(r.minutes[m%recentMinutes][:])
	}
	r.minute = minute
}

// quantiles returns the quantiles of the recent waits.
func (r *recentWaits) quantiles(now time.Time) (q WaitQuantiles) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	var sums [waitSteps]uint64
	for i := range r.minutes {
		for step, n := range r.minutes[i] {
			sums[step] += uint64(n)
			q.N += uint64(n)
		}
	}
	rank := func(percent uint64) time.Duration {
		left := (q.N*percent + 99) / 100
		for step, n := range sums {
			if n >= left {
				return middleOf(step)
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
