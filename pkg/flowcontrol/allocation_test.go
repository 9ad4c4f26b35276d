package flowcontrol

import (
	"context"
	"testing"
	"unsafe"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// TestOneAllocation checks that a request costs one allocation in the controller, whether it bypasses the queue or waits
// there, and whether its cost is corrected: its waiter, which is also its lease.
func TestOneAllocation(t *testing.T) {
	t.Run("requests", func(t *testing.T) { oneAllocation(t, fairqueue.WFQ, Request{}, fairqueue.UnknownCost) })
	t.Run("tokens", func(t *testing.T) { oneAllocation(t, fairqueue.VTC, Request{Cost: 2100}, 1950) })
}

// A waiter fills a size class of Go's allocator, of six whole cache lines: 8 bytes more would take 32, and often a seventh.
func TestWaiterFitsItsSize(t *testing.T) {
	if n := unsafe.Sizeof(waiter{}); n > 384 {
		t.Errorf("a waiter has %d bytes", n)
	}
}

func oneAllocation(t *testing.T, d fairqueue.Discipline, r Request, usage fairqueue.Cost) {
	cfg := DefaultConfig()
	cfg.EnqueueAll, cfg.Queue.Discipline = true, d
	perBackend(&cfg, 1, 1)
	c, err := New(cfg, ready(1), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	c.SetBackends(numbered(1), nil, nil)
	r.Flow, r.Placement = "a", pool
	complete := func(w *waiter) { (*Lease)(w).OnRequestComplete(Completion{Status: 200, Cost: usage}) }
	arrives := func() *waiter {
		w, err := c.arrive(context.Background(), &r)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	if n := testing.AllocsPerRun(100, func() { complete(arrives()) }); n != 1 {
		t.Errorf("a bypass costs %v allocations", n)
	}
	holder := arrives()
	if n := testing.AllocsPerRun(100, func() {
		waits := arrives()
		complete(holder)
		if _, err := c.verdict(waits); err != nil {
			t.Fatal(err)
		}
		holder = waits
	}); n != 1 {
		t.Errorf("a wait costs %v allocations", n)
	}
}
