package flowcontrol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/stock"
)

// RequestQueueController admits requests: it lets them bypass, queues or rejects them, and releases waiters.
type RequestQueueController struct {
	log      logr.Logger
	metrics  *metrics
	poke     chan struct{} // wakes one popper
	resize   chan struct{} // the number of poppers has changed
	classes  atomic.Pointer[classNames]
	records  atomic.Bool // events are recorded
	kept     lastRejections
	channels sync.Pool // of chan struct{}, of capacity 1 and empty: what a waiter waits on

	mu         sync.Mutex
	machine    machine
	live       live
	config     Config
	tierSeries [stock.MaxTiers]*tierSeries
	timer      *time.Timer
	armed      time.Time // when the timer fires; zero if it is not set
	failure    error     // for a popper to log
}

// New returns a controller without backends; set them with SetBackends. The caller registers the metrics; see
// Collectors.
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
	c.classes.Store(namesOf(cfg.Queue.Classes))
	c.nameTiers()
	return c, nil
}

// TryEnqueue admits r. It returns at once with a lease (bypass) or a Rejection, or blocks the caller until r is
// granted, rejected, displaced or expired, or ctx is done. A returned error is always a *Rejection.
func (c *RequestQueueController) TryEnqueue(ctx context.Context, r *Request) (*Lease, error) {
	w, err := c.arrive(ctx, r)
	if err != nil {
		c.noteOf(r, 0, err)
	}
	if err != nil || w.woken == nil {
		return (*Lease)(w), err
	}
	return c.wait(w, r)
}

// wait is the part of TryEnqueue for a request that has to wait. It blocks.
func (c *RequestQueueController) wait(w *waiter, r *Request) (*Lease, error) {
	in := c.classes.Load().join(&c.metrics.classes, w.series.model, r.Path)
	defer in.leave(w)
	w.await()
	l, err := c.verdict(w)
	if err != nil {
		c.noteOf(r, w.Waited(), err)
	}
	return l, err
}

// arrive is the part of TryEnqueue before it blocks; if r has to wait, w has a channel to wait on.
func (c *RequestQueueController) arrive(ctx context.Context, r *Request) (*waiter, error) {
	w := c.newWaiter(ctx, r)
	if err := ctx.Err(); err != nil {
		return nil, w.series.rejected(w, &Rejection{Err: err, Outcome: OutcomeOf(err)})
	}
	deadline := r.Deadline
	if d, ok := ctx.Deadline(); ok && (deadline.IsZero() || d.Before(deadline)) {
		deadline = d
	}
	now := time.Now()
	c.offer(now, w, r, deadline)
	switch { // by the result of end: the stage may have changed again
	case w.woken != nil:
		w.counted(1)
		if r.OnQueued != nil {
			r.OnQueued(w.MaxWait())
		}
		return w, nil
	case w.held:
		w.series.dispatched(w)
		return w, nil
	default:
		return nil, w.series.rejected(w, rejectionOf(&w.Waiter))
	}
}

// newWaiter returns a request that has not arrived yet, with its series.
func (c *RequestQueueController) newWaiter(ctx context.Context, r *Request) *waiter {
	return &waiter{ctx: ctx, series: c.metrics.of(r.Model, r.TargetModel), flowSeries: c.metrics.flows.of(r.Flow)}
}

// offer passes an arrival to the machine.
func (c *RequestQueueController) offer(now time.Time, w *waiter, r *Request, deadline time.Time) {
	c.mu.Lock()
	defer c.end(now, w)
	c.live.add(w, r.ID)
	c.machine.arrive(now, w, r, deadline, false)
}

// arrive passes an arrival to the machine, and records it. passedOn means that it does not queue.
func (m *machine) arrive(now time.Time, w *waiter, r *Request, deadline time.Time, passedOn bool) {
	a := arrivalOf(w, r, deadline)
	if m.recorder != nil {
		m.recorder.Arrive(now, &w.Waiter, a, r.ID, passedOn)
	}
	if passedOn {
		m.Machine.PassOn(now, &w.Waiter, a)
	} else {
		m.Machine.Arrive(now, &w.Waiter, a)
	}
}

func arrivalOf(w *waiter, r *Request, deadline time.Time) dispatch.Arrival {
	return dispatch.Arrival{
		Flow: r.Flow, Path: r.Path, TierName: r.TierName, Tier: r.Tier, Cost: r.Cost, Tokens: r.Tokens, Deadline: deadline, Placement: r.Placement,
		Tenant: r.Tenant, Uses: r.Uses, Explain: r.Explain, Owner: w,
	}
}

// await blocks until there may be a verdict or the client has gone.
func (w *waiter) await() {
	select {
	case <-w.woken:
	case <-w.ctx.Done():
	}
}

// verdict waits for the verdict on a waiter. If the waiter was granted and preempted again before this goroutine
// noticed, it keeps waiting.
func (c *RequestQueueController) verdict(w *waiter) (*Lease, error) {
	for !c.decided(w) {
		w.await()
	}
	select { // the channel must be empty when it is reused
	case <-w.woken:
	default:
	}
	c.channels.Put(w.woken)
	if !w.held {
		w.counted(-1)
		return nil, w.series.rejected(w, rejectionOf(&w.Waiter))
	}
	w.series.dispatched(w)
	w.counted(-1) // last: a series without waiting or running requests may be dropped
	return (*Lease)(w), nil
}

