package flowcontrol

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// benchController has room for one request at a time, and queues of any size. The collector runs as rarely as in epp.
func benchController(b *testing.B, change func(*Config)) *RequestQueueController {
	b.Helper()
	return benchControllerOf(b, change, ready(1))
}

func benchControllerOf(b *testing.B, change func(*Config), placer Placer) *RequestQueueController {
	b.Helper()
	percent := debug.SetGCPercent(400)
	b.Cleanup(func() { debug.SetGCPercent(percent) })
	cfg := DefaultConfig()
	cfg.Queue.TotalCapacity, cfg.Queue.FlowCapacity = 100_000_000, 10_000
	cfg.Queue.FlowCapacities = map[string]int{}
	cfg.Stock.WatermarkPerBackend, cfg.Stock.LowerBoundPerBackend, cfg.Stock.UpperBoundPerBackend = 1, 1, 1
	cfg.EnqueueAll = true
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg, placer, logr.Discard())
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = c.Run(ctx); close(done) }()
	b.Cleanup(func() { stop(); <-done })
	c.SetBackends(numbered(1), nil, nil)
	return c
}

// BenchmarkLifecycle measures the controller's work from TryEnqueue to OnRequestComplete: one operation is one request
// that arrived, was granted (at once or in its turn) and completed. Waiters do not block; BenchmarkStreams is the same
// with a goroutine for each.
func BenchmarkLifecycle(b *testing.B) {
	b.Run("free", func(b *testing.B) { unhindered(b, benchController(b, nil), 0) })
	for _, flows := range []int{1, 5000} {
		b.Run(fmt.Sprintf("waiters=5000/flows=%d", flows), func(b *testing.B) {
			newDesk(b, nil).serve(flows, 1, 5000)
		})
	}
	b.Run("idle=5000/busy=1", func(b *testing.B) {
		d := newDesk(b, nil)
		visitors(b, d.RequestQueueController, 5000)
		d.serve(1, 1, 16)
	})
	// Fair shares track each flow's recent use. They charge a bypass; wfq does not.
	fairly := func(c *Config) { c.Queue.Discipline = fairqueue.FairShare }
	b.Run("fairshare/free", func(b *testing.B) { unhindered(b, benchController(b, fairly), 0) })
	for _, flows := range []int{1, 5000} {
		b.Run(fmt.Sprintf("fairshare/waiters=5000/flows=%d", flows), func(b *testing.B) {
			newDesk(b, fairly).serve(flows, 1, 5000)
		})
	}
}

// BenchmarkLifecycleUsage is BenchmarkLifecycle in tokens: with vtc, where the estimate is charged at the dispatch, and
// corrected when the usage is known, at the end.
func BenchmarkLifecycleUsage(b *testing.B) {
	vtc := func(c *Config) { c.Queue.Discipline = fairqueue.VTC }
	b.Run("free", func(b *testing.B) { unhinderedBy(b, benchController(b, vtc), Request{Flow: "a", Cost: 2100}, 1950) })
	for _, flows := range []int{1, 5000} {
		b.Run(fmt.Sprintf("waiters=5000/flows=%d", flows), func(b *testing.B) {
			d := newDesk(b, vtc)
			d.estimate, d.usage = 2100, 1950
			d.serve(flows, 1, 5000)
		})
	}
}

// BenchmarkLifecycleClasses is BenchmarkLifecycle in the shape of the profile dynamo-drr: four classes by deficit round robin, two
// of them by wspt, with limits and busy rules, and costs of uncached tokens. With rings=2 the classes are those of two models.
func BenchmarkLifecycleClasses(b *testing.B) {
	for _, rings := range []int{1, 2} {
		b.Run(fmt.Sprintf("rings=%d/free", rings), func(b *testing.B) {
			r := Request{Path: &fairqueue.Path{Class: "1", Prompt: fairqueue.PromptOf(600, 100)}, Cost: 500}
			unhinderedBy(b, benchController(b, func(c *Config) { dynamo(c, rings) }), r, fairqueue.UnknownCost)
		})
		b.Run(fmt.Sprintf("rings=%d/waiters=5000", rings), func(b *testing.B) {
			d := newDesk(b, func(c *Config) { dynamo(c, rings) })
			d.paths = rings * 4
			d.serve(1, 1, 5000)
		})
	}
}

