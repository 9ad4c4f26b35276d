package flowcontrol

import (
	"errors"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Rejected clients come back to the millisecond, in step, so each rejection gets a moment of its own: the next free
// place of the drain schedule. Places are one drain interval apart, the first is behind those who wait now.
const (
	placeDefault = 10 * time.Millisecond // of a schedule that has not drained yet
	placeLeast   = time.Millisecond
	placeFirst   = time.Second
	placeLast    = 60 * time.Second
	spreadLast   = 30 * time.Second // places beyond the last one are spread over this much more
)

// schedule is a drain schedule: of the pool, or of one flow.
type schedule struct {
	interval time.Duration // smoothed time between two releases; 0: no sample
	last     time.Time     // of the last release
	next     time.Time     // the next free place
	beyond   uint64        // how many were spread
}

// waits is told that somebody waits where nobody did: the time before was idleness, not draining.
func (s *schedule) waits(now time.Time) { s.last = now }

// drained is told of a release from the queue.
func (s *schedule) drained(now time.Time) {
	if !s.last.IsZero() {
		gap := now.Sub(s.last)
		if s.interval == 0 {
			s.interval = gap
		} else {
			s.interval += (gap - s.interval) / 8
		}
	}
	s.last = now
}

// place is the time until the next free place, for a client that would stand behind so many who wait.
func (s *schedule) place(now time.Time, waiting int) time.Duration {
	step := placeDefault
	if s.interval > 0 {
		step = max(placeLeast, min(s.interval, placeLast))
	}
	first := placeFirst
	if ahead := float64(step) * float64(waiting); ahead > float64(first) {
		first = time.Duration(min(ahead, float64(placeLast)))
	}
	at := now.Add(first)
	if s.next.After(at) {
		at = s.next
	}
	wait := at.Sub(now)
	if wait <= placeLast {
		s.next = at.Add(step)
		return wait
	}
	// A low-discrepancy sequence: any run of it is spread evenly, each a millisecond of its own.
	s.beyond++
	const golden = 0x9e3779b97f4a7c15
	share := (s.beyond * golden) >> 44 // 20 bits
	return placeLast + time.Duration(share)*spreadLast>>20
}

// soon spreads those that should come back at once over 1 to 1,000 ms.
func (s *schedule) soon() time.Duration {
	s.beyond++
	const golden = 0x9e3779b97f4a7c15
	return time.Duration((s.beyond*golden)>>44*1000>>20+1) * time.Millisecond
}

// retryAfter is when the client of a rejected request should come back; 0: no word of it.
func (c *RequestQueueController) retryAfter(now time.Time, l *Lease, err error) time.Duration {
	switch {
	case errors.Is(err, ErrPreempted), errors.Is(err, ErrDraining):
		return c.backoff.soon()
	case errors.Is(err, fairqueue.ErrInsufficientFlowCapacity) && l.flow != nil:
		return l.flow.backoff.place(now, l.flow.waiting)
	case errors.Is(err, errDeadline):
		return 0
	default:
		return c.backoff.place(now, c.queue.Len())
	}
}
