package flowcontrol

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/stock"
)

// RequestQueueController decides bypass, queue or reject, and releases the waiters.
type RequestQueueController struct {
	log      logr.Logger
	metrics  *metrics
	poke     chan struct{} // wakes one popper
	resize   chan struct{} // the number of poppers has changed
	channels sync.Pool     // of chan struct{}, 1 deep and empty: what a waiter waits on

	mu         sync.Mutex
	machine    machine
	config     Config
	tierSeries [stock.MaxTiers]*tierSeries
	timer      *time.Timer
	armed      time.Time // when the timer fires; zero: not armed
	failure    error     // for a popper to log
}

// New is a controller without backends; they come with SetBackends. Metrics are registered by the caller, see Collector.
func New(cfg Config, placer Placer, log logr.Logger) (*RequestQueueController, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("flowcontrol: configuration: %w", err)
	}
	decides, err := dispatch.New(cfg.Config, placer, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	if err != nil {
		return nil, fmt.Errorf("flowcontrol: %w", err)
	}
	c := &RequestQueueController{
		log: log, machine: machine{Machine: decides}, config: cfg, poke: make(chan struct{}, 1), resize: make(chan struct{}, 1),
	}
	c.channels.New = func() any { return make(chan struct{}, 1) }
	c.timer = time.AfterFunc(time.Hour, c.wakePopper)
	c.timer.Stop()
	c.metrics = newMetrics(c)
	c.nameTiers()
	return c, nil
}

// TryEnqueue admits r: it returns at once with a lease (bypass) or a Rejection, or blocks the caller until r is
// granted, rejected, displaced, expired or ctx is over. A returned error is always a *Rejection.
func (c *RequestQueueController) TryEnqueue(ctx context.Context, r *Request) (*Lease, error) {
	w, err := c.arrive(ctx, r)
	if err != nil || w.woken == nil {
		return (*Lease)(w), err
	}
	w.await()
	return c.verdict(w)
}

// arrive is TryEnqueue up to where it blocks, if it does: w then has a channel to wait on.
func (c *RequestQueueController) arrive(ctx context.Context, r *Request) (*waiter, error) {
	w := &waiter{controller: c, ctx: ctx, series: c.metrics.of(r.Model, r.TargetModel)}
	if err := ctx.Err(); err != nil {
		return nil, w.series.rejected(w, &Rejection{Err: err, Outcome: OutcomeOf(err)})
	}
	deadline := r.Deadline
	if d, ok := ctx.Deadline(); ok && (deadline.IsZero() || d.Before(deadline)) {
		deadline = d
	}
	now := time.Now()
	c.offer(now, w, r, deadline)
	switch w.Stage() {
	case dispatch.StageWaiting:
		w.series.waiting(1)
		if r.OnQueued != nil {
			r.OnQueued(w.Expires().Sub(now))
		}
		return w, nil
	case dispatch.StageEnded:
		return nil, w.series.rejected(w, rejectionOf(&w.Waiter))
	default:
		w.series.dispatched(w)
		return w, nil
	}
}

// offer tells the machine of an arrival.
func (c *RequestQueueController) offer(now time.Time, w *waiter, r *Request, deadline time.Time) {
	c.mu.Lock()
	defer c.end(now, w)
	c.machine.arrive(now, w, r, deadline, false)
}

func arrivalOf(w *waiter, r *Request, deadline time.Time) dispatch.Arrival {
	return dispatch.Arrival{
		Flow: r.Flow, TierName: r.TierName, Tier: r.Tier, Cost: r.Cost, Deadline: deadline, Placement: r.Placement,
		Owner: w,
	}
}

// verdict waits for what becomes of a waiter. One that was granted and preempted again before it came here waits on.
func (c *RequestQueueController) verdict(w *waiter) (*Lease, error) {
	for !c.decided(w) {
		w.await()
	}
	select { // the channel goes back empty
	case <-w.woken:
	default:
	}
	c.channels.Put(w.woken)
	if w.held == nil {
		w.series.waiting(-1)
		return nil, w.series.rejected(w, rejectionOf(&w.Waiter))
	}
	w.series.dispatched(w)
	w.series.waiting(-1) // last: a series of which nobody waits or is in flight may be dropped
	return (*Lease)(w), nil
}

