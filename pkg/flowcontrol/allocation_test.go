package flowcontrol

import (
	"context"
	"testing"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/pkg/stock"
)

// TestOneAllocation checks that a request costs one allocation in the controller, whether it bypasses the queue or waits
// there: its waiter, which is also its lease.
func TestOneAllocation(t *testing.T) {
	cfg := DefaultConfig()
	cfg.EnqueueAll = true
	perBackend(&cfg, 1, 1)
	c, err := New(cfg, ready(1), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	c.SetBackends(make([]stock.Backend, 1), nil, nil)
	r := Request{Flow: "a", Placement: pool}
	arrives := func() *waiter {
		w, err := c.arrive(context.Background(), &r)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	if n := testing.AllocsPerRun(100, func() { arrives().complete() }); n != 1 {
		t.Errorf("a bypass costs %v allocations", n)
	}
	holder := arrives()
	if n := testing.AllocsPerRun(100, func() {
		waits := arrives()
		holder.complete()
		if _, err := c.verdict(waits); err != nil {
			t.Fatal(err)
		}
		holder = waits
	}); n != 1 {
		t.Errorf("a wait costs %v allocations", n)
	}
}
