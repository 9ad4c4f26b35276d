package flowcontrol

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// end is deferred by every event, with the lock held: it answers what the machine asks, passes its verdicts on, sets the
// timer and gives the lock back. Whoever has a verdict is woken then: earlier it would only run into the lock. own is the
// request that has arrived in this event, if one has.
func (c *RequestQueueController) end(now time.Time, own *waiter) {
	if p := recover(); p != nil {
		c.failed(now, p)
	}
	c.answer(now)
	c.machine.decided()
	var few [4]chan struct{}
	wakes := few[:0]
	for _, v := range c.machine.Verdicts() {
		switch w := v.Owner().(*waiter); {
		case w.preempted != nil: // it had its lease
			w.series.stock.Dec()
			close(w.preempted)
		case w.woken != nil:
			wakes = append(wakes, w.woken)
		}
	}
	if own != nil {
		c.place(own)
	}
	c.arm(now)
	c.mu.Unlock()
	for _, woken := range wakes {
		// A channel may have been given to another waiter meanwhile; that one finds no verdict and waits on. A wake-up that
		// was not yet noticed is enough.
		select {
		case woken <- struct{}{}:
		default:
		}
	}
}

// place gives a request that has just arrived what it needs where it stands.
func (c *RequestQueueController) place(w *waiter) {
	w.tier = c.tierSeries[w.Tier()]
	switch w.Stage() {
	case dispatch.StageWaiting:
		w.woken = c.channels.Get().(chan struct{})
	case dispatch.StageGranted, dispatch.StageSent:
		c.tell(w)
	case dispatch.StageNew, dispatch.StageStreaming, dispatch.StageEnded:
	}
}

// tell gives a granted request its lease.
func (c *RequestQueueController) tell(w *waiter) {
	c.machine.Told(&w.Waiter)
	if w.held = w.Lease(); w.held.Preemptible() {
		w.preempted = make(chan struct{})
	}
}

// answer tells the machine whether the clients of those that may preempt are still there: one that is gone preempts
// nobody.
func (c *RequestQueueController) answer(now time.Time) {
	for v := c.machine.Preemptor(); v != nil; v = c.machine.Preemptor() {
		c.contain(now, func() {
			if err := v.Owner().(*waiter).ctx.Err(); err != nil {
				c.machine.PreemptorGone(now, causeOf(err))
			} else {
				c.machine.Preempt(now)
			}
		})
	}
}

// causeOf tells the client's own deadline from the client's going.
func causeOf(err error) Outcome {
	if errors.Is(err, context.DeadlineExceeded) {
		return OutcomeDeadlineExceeded
	}
	return OutcomeClientCancelled
}

// contain runs a part of an event; the machine is told of a panic in it.
func (c *RequestQueueController) contain(now time.Time, part func()) {
	defer func() {
		if p := recover(); p != nil {
			c.failed(now, p)
		}
	}()
	part()
}

// failed tells the machine of a panic, and of those in what it then does.
func (c *RequestQueueController) failed(now time.Time, p any) {
	if now.IsZero() { // the event needed no time
		now = time.Now()
	}
	c.failure = fmt.Errorf("flowcontrol: a decision: panic: %v\n%s", p, debug.Stack())
	c.wakePopper() // which logs it
	c.contain(now, func() { c.machine.Failed(now, c.failure) })
}

// contains runs a step of another's under the lock. A panic in it is nobody's: it is counted and logged, and what comes
// after goes on.
func (c *RequestQueueController) contains(step func()) {
	defer func() {
		if p := recover(); p != nil {
			c.failure = fmt.Errorf("flowcontrol: endpoints: panic: %v\n%s", p, debug.Stack())
			c.machine.NoteFailure()
			c.wakePopper()
		}
	}()
	step()
}

// arm sets the timer to the next moment at which something is due. It only moves it forward: a timer that stands too
// early finds nothing to do and is armed anew.
func (c *RequestQueueController) arm(now time.Time) {
	at, waits := c.machine.Next(now)
	switch {
	case waits && (c.armed.IsZero() || at.Before(c.armed)):
		c.armed = at
		c.timer.Reset(max(0, at.Sub(now)))
	case !waits && !c.armed.IsZero():
		c.timer.Stop()
		c.armed = time.Time{}
	}
}