// dynamo configures classes 0 to 3 in each of so many rings.
func dynamo(c *Config, rings int) {
	c.Queue.Discipline, c.Queue.CapacityMode, c.Queue.Priorities = fairqueue.OneFlow, fairqueue.Reject, true
	limit, threshold := int64(1_000_000_000), int64(100_000)
	for i := range rings * 4 {
		c.Queue.Classes = append(c.Queue.Classes, fairqueue.ClassConfig{
			Name: fmt.Sprint(i % 4), Ring: fmt.Sprint(i / 4), Quantum: fairqueue.Cost(512 << (i % 4)), Order: fairqueue.Order(i % 2),
			Limits: fairqueue.ClassLimits{Requests: &limit, RawTokens: &limit, CachedTokens: &limit},
		})
		c.Classes = append(c.Classes, dispatch.ClassConfig{Busy: scheduling.BusyRule{PrefillTokens: &threshold}})
	}
}

// BenchmarkStreams is BenchmarkLifecycle with a goroutine for each waiter, as streams are: to what the controller does
// come the parking and waking, and that each waiter's stack is in no cache. BenchmarkFloor is the least of that.
func BenchmarkStreams(b *testing.B) {
	for _, flows := range []int{1, 5000} {
		b.Run(fmt.Sprintf("waiters=5000/flows=%d", flows), func(b *testing.B) {
			backlogged(b, benchController(b, nil), flows, 1, 5000)
		})
	}
	b.Run("idle=5000/busy=1", func(b *testing.B) {
		c := benchController(b, nil)
		visitors(b, c, 5000)
		backlogged(b, c, 1, 1, 16)
	})
}

// unhindered is the lifecycle of requests that find room.
func unhindered(b *testing.B, c *RequestQueueController, tier int) {
	unhinderedBy(b, c, Request{Flow: "a", Tier: tier}, fairqueue.UnknownCost)
}

// unhinderedBy is the lifecycle of requests like r that find room, and turn out to have cost this.
func unhinderedBy(b *testing.B, c *RequestQueueController, r Request, cost fairqueue.Cost) {
	r.Placement = pool
	b.ReportAllocs()
	for b.Loop() {
		l, err := c.TryEnqueue(context.Background(), &r)
		if err != nil {
			b.Fatal(err)
		}
		l.OnRequestComplete(Completion{Status: 200, Cost: cost})
	}
}

// visitors is a number of flows that were served once.
func visitors(b *testing.B, c *RequestQueueController, flows int) {
	for i := range flows {
		l, err := c.TryEnqueue(context.Background(), &Request{Flow: fmt.Sprint("idle-", i), Placement: pool})
		if err != nil {
			b.Fatal(err)
		}
		l.OnRequestComplete(Completion{Status: 200})
	}
}

// desk is a controller whose requests wait without their own goroutines. It is its own placer, of one endpoint, so it
// knows the last granted request.
type desk struct {
	*RequestQueueController
	b *testing.B
	anywhere
	reserved int
	last     *deskRequest
	estimate fairqueue.Cost // what each request is charged at first
	usage    fairqueue.Cost // and in the end
	paths    int            // number of classes to which requests go in turn, with prompts; 0: they name none
}

// deskRequest is a request that arrives again after each grant.
type deskRequest struct {
	Request
	waiter *waiter
}

func newDesk(b *testing.B, change func(*Config)) *desk {
	d := &desk{b: b}
	d.RequestQueueController = benchControllerOf(b, change, d)
	return d
}

func (d *desk) Place(p Placement, _ dispatch.Bound, _ *dispatch.EndpointSet) dispatch.Reservation {
	d.last, _ = p.(*deskRequest)
	d.reserved++
	return scheduling.Reserved(0)
}

func (d *desk) PlaceAt(_ Placement, e Endpoint) dispatch.Reservation {
	d.reserved++
	return scheduling.Reserved(e)
}

// SetForeign and SetSignals are the Placer's, not the controller's.
func (d *desk) SetForeign(Endpoint, int, int64) bool { return true }

func (d *desk) SetSignals(Endpoint, dispatch.Signals) bool { return true }

