package flowcontrol

import (
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// pump is the pop loop: it releases waiters for as long as the band, the reservations and the placer let one through.
// An unexpected failure loses nobody: whoever was not yet popped stays in the queue, and a popper tries again. A waiter
// for whom the placer panics is tried again at once, and ended by the second time (poison.go): the others go on.
func (c *RequestQueueController) pump(now time.Time) {
	for range mostPanics {
		if c.queue.Len() == 0 || c.pumped(now) {
			return
		}
	}
	c.fail(now, c.failure)
}

// pumped is the pop loop; false: it ended in a panic that one waiter is to blame for.
func (c *RequestQueueController) pumped(now time.Time) (done bool) {
	defer func() {
		if p := recover(); p != nil {
			l := c.asking
			c.asking = nil
			c.panicked("dequeueing", p)
			if done = l == nil; done {
				c.fail(now, c.failure)
				return
			}
			c.strike(l)
		}
	}()
	c.expire(now)
	if !c.config.Enabled {
		c.releaseEverybody(now)
		return true
	}
	c.spaced = false
	for c.queue.Len() > 0 {
		admit := fairqueue.Admit{Promote: c.mayPromote()}
		if c.ledger.BelowLower() {
			admit.Tiers = fairqueue.TierSet(c.ledger.AvailableTo())
		}
		next := fairqueue.Candidate{}
		if admit.Tiers != 0 || admit.Promote {
			next = c.queue.Peek(now, admit)
		}
		if next.Request == nil {
			if c.preemptForHeads(now) {
				continue
			}
			return true
		}
		if next.Promoted && !c.lendsAge(next.Starved) {
			continue
		}
		if c.tooSoon(now) {
			c.spaced = true
			return true
		}
		c.counts.attempts++
		if c.fault != nil {
			if err := c.fault("pop"); err != nil {
				c.fail(now, err)
				return true
			}
		}
		c.release(now, next)
	}
	return true
}

// tooSoon says whether Config.ReleaseSpacing has not passed since the last release. While nothing is in flight there is
// nothing to keep apart from.
func (c *RequestQueueController) tooSoon(now time.Time) bool {
	return c.config.ReleaseSpacing > 0 && c.ledger.Stock() > 0 && now.Before(c.released.Add(c.config.ReleaseSpacing))
}

// release places the candidate and grants it, or parks its flow, or closes its lane.
func (c *RequestQueueController) release(now time.Time, next fairqueue.Candidate) {
	l := next.Request.Owner.(*Lease)
	c.asking = l
	c.place(now, next, l)
	c.asking = nil
	if l.panics > 0 && now.UnixNano() > l.struck {
		l.panics = 0 // not twice in a row
	}
}

// place is release for l, in whose name the placer is asked.
func (c *RequestQueueController) place(now time.Time, next fairqueue.Candidate, l *Lease) {
	if c.atCap(l.flow) {
		c.park(next.Request, l.flow)
		return
	}
	bound := BelowLower
	if next.Promoted {
		bound = BelowUpper
	}
	full := c.fullFor(l.flow)
	if e := c.placer.Place(l.placement, bound, full); e != NoEndpoint {
		c.take(l, e, next.Promoted)
		c.granted(now, next, l)
		return
	}
	above := !next.Promoted && c.placer.HasRoom(l.placement, BelowUpper)
	switch {
	case len(full) > 0 && c.placer.HasRoom(l.placement, bound):
		c.park(next.Request, l.flow)
	case !next.Promoted && !above && c.preemptFor(now, l):
		c.granted(now, next, l)
	default:
		c.closeLane(next.Request, above)
	}
}

// granted takes the candidate, which has its lease, out of the queue and tells it.
func (c *RequestQueueController) granted(now time.Time, next fairqueue.Candidate, l *Lease) {
	c.queue.Pop(next)
	c.leaves(l)
	c.counts.successes++
	if next.Promoted {
		c.counts.promotions[next.Request.Tier]++
	}
	c.released = now
	c.pace.drained(now)
	l.flow.pace.drained(now)
	l.stage = stageGranted
	l.waited = max(0, now.Sub(l.queued.Arrived())) // a clock that was read before the lock may be behind
	l.wake()
	c.repark(l.flow)
}

// expire ends the waits that are over.
func (c *RequestQueueController) expire(now time.Time) {
	if c.queue.Len() == 0 {
		return
	}
	c.expired = c.queue.CleanupExpired(now, c.expired[:0])
	for i, r := range c.expired {
		l := r.Owner.(*Lease)
		err := ErrExpiredTTL
		if !r.TTLOver(now) {
			err = errDeadline
		}
		c.leaves(l)
		l.end(err, c.retryAfter(now, l, err))
		c.expired[i] = nil
	}
}

// fail remembers an unexpected failure for the popper to log, and lets one try again after a short wait.
func (c *RequestQueueController) fail(now time.Time, err error) {
	c.failure = err
	wait := c.config.PopperWaitBase
	if c.config.PopperWaitJitterMax > 0 {
		wait += time.Duration(c.jitter.Int64N(int64(c.config.PopperWaitJitterMax)))
	}
	c.retryAt = now.Add(wait)
	c.arm(now)
}
