package flowcontrol

import (
	"context"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// stage is where a request stands. It moves down this list, but for a granted request that goes back to waiting: it
// was preempted before its destination was sent.
type stage uint8

const (
	stageNew       stage = iota
	stageWaiting         // in the queue
	stageGranted         // holds a lease; its goroutine has not yet been told
	stageSent            // its goroutine has the lease: the destination is on its way to Envoy
	stageStreaming       // the answer has begun: never preempted from here
	stageEnded           // rejected, preempted or complete
)

// Lease is one request's holding of stock, from dispatch to completion. It is settled exactly once, by
// OnRequestComplete or by preemption, whichever comes first. The same structure is the request's place in the queue,
// so that a request costs one allocation.
type Lease struct {
	controller *RequestQueueController
	series     *series     // its metrics
	tier       *tierSeries // and those of its tier
	flowSeries *flowSeries // and those of its flow; nil: not looked for yet
	tierName   string
	placement  Placement
	ctx        context.Context // the request's own: a client that is gone preempts nobody

	// Guarded by the controller's lock.
	queued   fairqueue.Request
	held     stock.Lease
	flow     *flowAccount
	waiting  bool // it counts as a waiting request of its flow
	stage    stage
	queuedUp bool // it was in the queue; this and bypass are written before the request's goroutine has the lease
	bypass   bool
	endpoint Endpoint
	err      error         // of a wait that ended without a lease
	retry    time.Duration // RetryAfter of err
	woken    chan struct{} // 1 deep; nil while it need not wait

	preempted chan struct{} // closed at preemption; nil: it cannot be preempted
	granted   uint64        // when it became a possible victim
	victimAt  int32         // 1-based slot among the victims at its endpoint; 0: not among them
	counted   bool          // it counts against its flow's cap at its endpoint
	told      bool          // its preemption is counted
	panics    uint8         // of the placer in a row, for it while it waits
	struck    int64         // the last of them, in Unix nanoseconds

	// Written before the request's goroutine has the lease.
	waited time.Duration // from arrival to grant, or to the rejection
}

// Endpoint is the endpoint that was picked and reserved for the request.
func (l *Lease) Endpoint() Endpoint { return l.endpoint }

// Queued is how long the request waited in the queue; 0 and false for a bypass.
func (l *Lease) Queued() (time.Duration, bool) { return l.waited, !l.bypass }

// Preempted is closed when the lease is taken for a higher tier: the stream then answers with ErrPreempted's
// response. It is nil (blocks for ever) for a lease that can never be preempted.
func (l *Lease) Preempted() <-chan struct{} { return l.preempted }

// OnFirstByte is told before the response headers are let through to the client. Nil: from now on the lease is
// never preempted. Otherwise the preemption came first: the error is a *Rejection of ErrPreempted, answer with it.
func (l *Lease) OnFirstByte() error {
	if l.preempted == nil {
		return nil
	}
	c := l.controller
	c.mu.Lock()
	defer c.unlock()
	switch l.stage {
	case stageSent:
		l.stage = stageStreaming
		c.victims.remove(l)
	case stageEnded:
		if l.err != nil {
			return l.rejection()
		}
	case stageNew, stageWaiting, stageGranted, stageStreaming:
	}
	return nil
}

// OnServed is told that the endpoint that served the request is another than the one picked: Envoy had gone on to a
// fallback. The lease, and with it the endpoint's stock, moves there.
func (l *Lease) OnServed(e Endpoint) {
	c := l.controller
	c.mu.Lock()
	defer c.unlock()
	if !l.held.Held() || e == l.endpoint {
		return
	}
	moves := false
	c.asks(l, func() {
		if c.placer.CanServe(l.placement, e) {
			c.placer.PlaceAt(l.placement, e)
			moves = true
		}
	})
	if !moves {
		return
	}
	victim := l.victimAt > 0
	c.victims.remove(l)
	counted := l.counted
	c.uncount(l)
	left := l.endpoint
	c.giveBack(left)
	l.endpoint = e
	if counted {
		c.count(l)
	}
	if victim {
		c.victims.add(l)
		c.newVictim(e)
	}
	c.openLanes(left)
	c.repark(l.flow)
	c.reparkAt(left)
	now := time.Now()
	c.pump(now)
	c.arm(now)
}

// OnRequestComplete settles the lease: the stock falls, and whoever waits for it is released. Only the first call
// counts, so it may be deferred and called early as well.
func (l *Lease) OnRequestComplete(done Completion) {
	switch settled, preempted := l.complete(); {
	case settled:
		l.series.completed(l, done)
	case preempted != nil:
		l.series.preempted(l, preempted)
	}
}

// complete settles the lease; a preempted one, which was settled before, gives its rejection, once.
func (l *Lease) complete() (settled bool, preempted *Rejection) {
	c := l.controller
	c.mu.Lock()
	defer c.unlock()
	if l.stage != stageSent && l.stage != stageStreaming {
		if l.err != nil && !l.told {
			l.told = true
			preempted = l.rejection()
		}
		return false, preempted
	}
	l.stage = stageEnded
	c.settle(l)
	if c.queue.Len() > 0 {
		now := time.Now()
		c.pump(now)
		c.arm(now)
	}
	return true, nil
}

// settle gives back what the lease holds: stock, the reserved endpoint, its place under the flow's caps.
func (c *RequestQueueController) settle(l *Lease) {
	if !c.ledger.Settle(&l.held) {
		return
	}
	c.victims.remove(l)
	c.uncount(l)
	c.giveBack(l.endpoint)
	c.openLanes(l.endpoint)
	c.flows.settled(l.flow)
	c.repark(l.flow)
	c.reparkAt(l.endpoint)
}

// take makes l the holder of a lease at endpoint e, which the placer has reserved.
func (c *RequestQueueController) take(l *Lease, e Endpoint, promoted bool) {
	l.endpoint = e
	l.held = stock.NewLease(l.queued.Tier, int64(l.queued.Cost), promoted)
	c.ledger.Take(&l.held)
	c.flows.taken(l.flow)
	c.count(l)
	if c.fault != nil {
		if err := c.fault("lease"); err != nil {
			panic(err)
		}
	}
	if !promoted && c.mayBeVictim(l.held.Tier()) {
		if l.preempted == nil {
			l.preempted = make(chan struct{})
		}
		c.victims.enter(l)
		c.newVictim(e)
	}
}

// end is the verdict on a waiting request that gets no lease.
func (l *Lease) end(err error, retry time.Duration) {
	l.stage = stageEnded
	l.err, l.retry = err, retry
	l.wake()
}

// wake lets the request's goroutine look for the verdict, when the lock is given back.
func (l *Lease) wake() {
	if l.woken != nil {
		l.controller.wakes = append(l.controller.wakes, l.woken)
	}
}

// unlock gives the lock back and then wakes those that have a verdict: woken earlier they would only run into the
// lock. A channel may have been given to another waiter meanwhile; that one finds no verdict and waits on. It never
// blocks: one wake-up that was not yet noticed is enough.
func (c *RequestQueueController) unlock() {
	var few [4]chan struct{}
	wakes := append(few[:0], c.wakes...)
	clear(c.wakes)
	c.wakes = c.wakes[:0]
	c.mu.Unlock()
	for _, woken := range wakes {
		select {
		case woken <- struct{}{}:
		default:
		}
	}
}

// await blocks until there is a verdict or ctx is over, and returns without the lock.
func (l *Lease) await(ctx context.Context) {
	select {
	case <-l.woken:
	case <-ctx.Done():
	}
}
