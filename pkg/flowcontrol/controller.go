package flowcontrol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// Rejection is the error of TryEnqueue and Refuse: the sentinel with what the client should be told.
type Rejection struct {
	// Err is the sentinel; errors.Is sees through.
	Err error
	// Outcome is OutcomeOf(Err).
	Outcome Outcome
	// RetryAfter is when the client should come back, already spread (each rejection has a moment of its own);
	// 0: say nothing.
	RetryAfter time.Duration
}

// Error implements error.
func (r *Rejection) Error() string { return r.Err.Error() }

// Unwrap gives the sentinel.
func (r *Rejection) Unwrap() error { return r.Err }

// RequestQueueController decides bypass, queue or reject, and releases the waiters.
type RequestQueueController struct {
	log     logr.Logger
	metrics *metrics
	placer  Placer
	poke    chan struct{} // wakes one popper
	resize  chan struct{} // the number of poppers has changed
	channel sync.Pool     // of chan struct{}, 1 deep and empty: what a waiter waits on

	mu         sync.Mutex
	config     Config
	queue      *fairqueue.FairRequestQueue
	ledger     *stock.Ledger
	flows      flowAccounts
	memory     lanes   // what is known of lanes
	reacher    Reacher // the placer, if it is one
	asking     *Lease  // the request that the placer is asked for; nil: none
	timer      *time.Timer
	armed      time.Time // when the timer fires; zero: not armed
	retryAt    time.Time // of an unexpected error; zero: none
	released   time.Time // the last release from the queue that came to something; zero: the next may follow at once
	spaced     bool      // the last pump left a head waiting for Config.ReleaseSpacing
	draining   bool
	pace       pace   // at which the queue drains
	places     places // of rejected clients in the drain schedule
	counts     counts
	expired    []*fairqueue.Request // reused
	lanes      []*fairqueue.Request // reused
	heads      []*fairqueue.Request // reused
	ranks      []int                // identifiers of the configured tiers, highest first
	tierSeries [stock.MaxTiers]*tierSeries
	byRank     []int             // of all tiers, with those that drain
	preempts   fairqueue.TierSet // the tiers that may preempt
	victims    victims
	full       []Endpoint      // reused
	parked     []*flowAccount  // flows at their cap at endpoints; some may be parked no more
	wakes      []chan struct{} // of those with a verdict, woken by unlock
	jitter     *rand.Rand
	failure    error // of the pump, for the popper to log
	fault      func(where string) error
}

// counts are the counters that are kept under the lock.
type counts struct {
	attempts, successes uint64 // of dequeueing
	promotions          [stock.MaxTiers]uint64
	panics              uint64
	preempted           map[[2]int]uint64 // by victim's and preemptor's tier
	displaced           [stock.MaxTiers]uint64
}

// New is a controller without backends; they come with SetBackends. Metrics are registered by the caller, see Collector.
func New(cfg Config, placer Placer, log logr.Logger) (*RequestQueueController, error) {
	c, err := build(cfg, placer, log)
	if err != nil {
		return nil, err
	}
	c.metrics = newMetrics(c)
	c.nameTiers()
	return c, nil
}

// build is a controller without metrics.
func build(cfg Config, placer Placer, log logr.Logger) (*RequestQueueController, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("flowcontrol: configuration: %w", err)
	}
	queue, err := fairqueue.New(cfg.Queue)
	if err != nil {
		return nil, fmt.Errorf("flowcontrol: queue: %w", err)
	}
	c := &RequestQueueController{
		log: log, placer: placer, config: cfg, queue: queue,
		ledger: stock.New(cfg.Stock),
		poke:   make(chan struct{}, 1),
		resize: make(chan struct{}, 1),
		jitter: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	}
	c.reacher, _ = placer.(Reacher)
	c.memory.reset()
	c.flows.init()
	c.counts.preempted = map[[2]int]uint64{}
	c.victims.order = cfg.VictimOrder
	c.arrange()
	c.channel.New = func() any { return make(chan struct{}, 1) }
	c.timer = time.AfterFunc(time.Hour, c.wakePopper)
	c.timer.Stop()
	return c, nil
}

