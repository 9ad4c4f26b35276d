package flowcontrol

import (
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// admit decides an arrival: bypass, reject or enqueue. It leaves l sent, ended, waiting, or already granted.
func (c *RequestQueueController) admit(now time.Time, l *Lease) {
	if c.draining {
		c.reject(now, l, ErrDraining)
		return
	}
	if !c.config.Enabled {
		c.passOn(now, l)
		return
	}
	c.expire(now)
	c.enters(l)
	if c.mayBypass(now, l.queued.Tier) && c.goes(now, l) {
		c.queue.Bypassed()
		c.leaves(l)
		c.repark(l.flow)
		l.stage, l.bypass = stageSent, true
		if c.queue.Len() > 0 { // a victim may wait again, or a waiter of its flow may go now
			c.pump(now)
		}
		c.arm(now)
		return
	}
	ready := c.ledger.Ready() > 0 && c.placer.HasReady(l.placement, nil)
	switch {
	case !ready && !c.config.HoldWhenEmpty:
		c.leaves(l)
		c.reject(now, l, ErrNoEndpoint)
		return
	case !c.config.EnqueueAll && !c.highest(l.queued.Tier):
		c.leaves(l)
		c.reject(now, l, ErrShed)
		return
	}
	if err := c.push(now, l); err != nil {
		c.reject(now, l, err)
		c.leaves(l)
		return
	}
	if !ready {
		c.queue.CloseLane(&l.queued, fairqueue.LaneDead)
	}
	c.repark(l.flow)
	c.pump(now)
	c.arm(now)
}

// passOn places a request without asking band or queue; only an endpoint must be ready.
func (c *RequestQueueController) passOn(now time.Time, l *Lease) {
	if c.draining {
		c.reject(now, l, ErrDraining)
		return
	}
	e := c.placer.Place(l.placement, Unbounded, nil)
	if e == NoEndpoint {
		c.reject(now, l, ErrNoEndpoint)
		return
	}
	c.enters(l)
	c.take(l, e, false)
	c.leaves(l)
	c.repark(l.flow)
	l.stage, l.bypass = stageSent, true
}

// goes takes a lease for an arrival that need not stand behind anybody: because there is room, or by preemption.
func (c *RequestQueueController) goes(now time.Time, l *Lease) bool {
	if c.atCap(l.flow) {
		return false
	}
	if c.ledger.BelowUpper() && c.ledger.Available(l.queued.Tier) > 0 {
		full := c.fullFor(l.flow)
		if e := c.placer.Place(l.placement, BelowUpper, full); e != NoEndpoint {
			c.take(l, e, false)
			return true
		}
		if len(full) > 0 && c.placer.HasRoom(l.placement, BelowUpper) {
			return false // its own cap stands in its way, not another
		}
	}
	return c.preemptFor(now, l)
}

// mayPromote says whether the stock lets a starved head through: below the upper bound, and with the promoted leases
// in flight below max(1, budget × capacity).
func (c *RequestQueueController) mayPromote() bool {
	if !c.ledger.BelowUpper() {
		return false
	}
	budget := c.config.Queue.PromotionBudget
	limit := max(1, int(budget*int64(c.ledger.Capacity())/1_000_000))
	return budget >= 1_000_000 || c.ledger.Promoted() < limit
}

// highest says whether the tier is the one whose requests are critical.
func (c *RequestQueueController) highest(tier int) bool { return c.queue.Highest(tier) }

func (c *RequestQueueController) push(now time.Time, l *Lease) error {
	if c.fault != nil {
		if err := c.fault("push"); err != nil {
			return err
		}
	}
	displaced, err := c.queue.Push(now, &l.queued)
	if displaced != nil {
		d := displaced.Owner.(*Lease)
		c.counts.displaced[displaced.Tier]++
		c.leaves(d)
		d.end(ErrDisplaced, c.retryAfter(now, d, ErrDisplaced))
	}
	if err != nil {
		return err
	}
	if c.queue.Len() == 1 {
		c.pace.waits(now)
	}
	if l.flow.waiting == 1 {
		l.flow.pace.waits(now)
	}
	l.stage = stageWaiting
	l.queuedUp = true
	c.hunts(l)
	l.woken = c.channel.Get().(chan struct{})
	return nil
}

func (c *RequestQueueController) reject(now time.Time, l *Lease, err error) {
	l.stage = stageEnded
	l.err = err
	l.retry = c.retryAfter(now, l, err)
}
