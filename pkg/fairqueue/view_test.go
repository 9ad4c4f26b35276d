package fairqueue

import (
	"maps"
	"testing"
	"time"
)

// View lists each flow once, with its entitled share of its tier.
func TestView(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Weights = map[string]Weight{"a": 3 * WeightOne}
	q, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1, 0)
	for i, flow := range []string{"a", "b", "a", "a"} {
		r := &Request{Flow: flow, Lane: Lane([]string{"", "x"}[i%2]), Cost: 2}
		if _, err := q.Push(now.Add(time.Duration(i)*time.Second), r); err != nil {
			t.Fatal(err)
		}
	}
	views := q.View(10)
	if len(views) != 2 {
		t.Fatalf("%d views: %+v", len(views), views)
	}
	for _, v := range views {
		want := map[string]FlowView{
			"a": {Flow: "a", Weight: 3 * WeightOne, Queued: 3, Cost: 6, Oldest: now, Entitled: 750_000},
			"b": {Flow: "b", Weight: WeightOne, Queued: 1, Cost: 2, Oldest: now.Add(time.Second), Entitled: 250_000},
		}[v.Flow]
		if v != want {
			t.Errorf("got %+v, want %+v", v, want)
		}
	}
	if got := q.View(1); len(got) != 1 {
		t.Errorf("%d views, want 1", len(got))
	}
}

// With classes of quantum 1, 3 and 96, of which the last has no waiters, a flow's entitled share of its tier is its share
// of the class, times a quarter or three quarters.
func TestViewOfClasses(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Classes = []ClassConfig{{Name: "small", Quantum: 1}, {Name: "large", Quantum: 3}, {Name: "idle", Quantum: 96}}
	q := queue(t, cfg)
	shares := map[string]int64{}
	var requests []*Request
	for _, in := range [][2]string{{"small", "a"}, {"large", "a"}, {"large", "b"}} {
		r := &Request{Flow: in[1], Path: &Path{Class: in[0]}, Cost: 1}
		mustPush(t, q, r)
		requests = append(requests, r)
	}
	for _, v := range q.View(10) {
		shares[v.Class+" "+v.Flow] = v.Entitled
	}
	want := map[string]int64{"small a": 250_000, "large a": 375_000, "large b": 375_000}
	if !maps.Equal(shares, want) {
		t.Errorf("got %v, want %v", shares, want)
	}
	if v := q.ViewOf(requests[2]); v.Class != "large" || v.Flow != "b" || v.Entitled != 375_000 {
		t.Errorf("the view of the last request's flow is %+v", v)
	}
}

// View reports the oldest waiter of a flow over all its lanes.
func TestViewOfTheOldest(t *testing.T) {
	q, now := queue(t, DefaultConfig()), time.Unix(1, 0)
	push := func(lane Lane, at time.Time) *Request {
		r := &Request{Flow: "f", Lane: lane, Cost: 1}
		if _, err := q.Push(at, r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := push("x", now)
	second := push("y", now.Add(time.Second))
	push("x", now.Add(2*time.Second))
	for _, want := range []*Request{first, second} {
		if v := q.View(1)[0]; !v.Oldest.Equal(q.Arrived(want)) {
			t.Errorf("the oldest came at %v, want %v", v.Oldest, q.Arrived(want))
		}
		q.Remove(want)
	}
}

// View of a few of many flows shows those that expire first, even if they arrived last.
func TestViewShowsFirstWhatExpiresFirst(t *testing.T) {
	q, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(0, 0)
	for _, r := range []*Request{{Flow: "a"}, {Flow: "b"}, {Flow: "hurried", Within: time.Second}} {
		if _, err := q.Push(now, r); err != nil {
			t.Fatal(err)
		}
	}
	if v := q.View(1); len(v) != 1 || v[0].Flow != "hurried" {
		t.Errorf("shown: %+v", v)
	}
}

// The average wait is that of the requests that wait now, whoever has gone.
func TestAverageWait(t *testing.T) {
	q := queue(t, DefaultConfig())
	if got := q.AverageWait(start.Add(time.Hour)); got != 0 {
		t.Errorf("%v though nobody waits", got)
	}
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	var all []*Request
	for s := range 4 { // at 0, 10, 20 and 30 s
		r := &Request{Flow: "a"}
		if _, err := q.Push(at(10*s), r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	want := func(s int, want time.Duration) {
		t.Helper()
		if got := q.AverageWait(at(s)); got != want {
			t.Errorf("after %d s: %v, want %v", s, got, want)
		}
	}
	want(30, 15*time.Second)
	q.Pop(q.Peek(at(30), Allowed{Tiers: AllTiers}))
	want(30, 10*time.Second)
	q.Requeue(all[0])
	want(30, 15*time.Second)
	q.Remove(all[2])
	want(40, 80*time.Second/3)
	q.Drain(nil)
	want(40, 0)
}
