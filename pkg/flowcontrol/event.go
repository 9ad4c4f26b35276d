package flowcontrol

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// end is deferred by every event, with the lock held: it answers the machine's question, passes its verdicts on, sets
// the timer and releases the lock. Then it wakes the goroutines that have a verdict; before, they would only block on
// the lock. own is the request that has arrived in this event, or nil.
func (c *RequestQueueController) end(now time.Time, own *waiter) {
	if p := recover(); p != nil {
		c.failed(now, p)
	}
	if c.machine.Preemptor() != nil {
		c.answer(now)
	}
	c.machine.recordVerdicts()
	var few [4]chan struct{}
	wakes := few[:0]
	for _, v := range c.machine.Verdicts() {
		switch w := v.Owner().(*waiter); {
		case w.preempted != nil: // it had its lease
			w.series.stock.Dec()
			w.flowSeries.inFlight.Add(-1)
			close(w.preempted)
		case w.woken != nil:
			wakes = append(wakes, w.woken)
		}
	}
	if own != nil {
		c.place(own)
	}
	if c.machine.Waiting() > 0 || !c.armed.IsZero() { // otherwise the timer is not needed and not set
		c.arm(now)
	}
	c.mu.Unlock()
	for _, woken := range wakes {
		// The channel may already belong to another waiter, which then finds no verdict and keeps waiting. One pending
		// wake-up is enough.
		select {
		case woken <- struct{}{}:
		default:
		}
	}
}

// place sets up a request that has just arrived, depending on its stage.
func (c *RequestQueueController) place(w *waiter) {
	w.tier = c.tierSeries[w.Tier()]
	switch w.Stage() {
	case dispatch.StageWaiting:
		w.woken = c.channels.Get().(chan struct{})
	case dispatch.StageGranted, dispatch.StageSent:
		c.tell(w)
	case dispatch.StageNew, dispatch.StageEnded:
		c.live.remove(w)
	case dispatch.StageStreaming:
	}
}

// tell gives a granted request its lease.
func (c *RequestQueueController) tell(w *waiter) {
	c.machine.Told(&w.Waiter)
	w.held, w.reads = true, w.Granted().Reads()
	if w.Granted().Preemptible() {
		w.preempted = make(chan struct{})
	}
}

// answer tells the machine whether preemptors' clients are still connected. A waiter without its client does not
// preempt.
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

// causeOf distinguishes the client's own deadline from its disconnect.
func causeOf(err error) Outcome {
	if errors.Is(err, context.DeadlineExceeded) {
		return OutcomeDeadlineExceeded
	}
	return OutcomeClientCancelled
}

// contain runs part of an event; a panic in it is reported to the machine.
func (c *RequestQueueController) contain(now time.Time, part func()) {
	defer func() {
		if p := recover(); p != nil {
			c.failed(now, p)
		}
	}()
	part()
}

// failed reports a panic to the machine, and any further panics while the machine handles it.
func (c *RequestQueueController) failed(now time.Time, p any) {
	if now.IsZero() { // the event needed no time
		now = time.Now()
	}
	c.failure = fmt.Errorf("flowcontrol: a decision: panic: %v\n%s", p, debug.Stack())
	c.wakePopper() // a popper logs the failure
	c.contain(now, func() { c.machine.Failed(now, c.failure) })
}

// callBack runs a callback under the lock. A panic in it is counted and logged, and the event continues.
func (c *RequestQueueController) callBack(step func()) {
	defer func() {
		if p := recover(); p != nil {
			c.failure = fmt.Errorf("flowcontrol: endpoints: panic: %v\n%s", p, debug.Stack())
			c.machine.NoteFailure()
			c.wakePopper()
		}
	}()
	step()
}

// arm sets the timer to the next time at which something is due. It only moves the timer forward: if it fires too
// early, nothing is due and it is set again.
func (c *RequestQueueController) arm(now time.Time) {
	left, waits := c.machine.Next(now)
	switch {
	case waits && (c.armed.IsZero() || left < c.armed.Sub(now)):
		c.armed = now.Add(left)
		c.timer.Reset(max(0, left))
	case !waits && !c.armed.IsZero():
		c.timer.Stop()
		c.armed = time.Time{}
	}
}