func (d *desk) Held(Endpoint) int { return d.reserved }

func (d *desk) Release(any, *dispatch.Reservation)                          { d.reserved-- }
func (*desk) HasReady(Placement, *dispatch.EndpointSet) bool                { return true }
func (*desk) Meets(Placement, *dispatch.EndpointSet) bool                   { return false }
func (*desk) HasRoom(Placement, dispatch.Bound, *dispatch.EndpointSet) bool { return true }
func (*desk) CanServe(Placement, Endpoint) bool                             { return true }
func (*desk) CanTakeOver(Placement, Endpoint) bool                          { return true }

// arrives makes r arrive; it must wait, or must not.
func (d *desk) arrives(r *deskRequest, waits bool) {
	var err error
	r.waiter, err = d.arrive(context.Background(), &r.Request)
	if err != nil || (r.waiter.woken != nil) != waits {
		d.b.Fatalf("want waits %t: %v", waits, err)
	}
}

// serve keeps a number of requests, flows and tiers waiting behind holders of all slots: an operation is a completion,
// the resulting grant, and the arrival of the next request.
func (d *desk) serve(flows, tiers, waiters int) {
	holders := make(chan *Lease, d.State().Capacity)
	for range cap(holders) {
		first := &deskRequest{Request: Request{Flow: "first"}}
		first.Placement = first
		d.arrives(first, false)
		holders <- (*Lease)(first.waiter)
	}
	requests := make([]deskRequest, waiters)
	for i := range requests {
		r := &requests[i]
		r.Request = Request{Flow: fmt.Sprint("flow-", i%flows), Tier: i % tiers, Cost: d.estimate, Placement: r}
		if n := d.paths; n > 0 {
			p := fairqueue.PromptOf(int64(100+i%1900), int64(i%100))
			r.Path, r.Cost = &fairqueue.Path{Ring: fmt.Sprint(i % n / 4), Class: fmt.Sprint(i % 4), Prompt: p}, fairqueue.Cost(p.Uncached())
		}
		d.arrives(r, true)
	}
	d.b.ReportAllocs()
	for d.b.Loop() {
		d.last = nil
		(<-holders).OnRequestComplete(Completion{Status: 200, Cost: d.usage})
		granted := d.last
		l, err := d.verdict(granted.waiter)
		if err != nil {
			d.b.Fatal(err)
		}
		holders <- l
		d.arrives(granted, true)
	}
	d.b.StopTimer()
	if s := d.State(); s.Stock != cap(holders) || s.Queued != waiters || d.reserved != s.Stock {
		d.b.Fatalf("%d slots and %d waiters: %+v", cap(holders), waiters, s)
	}
}

// backlogged keeps a number of requests, flows and tiers waiting: each worker is a stream that completes its request
// and sends the next. The only lease is held until all workers wait, so b.N operations are b.N grants from a full
// queue, each with its switch of goroutines.
func backlogged(b *testing.B, c *RequestQueueController, flows, tiers, waiters int) {
	ctx, stop := context.WithCancel(context.Background())
	var left atomic.Int64
	left.Store(int64(b.N))
	finished := make(chan struct{})
	first, err := c.TryEnqueue(ctx, &Request{Flow: "first", Placement: pool})
	if err != nil {
		b.Fatal(err)
	}
	var workers sync.WaitGroup
	for i := range waiters {
		workers.Go(func() {
			r := Request{Flow: fmt.Sprint("flow-", i%flows), Tier: i % tiers, Placement: pool}
			for {
				l, err := c.TryEnqueue(ctx, &r)
				if err != nil {
					return
				}
				if left.Add(-1) == 0 {
					close(finished)
				}
				l.OnRequestComplete(Completion{Status: 200})
			}
		})
	}
	for c.State().Queued < waiters {
		runtime.Gosched()
	}
	b.ReportAllocs()
	b.ResetTimer()
	first.OnRequestComplete(Completion{Status: 200})
	<-finished
	b.StopTimer()
	stop()
	workers.Wait()
	if s := c.State(); s.Stock != 0 || s.Queued != 0 || s.LiveFlows != 0 {
		b.Fatalf("accounts are not zero at the end: %+v", s)
	}
}
