package flowcontrol

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// pump is the pop loop: it releases waiters for as long as the band, the reservations and the placer let one through.
// An unexpected failure loses nobody: whoever was not yet popped stays in the queue, and a popper tries again.
func (c *RequestQueueController) pump(now time.Time) {
	if c.queue.Len() == 0 {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			c.panicked("dequeueing", r)
			c.fail(now, c.failure)
		}
	}()
	c.expire(now)
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
			if !admit.Promote || !c.openForStarved(now) {
				return
			}
			if next = c.queue.Peek(now, fairqueue.Admit{Promote: true}); next.Request == nil {
				return
			}
		}
		if c.tooSoon(now) {
			c.spaced = true
			return
		}
		c.counts.attempts++
		if c.fault != nil {
			if err := c.fault("pop"); err != nil {
				c.fail(now, err)
				return
			}
		}
		c.release(now, next)
	}
}

// tooSoon says whether Config.ReleaseSpacing has not passed since the last release. While nothing is in flight there is
// nothing to keep apart from.
func (c *RequestQueueController) tooSoon(now time.Time) bool {
	return c.config.ReleaseSpacing > 0 && c.ledger.Stock() > 0 && now.Before(c.released.Add(c.config.ReleaseSpacing))
}

// release places the candidate and grants it, or parks its flow, or closes its lane.
func (c *RequestQueueController) release(now time.Time, next fairqueue.Candidate) {
	l := next.Request.Owner.(*Lease)
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
	switch {
	case len(full) > 0 && c.placer.HasRoom(l.placement, bound):
		c.park(next.Request, l.flow)
	case !next.Promoted && !c.placer.HasRoom(l.placement, BelowUpper) && c.preemptFor(now, l):
		c.granted(now, next, l)
	default:
		dead := !c.placer.HasReady(l.placement, nil)
		c.queue.CloseLane(next.Request, dead)
		if !dead {
			c.closed[next.Request.Lane] = l.placement
		}
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
	c.backoff.drained(now)
	l.flow.backoff.drained(now)
	l.stage = stageGranted
	l.waited = max(0, now.Sub(l.queued.Arrived())) // a clock that was read before the lock may be behind
	l.wake()
	c.repark(l.flow)
}

// openLanes opens the closed lanes that a settlement at e may have made room in. There are as many as different
// subsets wait at full backends, not as many as requests.
func (c *RequestQueueController) openLanes(e Endpoint) {
	for lane, p := range c.closed {
		if c.placer.CanServe(p, e) {
			delete(c.closed, lane)
			c.queue.OpenLane(lane)
		}
	}
}

// openForStarved opens the lanes that were closed at their lower bound while somebody is starved, who may go up to the
// upper one. It says whether there are any.
func (c *RequestQueueController) openForStarved(now time.Time) (some bool) {
	if len(c.closed) == 0 || !c.queue.Starving(now) {
		return false
	}
	for lane, p := range c.closed {
		if c.placer.HasRoom(p, BelowUpper) {
			delete(c.closed, lane)
			c.queue.OpenLane(lane)
			some = true
		}
	}
	return some
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

// panicked counts a panic in a decision and remembers it for the popper to log.
func (c *RequestQueueController) panicked(where string, p any) {
	c.counts.panics++
	c.failure = fmt.Errorf("flowcontrol: %s: panic: %v\n%s", where, p, debug.Stack())
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
