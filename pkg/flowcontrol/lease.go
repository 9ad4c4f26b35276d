package flowcontrol

import (
	"context"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// waiter is one request, from TryEnqueue or PassOn to its end: what the machine knows of it, and what the goroutine that
// waits and the metrics need.
type waiter struct {
	dispatch.Waiter
	controller *RequestQueueController
	ctx        context.Context // the request's own
	series     *series         // its metrics
	tier       *tierSeries     // and those of its tier
	flowSeries *flowSeries     // and those of its flow; nil: not looked for yet

	// Guarded by the controller's lock until the request's goroutine has its verdict.
	woken     chan struct{}   // 1 deep; nil: it need not wait
	held      *dispatch.Lease // nil: it has none
	preempted chan struct{}   // closed at preemption; nil: it cannot be preempted
	told      bool            // its preemption is counted
}

// Lease is one request's holding of stock, from dispatch to completion. It is settled exactly once, by
// OnRequestComplete or by preemption, whichever comes first. It is the waiter that was granted, so that a request costs
// one allocation.
type Lease waiter

// await blocks until there may be a verdict or the client is gone.
func (w *waiter) await() {
	select {
	case <-w.woken:
	case <-w.ctx.Done():
	}
}

// Endpoint is the endpoint that was picked and reserved for the request.
func (l *Lease) Endpoint() Endpoint { return l.held.Endpoint() }

// Queued is how long the request waited in the queue; 0 and false for a bypass.
func (l *Lease) Queued() (time.Duration, bool) { return l.Waited(), !l.Bypassed() }

// Preempted is closed when the lease is taken for a higher tier: the stream then answers with ErrPreempted's
// response. It is nil (blocks for ever) for a lease that can never be preempted.
func (l *Lease) Preempted() <-chan struct{} { return l.preempted }

// OnFirstByte is told before the response headers are let through to the client. Nil: from now on the lease is
// never preempted. Otherwise the preemption came first: the error is a *Rejection of ErrPreempted, answer with it.
func (l *Lease) OnFirstByte() error {
	if l.preempted == nil {
		return nil
	}
	l.controller.mu.Lock()
	defer l.controller.mu.Unlock()
	if !l.controller.machine.FirstByte(l.held) {
		return rejectionOf(&l.Waiter)
	}
	return nil
}

// OnServed is told that the endpoint that served the request is another than the one picked: Envoy had gone on to a
// fallback. The lease, and with it the endpoint's stock, moves there.
func (l *Lease) OnServed(e Endpoint) {
	now := time.Now()
	l.controller.mu.Lock()
	defer l.controller.end(now, nil)
	l.controller.machine.ServedElsewhere(now, l.held, e)
}

// OnRequestComplete settles the lease: the stock falls, and whoever waits for it is released. Only the first call
// counts, so it may be deferred and called early as well.
func (l *Lease) OnRequestComplete(done Completion) {
	w := (*waiter)(l)
	switch settled, preempted := l.controller.complete(w); {
	case settled:
		w.series.completed(w, done)
	case preempted != nil:
		w.series.preempted(w, preempted)
	}
}

// complete settles the lease; a preempted one, which was settled before, gives its rejection, once.
func (c *RequestQueueController) complete(w *waiter) (settled bool, preempted *Rejection) {
	c.mu.Lock()
	var now time.Time
	if c.machine.Waiting() > 0 { // nothing else needs the time
		now = time.Now()
	}
	defer c.end(now, nil)
	settled = w.Stage() != dispatch.StageEnded
	c.machine.Complete(now, w.held)
	if !settled && w.Outcome() == OutcomePreempted && !w.told {
		w.told = true
		preempted = rejectionOf(&w.Waiter)
	}
	return settled, preempted
}
