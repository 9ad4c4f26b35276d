package flowcontrol

import (
	"context"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// waiter is one request, from TryEnqueue or PassOn to its end: the machine's part, and the fields of the waiting
// goroutine and the metrics.
type waiter struct {
	dispatch.Waiter
	series     *series         // its metrics
	tier       *tierSeries     // and those of its tier
	flowSeries *flowSeries     // and those of its flow
	ctx        context.Context // the request's own

	// Guarded by the controller's lock until the request's goroutine has its verdict.
	woken     chan struct{} // of capacity 1; nil if it does not wait
	preempted chan struct{} // closed at preemption; nil if it cannot be preempted
	held      bool          // it has a lease, or had one
	told      bool          // its preemption has been counted
	reads     bool          // when it was told, its endpoint had to read its prompt, where that is counted
	place     uint32        // its index in RequestQueueController.live, from 1; 0: it is not there
}

// Lease is one request's holding of stock, from dispatch to completion. It is settled exactly once, by
// OnRequestComplete or by preemption, whichever comes first. It is the waiter that was granted, so that a request costs
// one allocation.
type Lease waiter

func (l *Lease) controller() *RequestQueueController { return l.series.metrics.controller }

// Queued returns the time that the request waited in the queue; ok is false for a bypass.
func (l *Lease) Queued() (time.Duration, bool) { return l.Waited(), !l.Bypassed() }

// Facts returns the facts of the decision, or nil without Request.Explain. It copies them if a preemption may still be
// noted.
func (l *Lease) Facts() *Facts {
	l.controller().mu.Lock()
	defer l.controller().mu.Unlock()
	return l.Waiter.Facts()
}

// Quota returns the rest of the tenant's quota, as of the request's arrival; nil if no quota counts the request.
func (l *Lease) Quota() *QuotaStanding {
	if s, ok := l.Waiter.Quota(); ok {
		return &s
	}
	return nil
}

// Preempted returns a channel that is closed when the lease is preempted: the stream then answers with the response of
// ErrPreempted. It is nil (blocks for ever) for a lease that can never be preempted.
func (l *Lease) Preempted() <-chan struct{} { return l.preempted }

// OnFirstByte must be called before the response headers go to the client. If it returns nil, the lease can no longer
// be preempted. Otherwise it was preempted before: the error is a *Rejection with ErrPreempted, the answer to send.
func (l *Lease) OnFirstByte() error {
	if l.preempted == nil {
		return nil
	}
	l.controller().mu.Lock()
	defer l.controller().mu.Unlock()
	if !l.controller().machine.FirstByte(l.Granted()) {
		return rejectionOf(&l.Waiter)
	}
	return nil
}

// OnPrefilled must be called when the answer of a request with a prefill engine begins. It frees the request's slot
// there.
func (l *Lease) OnPrefilled() {
	now := time.Now()
	l.controller().mu.Lock()
	defer l.controller().end(now, nil)
	l.controller().machine.Prefilled(now, l.Granted())
}

// OnFirstToken must be called when the first token of an answer is seen: the endpoint has read the prompt.
func (l *Lease) OnFirstToken() {
	if l.reads {
		l.OnPrefilled()
	}
}

// AwaitsFirstToken reports whether the prompt still counts at its endpoint for a class's busy rule: until OnFirstToken.
func (l *Lease) AwaitsFirstToken() bool {
	if !l.reads {
		return false
	}
	l.controller().mu.Lock()
	defer l.controller().mu.Unlock()
	return l.controller().machine.HasBusyRules() && l.Granted().Reads()
}

// OnServed must be called if Envoy took a fallback, so that another endpoint than the picked one answered the request
// with this status. The lease and its stock move to e, unless e is unknown ([NoEndpoint]).
func (l *Lease) OnServed(e Endpoint, status int) {
	now := time.Now()
	l.controller().mu.Lock()
	defer l.controller().end(now, nil)
	l.controller().machine.ServedElsewhere(now, l.Granted(), e, status)
}

// OnCost raises the request's cost and its tokens in the stock to at least these values, because its answer has
// outgrown the estimate.
func (l *Lease) OnCost(to fairqueue.Cost, tokens Tokens) {
	now := time.Now()
	l.controller().mu.Lock()
	defer l.controller().end(now, nil)
	l.controller().machine.Raise(now, l.Granted(), to, tokens)
}

// OnExpected lowers the request's charge to this cost, because its engine is expected to have a part of its prompt
// cached. Its part of the stock does not change. The actual cost corrects the charge at the end.
func (l *Lease) OnExpected(cost fairqueue.Cost) {
	now := time.Now()
	l.controller().mu.Lock()
	defer l.controller().end(now, nil)
	l.controller().machine.TrueUp(now, l.Granted(), cost, 0)
}

// OnRequestComplete settles the lease: the stock falls, and waiters for it are released. Only the first call counts, so
// a caller may both defer it and call it early.
func (l *Lease) OnRequestComplete(done Completion) {
	w := (*waiter)(l)
	switch settled, actual, preempted := l.controller().complete(w, &done); {
	case settled:
		w.series.completed(w, &done)
		if actual != fairqueue.UnknownCost {
			w.flowSeries.cost(w.Cost(), actual)
		}
		w.flowSeries.used(w.series.model, done.Usage)
		w.flowSeries.inFlight.Add(-1) // last: a flow without waiting or running requests may be dropped
	case preempted != nil:
		w.series.preempted(w, preempted)
		l.controller().notePreempted(done.ID, w, preempted)
	}
}

// complete settles the lease, and returns the actual cost if this call settles it and the cost is known. A preempted
// lease is already settled; the first call for it returns its rejection.
func (c *RequestQueueController) complete(w *waiter, done *Completion) (settled bool, actual fairqueue.Cost, preempted *Rejection) {
	c.mu.Lock()
	var now time.Time
	metered := w.Metered()
	judged := c.machine.Judges() && !done.Unsent && done.Status > 0
	// Otherwise the time is not needed. A recording needs it to show how long requests take at their engines.
	if judged || metered || c.machine.Waiting() > 0 || c.machine.CountsIdle() || done.Cost != fairqueue.UnknownCost || c.records.Load() {
		now = time.Now()
	}
	defer c.end(now, nil)
	settled = w.Stage() != dispatch.StageEnded
	if settled && !done.Unsent {
		actual = done.Cost
	}
	if metered {
		c.meter(now, w, done)
	}
	if judged {
		c.machine.Answered(now, w.Granted(), done.Cost, dispatch.Answer{Status: done.Status, RetryAfter: done.RetryAfter})
	} else {
		c.machine.Complete(now, w.Granted(), done.Cost)
	}
	c.live.remove(w)
	if !settled && w.Outcome() == OutcomePreempted && !w.told {
		w.told = true
		preempted = rejectionOf(&w.Waiter)
	}
	return settled, actual, preempted
}

// meter passes the request's known usage to the tenant's quota.
func (c *RequestQueueController) meter(now time.Time, w *waiter, done *Completion) {
	switch {
	case done.Unsent || done.Unserved:
		c.machine.Used(now, w.Granted(), 0)
	case done.Used > 0:
		c.machine.Used(now, w.Granted(), done.Used)
	}
}
