package flowcontrol

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// A rejection has the limit, its value and the three flows that hold most of it: waiting requests for the queue's
// limits, requests in flight for the stock's, and the flow itself for its own capacity.
func TestRejectionsNameTheirLimits(t *testing.T) {
	configure := func(c *Config) {
		c.EnqueueAll = true
		c.Queue.TotalCapacity, c.Queue.FlowCapacity, c.Queue.QueueTTL = 9, 4, time.Minute
		c.Queue.CapacityMode = 2 // reject
		c.Stock.SlotsPerBackend = 1
	}
	inBubble(t, ready(1), configure, func(b *bench) {
		b.arrives(b.t.Context(), &Request{Flow: "holder", Placement: pool})
		for i, n := range []int{4, 3, 1, 1} {
			for range n {
				b.arrives(b.t.Context(), &Request{Flow: fmt.Sprint("flow-", i), Placement: pool})
			}
		}
		wants := func(name string, value int64, holders string) {
			t.Helper()
			r := b.Rejections()[0]
			if r.Limit == nil || r.Limit.Name != name || r.Limit.Value != value || fmt.Sprint(r.Limit.Holders) != holders {
				t.Errorf("%s: %+v, want %s of %d held by %s", r.Outcome, r.Limit, name, value, holders)
			}
		}
		b.arrives(b.t.Context(), &Request{ID: "the one", Flow: "flow-0", Placement: pool})
		wants("flow-capacity", 4, "[{flow-0 4 }]")
		b.arrives(b.t.Context(), &Request{ID: "the one", Flow: "flow-2", Placement: pool})
		wants("total-capacity", 9, "[{flow-0 4 } {flow-1 3 } {flow-2 1 }]")
		if r := b.Rejections()[0]; r.ID != "the one" || r.Flow != "flow-2" || r.Outcome != "queue-full" || len(b.Rejections()) != 2 {
			t.Errorf("%+v", r)
		}
		time.Sleep(2 * time.Minute)
		wants("queue-ttl", 60_000, "[{holder 1 }]")
		if n := len(b.Rejections()); n != 11 {
			t.Errorf("%d rejections", n)
		}
	})
}

// Only the last rejections are kept, the newest first, including those before the queue. Clients that have gone do not
// count.
func TestRejectionsAreBounded(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		for i := range 3 * MostRejections {
			b.Refuse(fmt.Sprint(i), "f", "m", "t", ErrUnknownModel)
		}
		b.Refuse("gone", "f", "m", "t", context.Canceled)
		all := b.Rejections()
		if len(all) != MostRejections || all[0].ID != "599" || all[199].ID != "400" || all[0].Model != "t" || all[0].Limit != nil {
			t.Errorf("%d, from %+v to %+v", len(all), all[0], all[len(all)-1])
		}
	})
}

// A request that has lost its lease is also a rejection, once, from the end of its stream on.
func TestRejectionsHavePreemptions(t *testing.T) {
	inBubble(t, ready(1), smg(1), func(b *bench) {
		r := of(bulk)
		r.Flow, r.Model = "victim", "m"
		low := b.arrives(b.t.Context(), r)
		high := b.arrives(b.t.Context(), of(interactive))
		b.want(high, "dispatched")
		b.wantPreempted(low)
		for range 2 {
			low.lease.OnRequestComplete(Completion{ID: "r-1"})
		}
		complete(high.lease)
		all := b.Rejections()
		if len(all) != 1 {
			t.Fatalf("%+v", all)
		}
		if r := all[0]; r.ID != "r-1" || r.Flow != "victim" || r.Tier != "bulk" || r.Model != "m" || r.Outcome != "preempted" || r.Text == "" {
			t.Errorf("%+v", r)
		}
	})
}
