package flowcontrol

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/stock"
)

var nothing = logr.Discard()

// BenchmarkPoppers compares who runs the pop loop, with 64 streams at 8 slots: the goroutine that changed the state, as
// the controller has it, or nobody but the parked poppers, of which there are 1, 10 or 100. One operation is a request
// that was granted, held its lease while others ran, and was completed.
func BenchmarkPoppers(b *testing.B) {
	for _, poppers := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("whoever-changed-the-state/poppers=%d", poppers), func(b *testing.B) {
			c := popped(b, poppers)
			loaded(b, func(ctx context.Context, r *Request) error {
				l, err := c.TryEnqueue(ctx, r)
				if err == nil {
					runtime.Gosched()
					l.OnRequestComplete(Completion{Status: 200})
				}
				return err
			})
		})
		b.Run(fmt.Sprintf("poppers-only/poppers=%d", poppers), func(b *testing.B) {
			c := popped(b, poppers)
			loaded(b, c.viaPoppers)
		})
	}
}

func popped(b *testing.B, poppers int) *RequestQueueController {
	c := benchController(b, func(c *Config) {
		c.NumPoppers = poppers
		c.Stock.WatermarkPerBackend, c.Stock.LowerBoundPerBackend, c.Stock.UpperBoundPerBackend = 8, 8, 8
	})
	c.SetBackends(make([]stock.Backend, 1), nil)
	return c
}

// viaPoppers is a request's life when neither its arrival nor its completion pops: they wake a popper.
func (c *RequestQueueController) viaPoppers(ctx context.Context, r *Request) error {
	l := c.newLease(ctx, r)
	now := time.Now()
	c.mu.Lock()
	l.queued.Tier = c.tierOf(r.Tier)
	l.flow = c.flows.enter(l.queued.Tier, l.queued.Flow)
	err := c.push(now, l)
	if err != nil {
		c.flows.left(l.flow)
	}
	c.arm(now)
	c.unlock()
	if err != nil {
		return err
	}
	l.series.waiting(1)
	c.wakePopper()
	l.await(ctx)
	if l, err = c.verdict(ctx, l, now); err != nil {
		return err
	}
	runtime.Gosched()
	c.mu.Lock()
	l.stage = stageEnded
	c.settle(l)
	c.unlock()
	c.wakePopper()
	l.series.completed(l, Completion{Status: 200})
	return nil
}

// loaded sends b.N requests by 64 streams, each of a flow of its own.
func loaded(b *testing.B, one func(context.Context, *Request) error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var streams sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for i := range 64 {
		streams.Go(func() {
			r := Request{Flow: fmt.Sprint("flow-", i), Placement: pool}
			for left.Add(-1) >= 0 {
				if err := one(context.Background(), &r); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	streams.Wait()
}