// arrange derives what depends on the tiers: their ranks, who may preempt, and the reservations, of which a tier that
// drains has none.
func (c *RequestQueueController) arrange() {
	byName := map[string]TierConfig{}
	c.ranks = nil
	for i, t := range c.config.Queue.Tiers {
		byName[t.Name] = c.config.Tiers[i]
		c.ranks = append(c.ranks, c.queue.TierID(t.Name))
	}
	var reservations []stock.Reservation
	c.byRank, c.preempts = nil, 0
	for _, t := range c.queue.Tiers() {
		c.byRank = append(c.byRank, t.ID)
		r := stock.Reservation{Tier: t.ID}
		if !t.Removed {
			cfg := byName[t.Name]
			r.Floor, r.PerSlot = cfg.ReservedFloor, cfg.ReservedPerSlot
			if cfg.CanPreempt {
				c.preempts = c.preempts.With(t.ID)
			}
		}
		reservations = append(reservations, r)
	}
	c.ledger.SetReservations(reservations)
	c.nameTiers()
}

// tierOf is the identifier of the tier of this rank; the lowest one's when there is none.
func (c *RequestQueueController) tierOf(rank int) int {
	if rank < 0 || rank >= len(c.ranks) {
		return c.ranks[len(c.ranks)-1]
	}
	return c.ranks[rank]
}

// TryEnqueue admits r: it returns at once with a lease (bypass) or a Rejection, or blocks the caller until r is
// granted, rejected, displaced, expired or ctx is over. A returned error is always a *Rejection.
func (c *RequestQueueController) TryEnqueue(ctx context.Context, r *Request) (*Lease, error) {
	l, since, waits, err := c.arrive(ctx, r)
	if !waits {
		return l, err
	}
	l.await(ctx)
	return c.verdict(ctx, l, since)
}

// arrive is TryEnqueue up to where it blocks, if it does: l then waits since that time for its verdict, or has it.
func (c *RequestQueueController) arrive(
	ctx context.Context, r *Request,
) (l *Lease, since time.Time, waits bool, err error) {
	l = c.newLease(ctx, r)
	if d, ok := ctx.Deadline(); ok && (l.queued.Deadline.IsZero() || d.Before(l.queued.Deadline)) {
		l.queued.Deadline = d
	}
	if err := ctx.Err(); err != nil {
		return nil, since, false, l.series.rejected(l, &Rejection{Err: err, Outcome: OutcomeOf(err)})
	}
	now := time.Now()
	at, maxWait := c.offer(now, l, r.Tier, false)
	switch at {
	case stageSent:
		l.series.bypassed(l)
		return l, now, false, nil
	case stageEnded:
		return nil, now, false, l.series.rejected(l, l.rejection())
	case stageNew, stageWaiting, stageGranted, stageStreaming:
	}
	l.series.waiting(1)
	if at == stageWaiting && r.OnQueued != nil {
		r.OnQueued(maxWait)
	}
	return l, now, true, nil
}

// offer decides an arrival under the lock, and says where it stands then. A panic in the decision ends this request and
// no other.
func (c *RequestQueueController) offer(
	now time.Time, l *Lease, rank int, passOn bool,
) (at stage, maxWait time.Duration) {
	c.mu.Lock()
	defer c.unlock()
	defer func() {
		if p := recover(); p != nil {
			c.asking = nil
			c.queue.Remove(&l.queued)
			c.undo(l)
			c.panicked("admission", p)
			c.reject(now, l, c.failure)
			c.leaves(l)
			c.wakePopper() // which logs it
			at = l.stage
		}
	}()
	if l.queued.Tier = c.tierOf(rank); l.tierName != "" {
		l.queued.Tier = c.queue.TierID(l.tierName)
	}
	l.tier = c.tierSeries[l.queued.Tier]
	if passOn {
		c.passOn(now, l)
	} else {
		c.admit(now, l)
	}
	if l.stage == stageWaiting {
		maxWait = l.queued.Expires().Sub(now)
	}
	return l.stage, maxWait
}

// verdict is what became of a waiter, decided under the lock. One that was granted and preempted again before it came
// here waits on.
func (c *RequestQueueController) verdict(ctx context.Context, l *Lease, since time.Time) (*Lease, error) {
	woken, rejection := c.decided(ctx, l)
	select { // the channel goes back empty
	case <-woken:
	default:
	}
	c.channel.Put(woken)
	if rejection != nil {
		l.waited = time.Since(since)
		l.series.waiting(-1)
		return nil, l.series.rejected(l, rejection)
	}
	l.series.granted(l)
	l.series.waiting(-1) // last: a series of which nobody waits or is in flight may be dropped
	return l, nil
}

