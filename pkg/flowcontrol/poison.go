package flowcontrol

import (
	"fmt"
	"runtime/debug"
	"time"
)

// A waiter for whom the placer panics each time would stop the pop loop whenever it is the next. So every question to
// the placer has a name to it, that of the request it is asked for, and the second panic in a row for one waiter ends it
// as internal. What it held or had reserved is given back; everybody else goes on.

// mostPanics is how many panics one call of pump goes on after. Where every waiter's placement panics the rest is left to
// a popper, so that the lock is not held for all of them.
const mostPanics = 16

// panicsEnd is how many panics in a row end a waiter.
const panicsEnd = 2

// asks runs ask, which asks the placer for l, and reports whether it came to its end. A panic in it is l's.
func (c *RequestQueueController) asks(l *Lease, ask func()) (ok bool) {
	before := c.asking
	c.asking = l
	defer func() {
		c.asking = before
		if p := recover(); p != nil {
			c.panicked("placement", p)
			c.strike(l)
		}
	}()
	ask()
	return true
}

// contains runs step. A panic in it is nobody's: it is counted and logged, and what comes after step goes on.
func (c *RequestQueueController) contains(where string, step func()) {
	defer func() {
		if p := recover(); p != nil {
			c.panicked(where, p)
			c.wakePopper() // which logs it
		}
	}()
	step()
}

// strike notes a panic of the placer's for l. A waiter gives back what was reserved for it meanwhile, and the second
// time in a row is its end. Whoever waits no more has its lease or its end, and keeps it.
func (c *RequestQueueController) strike(l *Lease) {
	c.wakePopper() // which logs it
	if l.stage != stageWaiting {
		return
	}
	c.undo(l)
	now := time.Now()
	l.struck = now.UnixNano()
	if l.panics++; l.panics < panicsEnd {
		return
	}
	c.queue.Remove(&l.queued)
	l.end(c.failure, c.retryAfter(now, l, c.failure))
	c.leaves(l)
	c.arm(now)
}

// undo gives back what a request holds that did not get as far as its grant.
func (c *RequestQueueController) undo(l *Lease) {
	switch {
	case l.held.Held():
		c.settle(l)
	case l.endpoint != NoEndpoint:
		c.giveBack(l.endpoint)
	}
	l.endpoint = NoEndpoint
}

// giveBack releases a reservation at the placer.
func (c *RequestQueueController) giveBack(e Endpoint) {
	defer func() {
		if p := recover(); p != nil {
			c.panicked("settlement", p)
			c.wakePopper()
		}
	}()
	c.placer.Release(e)
}

// panicked counts a panic in a decision and remembers it for the popper to log.
func (c *RequestQueueController) panicked(where string, p any) {
	c.counts.panics++
	c.failure = fmt.Errorf("flowcontrol: %s: panic: %v\n%s", where, p, debug.Stack())
}