// decided takes the verdict on a waiter, and reports whether there is one. A client that is gone gets one now.
func (c *RequestQueueController) decided(w *waiter) (is bool) {
	err := w.ctx.Err()
	var now time.Time
	if err != nil {
		now = time.Now()
	}
	c.mu.Lock()
	if err == nil {
		defer c.mu.Unlock()
	} else {
		defer c.end(now, nil)
		c.machine.Cancel(now, &w.Waiter, causeOf(err))
	}
	switch w.Stage() {
	case dispatch.StageWaiting:
		return false
	case dispatch.StageGranted:
		c.tell(w)
	case dispatch.StageNew, dispatch.StageSent, dispatch.StageStreaming, dispatch.StageEnded:
	}
	return true
}

// Refuse counts a request that ends before TryEnqueue (malformed, too large, late, no memory, no endpoint) and returns its
// Rejection. err wraps one of the sentinels; flow, model and targetModel are empty where they are not known yet.
func (c *RequestQueueController) Refuse(flow, model, targetModel string, err error) *Rejection {
	r := &Rejection{Err: err, Outcome: OutcomeOf(err)}
	switch r.Outcome {
	case OutcomeNoEndpoint, OutcomeInternal, OutcomeNoMemory: // only these are told a time
		r.RetryAfter = c.refusal(time.Now(), cmp.Or(flow, model), r.Outcome)
	default:
	}
	c.metrics.flows.of(flow).rejected(r.Outcome)
	s := c.metrics.of(model, targetModel)
	return s.rejected(nil, r)
}

func (c *RequestQueueController) refusal(now time.Time, key string, o Outcome) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.Refuse(now, key, o)
}

// PassOn counts and places a request that is passed on without queueing, since it is known to be no inference. Its lease
// counts as stock like any other.
func (c *RequestQueueController) PassOn(r *Request) (*Lease, error) {
	w := &waiter{controller: c, ctx: context.Background(), series: c.metrics.of(r.Model, r.TargetModel)}
	c.passOn(time.Now(), w, r)
	if w.held == nil {
		return nil, w.series.rejected(w, rejectionOf(&w.Waiter))
	}
	w.series.dispatched(w)
	return (*Lease)(w), nil
}

func (c *RequestQueueController) passOn(now time.Time, w *waiter, r *Request) {
	c.mu.Lock()
	defer c.end(now, w)
	c.machine.arrive(now, w, r, r.Deadline, true)
}

// SetBackends tells the ready backends. commit, if not nil, is called under the lock: the Placer changes to the same
// snapshot there. Whoever can go now goes; the leases of a backend that is gone stay until their streams end.
func (c *RequestQueueController) SetBackends(ready []stock.Backend, commit func()) {
	now := time.Now()
	c.mu.Lock()
	defer c.end(now, nil)
	if commit != nil {
		c.contains(commit)
	}
	c.machine.SetBackends(now, ready)
}

// Reconfigure changes the configuration of the running controller: all of it, or on an error nothing. Waiters keep
// their places and deadlines, leases and counters stay; a tier that is listed no more keeps its rank, takes no arrivals
// and drains. commit, if not nil, is called under the lock with the new band, so that the Placer's bounds change in the
// same step. The tier mode, the capacity mode and the discipline cannot change; MaxLabels stays what it was.
func (c *RequestQueueController) Reconfigure(cfg Config, commit func(stock.Config)) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("flowcontrol: configuration: %w", err)
	}
	for _, t := range cfg.Queue.Tiers {
		c.metrics.tiers.of(t.Name) // looks their labels up before the lock
	}
	now := time.Now()
	c.mu.Lock()
	defer c.end(now, nil)
	if err := c.machine.Configurable(cfg.Config); err != nil {
		return fmt.Errorf("flowcontrol: configuration: %w", err)
	}
	if commit != nil {
		c.contains(func() { commit(cfg.Stock) })
	}
	c.config = cfg
	c.resizePoppers()
	defer c.nameTiers()
	if err := c.machine.Configure(now, cfg.Config); err != nil {
		panic(err) // it was configurable
	}
	return nil
}

// Drain rejects whatever waits, and every request from now on, with ErrDraining. Leases run to their end.
func (c *RequestQueueController) Drain() {
	now := time.Now()
	c.mu.Lock()
	defer c.end(now, nil)
	c.machine.Drain(now)
}