// decided waits for the verdict and takes it: the channel that is free again, and the rejection or nil.
func (c *RequestQueueController) decided(
	ctx context.Context, l *Lease,
) (woken chan struct{}, rejection *Rejection) {
	c.mu.Lock()
	defer c.unlock()
	for l.stage == stageWaiting && ctx.Err() == nil {
		c.unlock()
		l.await(ctx)
		c.mu.Lock()
	}
	switch {
	case l.stage == stageWaiting:
		// The caller gave up, and nothing else had happened yet.
		c.queue.Remove(&l.queued)
		c.leaves(l)
		c.giveUp(ctx, l)
	case l.stage == stageGranted && ctx.Err() != nil:
		// It was granted, but there is nobody to be told the destination: it goes to the next one. When a proxy dies,
		// all that wait become free one after the other, and most grants would go to its own.
		c.settle(l)
		c.queue.Requeue(&l.queued) // for the refund
		c.queue.Remove(&l.queued)
		c.released = time.Time{}
		c.giveUp(ctx, l)
	case l.stage == stageGranted:
		l.stage = stageSent
	}
	woken = l.woken
	l.woken = nil
	if l.stage == stageEnded {
		rejection = l.rejection()
	}
	return woken, rejection
}

// giveUp ends a request that holds nothing any more and whose client is gone or past its deadline.
func (c *RequestQueueController) giveUp(ctx context.Context, l *Lease) {
	now := time.Now()
	l.stage = stageEnded
	l.err = c.whyOver(ctx, l, now)
	c.pump(now)
	c.arm(now)
}

// whyOver tells the client's own deadline from the client's going.
func (c *RequestQueueController) whyOver(ctx context.Context, l *Lease, now time.Time) error {
	if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if l.queued.TTLOver(now) {
		l.retry = c.retryAfter(now, l, ErrExpiredTTL)
		return ErrExpiredTTL
	}
	return context.DeadlineExceeded
}

func (l *Lease) rejection() *Rejection {
	return &Rejection{Err: l.err, Outcome: OutcomeOf(l.err), RetryAfter: l.retry}
}

func (c *RequestQueueController) newLease(ctx context.Context, r *Request) *Lease {
	l := &Lease{controller: c, ctx: ctx, placement: r.Placement, endpoint: NoEndpoint}
	l.series = c.metrics.of(r.Model, r.TargetModel)
	l.tierName = r.TierName
	l.queued = fairqueue.Request{
		Flow: r.Flow, Tier: r.Tier, Cost: max(1, r.Cost), Deadline: r.Deadline, Owner: l,
	}
	if r.Placement != nil {
		l.queued.Lane = fairqueue.Lane(r.Placement.Lane())
	}
	return l
}

// Refuse counts a request that ends before TryEnqueue (malformed, too large, late, no memory, no endpoint) and returns its
// Rejection. err wraps one of the sentinels; flow, model and targetModel are empty where they are not known yet.
func (c *RequestQueueController) Refuse(flow, model, targetModel string, err error) *Rejection {
	r := &Rejection{Err: err, Outcome: OutcomeOf(err)}
	r.RetryAfter = c.refusal(time.Now(), cmp.Or(flow, model), r.Outcome)
	c.metrics.flows.of(flow).rejected(r.Outcome)
	s := c.metrics.of(model, targetModel)
	return s.rejected(nil, r)
}

// PassOn counts and places a request that is passed on without queueing, since it is known to be no inference. Its lease
// counts as stock like any other.
func (c *RequestQueueController) PassOn(r *Request) (*Lease, error) {
	l := c.newLease(context.Background(), r)
	if at, _ := c.offer(time.Now(), l, r.Tier, true); at == stageEnded {
		return nil, l.series.rejected(l, l.rejection())
	}
	l.series.bypassed(l)
	return l, nil
}

// SetBackends tells the ready backends. commit, if not nil, is called under the lock: the Placer changes to the same
// snapshot there. Whoever can go now goes; the leases of a backend that is gone stay until their streams end.
func (c *RequestQueueController) SetBackends(ready []stock.Backend, commit func()) {
	now := time.Now()
	c.mu.Lock()
	defer c.unlock()
	if commit != nil {
		c.contains("endpoints", commit)
	}
	c.ledger.SetBackends(ready)
	c.contains("endpoints", func() { c.reopen(now) })
	c.pump(now)
	c.arm(now)
}
