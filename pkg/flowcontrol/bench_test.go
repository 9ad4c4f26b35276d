package flowcontrol

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/stock"
)

// benchController has room for one request at a time, and queues of any size.
func benchController(b *testing.B, change func(*Config)) *RequestQueueController {
	b.Helper()
	cfg := DefaultConfig()
	cfg.Queue.TotalCapacity, cfg.Queue.FlowCapacity = 100_000_000, 10_000
	cfg.Queue.FlowCapacities = map[string]int{}
	cfg.Stock.WatermarkPerBackend, cfg.Stock.LowerBoundPerBackend, cfg.Stock.UpperBoundPerBackend = 1, 1, 1
	cfg.EnqueueAll = true
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg, ready(1), logr.Discard())
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = c.Run(ctx); close(done) }()
	b.Cleanup(func() { stop(); <-done })
	c.SetBackends(make([]stock.Backend, 1), nil)
	return c
}

// BenchmarkLifecycle is one TryEnqueue to OnRequestComplete through the controller: one operation is one request
// that came, was granted (at once, or after those that stood before it) and was completed.
func BenchmarkLifecycle(b *testing.B) {
	b.Run("free", func(b *testing.B) {
		c := benchController(b, nil)
		r := Request{Flow: "a", Placement: pool}
		b.ReportAllocs()
		for b.Loop() {
			l, err := c.TryEnqueue(context.Background(), &r)
			if err != nil {
				b.Fatal(err)
			}
			l.OnRequestComplete(Completion{Status: 200})
		}
	})
	for _, flows := range []int{1, 5000} {
		b.Run(fmt.Sprintf("waiters=5000/flows=%d", flows), func(b *testing.B) {
			backlogged(b, benchController(b, nil), flows, 1, 5000)
		})
	}
	b.Run("idle=5000/busy=1", func(b *testing.B) {
		c := benchController(b, nil)
		for i := range 5000 {
			l, err := c.TryEnqueue(context.Background(), &Request{Flow: fmt.Sprint("idle-", i), Placement: pool})
			if err != nil {
				b.Fatal(err)
			}
			l.OnRequestComplete(Completion{Status: 200})
		}
		backlogged(b, c, 1, 1, 16)
	})
}

// backlogged keeps so many requests of so many flows and tiers waiting: each worker is a stream that completes its
// request and sends the next. The holder of the only lease holds it until everybody waits, so that b.N operations are
// b.N grants from a full queue, each with its switch of goroutines.
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
