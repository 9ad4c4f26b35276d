package fairqueue

import (
	"slices"
	"testing"
	"time"
)

// A wait ends at the TTL or at the deadline, whichever is earlier, even if the sweep comes after both. If they are
// equal, it ends at the TTL.
func TestTTLOrDeadline(t *testing.T) {
	for _, c := range []struct {
		name          string
		ttl, deadline time.Duration // 0: no deadline
		sweep         time.Duration
		wantTTL       bool
	}{
		{"TTL alone", 30 * time.Second, 0, 30 * time.Second, true},
		{"TTL first", 30 * time.Second, 31 * time.Second, 30 * time.Second, true},
		{"deadline first", 30 * time.Second, 29 * time.Second, 29 * time.Second, false},
		{"same instant", 30 * time.Second, 30 * time.Second, 30 * time.Second, true},
		{"deadline first, late sweep", 30 * time.Second, 29 * time.Second, 31 * time.Second, false},
		{"TTL first, late sweep", 30 * time.Second, 31 * time.Second, 32 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.QueueTTL = c.ttl
			q := queue(t, cfg)
			r := &Request{Flow: "f", Cost: 1, Within: c.deadline}
			mustPush(t, q, r)
			expired := expire(q, start.Add(c.sweep))
			if len(expired) != 1 || q.TTLOver(start.Add(c.sweep), r) != c.wantTTL {
				t.Errorf("%d expired, TTL over: %t, want %t", len(expired), q.TTLOver(start.Add(c.sweep), r), c.wantTTL)
			}
		})
	}
}

// Drain removes everything, the earliest deadline first, and leaves an empty queue.
func TestDrain(t *testing.T) {
	q := queue(t, fourTiers(0))
	for i, ttl := range []time.Duration{9, 3, 6, 1} {
		mustPush(t, q, &Request{Flow: "f", Tier: i, Cost: 1, Within: ttl * time.Second})
	}
	var order []int
	for _, r := range q.Drain(nil) {
		order = append(order, r.Tier)
	}
	if len(order) != 4 || order[0] != 3 || order[1] != 1 || order[2] != 2 || order[3] != 0 {
		t.Errorf("drained tiers %v, want 3 1 2 0", order)
	}
	if _, ok := q.UntilDeadline(start); ok || q.Len() != 0 || q.Flows() != 0 {
		t.Error("something is left")
	}
	var audit audit
	audit.check(t, q)
}

// expire removes all due requests.
func expire(q *FairRequestQueue, now time.Time) []*Request {
	expired, more := q.CleanupExpired(now, q.Len(), nil)
	if more {
		panic("some that are due are left")
	}
	return expired
}

// A call removes a limited number, the earliest first, and reports whether more are due.
func TestCleanupExpiredHasABound(t *testing.T) {
	cfg := DefaultConfig()
	cfg.FlowCapacity = cfg.TotalCapacity
	q := queue(t, cfg)
	var all []*Request
	for i := range 10 {
		r := &Request{}
		if _, err := q.Push(start.Add(time.Duration(i)), r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	late := start.Add(cfg.QueueTTL + 7)
	for _, step := range []struct {
		most, from, to int
		more           bool
	}{{0, 0, 0, true}, {3, 0, 3, true}, {5, 3, 8, false}, {5, 8, 8, false}} {
		got, more := q.CleanupExpired(late, step.most, nil)
		if !slices.Equal(got, all[step.from:step.to]) || more != step.more {
			t.Errorf("at most %d: %d went, more %t; want %d to %d, %t", step.most, len(got), more, step.from, step.to, step.more)
		}
	}
}