// decided reads the verdict on a waiter, and reports whether there is one. If the client has gone, it makes one.
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
	case dispatch.StageEnded:
		c.live.remove(w)
	case dispatch.StageNew, dispatch.StageSent, dispatch.StageStreaming:
	}
	return true
}

// Refuse counts a request that ends before TryEnqueue (malformed, too large, late, no memory, no endpoint, unknown model) and returns
// its Rejection. err wraps one of the sentinels; id, flow, model and targetModel are empty if they are not known.
func (c *RequestQueueController) Refuse(id, flow, model, targetModel string, err error) *Rejection {
	r := &Rejection{Err: err, Outcome: OutcomeOf(err)}
	if limited := new(LimitedError); errors.As(err, &limited) {
		r.Limit = &Limit{Name: limited.Name, Value: limited.Value}
	}
	// Only these get a Retry-After.
	retries := r.Outcome == OutcomeNoEndpoint || r.Outcome == OutcomeInternal || r.Outcome == OutcomeNoMemory
	if retries || c.records.Load() {
		refusal := dispatch.Refusal{ID: id, Flow: flow, Model: cmp.Or(targetModel, model), Outcome: r.Outcome}
		c.refuse(time.Now(), &refusal)
		r.RetryAfter = refusal.RetryAfter
	}
	c.metrics.flows.of(flow).count(r.Outcome)
	s := c.metrics.of(model, targetModel)
	c.note(Rejected{ID: id, Flow: flow, Model: cmp.Or(targetModel, model)}, r)
	return s.rejected(nil, r)
}

func (c *RequestQueueController) refuse(now time.Time, r *dispatch.Refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Refuse(now, r)
}

// PassOn counts and places a request that does not queue because it is known not to be inference. Its lease counts as
// stock like any other.
func (c *RequestQueueController) PassOn(r *Request) (*Lease, error) {
	w := c.newWaiter(context.Background(), r)
	c.passOn(time.Now(), w, r)
	if !w.held {
		err := w.series.rejected(w, rejectionOf(&w.Waiter))
		c.noteOf(r, 0, err)
		return nil, err
	}
	w.series.dispatched(w)
	return (*Lease)(w), nil
}

func (c *RequestQueueController) passOn(now time.Time, w *waiter, r *Request) {
	c.mu.Lock()
	defer c.end(now, w)
	c.live.add(w, r.ID)
	c.machine.arrive(now, w, r, r.Deadline, true)
}

// SetBackends sets the ready backends, and the changed foreign stock at some of them. commit, if not nil, is called
// under the lock and must switch the Placer to the same snapshot. Waiters that can go now are released; leases at a
// removed backend stay until their streams end.
func (c *RequestQueueController) SetBackends(ready []stock.Backend, foreign []stock.Foreign, commit func()) {
	now := time.Now()
	c.mu.Lock()
	defer c.end(now, nil)
	if commit != nil {
		c.callBack(commit)
	}
	c.machine.SetBackends(now, ready, foreign)
}

// SetForeign sets the foreign stock at some of the backends.
func (c *RequestQueueController) SetForeign(changes []stock.Foreign) {
	now := time.Now()
	c.mu.Lock()
	defer c.end(now, nil)
	c.machine.SetForeign(now, changes)
}

// SetSignals passes an engine's signals on to the Placer.
func (c *RequestQueueController) SetSignals(e Endpoint, s dispatch.Signals) {
	now := time.Now()
	c.mu.Lock()
	defer c.end(now, nil)
	c.machine.SetSignals(now, e, s)
}

// Reconfigure changes the whole configuration of the running controller, or nothing if it returns an error. Waiters
// keep their places and deadlines, and leases and counters stay. A removed tier keeps its rank, accepts no arrivals and
// drains. commit, if not nil, is called under the lock, so that the Placer changes in the same step. The tier mode, the
// capacity mode and the discipline cannot change; a change of MaxLabels has no effect.
func (c *RequestQueueController) Reconfigure(cfg Config, commit func()) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("flowcontrol: configuration: %w", err)
	}
	for _, t := range cfg.Queue.Tiers {
		c.metrics.tiers.of(t.Name) // looks up its labels before the lock is acquired
	}
	now := time.Now()
	c.mu.Lock()
	defer c.end(now, nil)
	if err := c.machine.Configurable(cfg.Config); err != nil {
		return fmt.Errorf("flowcontrol: configuration: %w", err)
	}
	if commit != nil {
		c.callBack(commit)
	}
	c.config = cfg
	c.classes.Store(namesOf(cfg.Queue.Classes))
	c.resizePoppers()
	defer c.nameTiers()
	if err := c.machine.Configure(now, cfg.Config); err != nil {
		panic(err) // Configurable has accepted it
	}
	return nil
}

// Drain rejects all waiters, and every later request, with ErrDraining. Leases run to their end.
func (c *RequestQueueController) Drain() {
	now := time.Now()
	c.mu.Lock()
	defer c.end(now, nil)
	c.machine.Drain(now)
}
