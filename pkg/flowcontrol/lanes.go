package flowcontrol

import (
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// closeLane closes the lane of r, which could not be placed below the lower bound (above: but below the upper one there
// is room) or not at all, until a settlement or the endpoints change that.
func (c *RequestQueueController) closeLane(r *fairqueue.Request, above bool) {
	l := r.Owner.(*Lease)
	if !c.placer.HasReady(l.placement, nil) {
		c.queue.CloseLane(r, fairqueue.LaneDead)
		return
	}
	c.note(l).closed = true // first: a panic of the placer's must not leave a lane closed that nothing opens
	state := fairqueue.LaneFull
	if above {
		state = fairqueue.LaneBusy
	}
	c.queue.CloseLane(r, state)
}

// lendsAge reports whether starved, a waiter beyond its tier's threshold, makes its tier starved: its lane has room below
// the upper bound. Otherwise the lane is closed. The queue learns of a lane only what was tried there, so this is asked
// whenever an age decides.
func (c *RequestQueueController) lendsAge(starved *fairqueue.Request) (lends bool) {
	l := starved.Owner.(*Lease)
	c.asks(l, func() { // twice in vain ends it
		if lends = c.placer.HasRoom(l.placement, BelowUpper); !lends {
			c.closeLane(starved, false)
		}
	})
	return lends
}

// mayBypass reports whether nobody waits in the queue who goes before an arrival of the tier.
func (c *RequestQueueController) mayBypass(now time.Time, tier int) bool {
	promote := c.mayPromote()
	for {
		may, starved := c.queue.MayBypass(now, tier, promote)
		if starved == nil || c.lendsAge(starved) {
			return may
		}
	}
}
