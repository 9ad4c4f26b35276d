package app

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/status"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// document reads /debug/status.
func (r *running) document(query string) *status.Document {
	r.t.Helper()
	code, text := r.debug("/debug/status" + query)
	d := &status.Document{}
	if err := json.Unmarshal([]byte(text), d); err != nil || code != 200 {
		r.t.Fatalf("%d %v\n%s", code, err, text)
	}
	return d
}

// The document has an operator's first questions: the waiters with their times and reasons, each flow's entitled and
// attained share, and the load of the engines.
func TestStatusDocument(t *testing.T) {
	o := testOptions()
	o.ConfigText = "requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }\n" +
		"flows: { key: [\"header:x-user\"], weights: { ann: 3 } }\nfairRequestQueue: { flowCapacity: 1 }"
	r := start(t, o)
	ask := func(user string) { r.request(t.Context(), [2]string{"x-user", user}) }
	held := r.request(t.Context(), [2]string{"x-user", "ann"})
	granted(t, held)
	ask("ann")
	ask("bob")
	expect.True(t, "two wait", func() bool { return r.pool.controller.State().Queued == 2 })
	ask("bob") // one too many
	expect.True(t, "one is rejected", func() bool { return len(r.pool.controller.Rejections()) == 1 })
	first := r.document("")
	if len(first.Rejections) != 1 || first.Rejections[0].Flow != "bob" || first.Rejections[0].Outcome != "flow-full" || first.Rejections[0].Tier == "" {
		t.Errorf("rejections: %+v", first.Rejections)
	}
	if r := first.Rejections[0]; r.Limit != "flow-capacity" || r.LimitValue != 1 || !slices.Equal(r.Holders, []status.Holder{{Flow: "bob", Held: 1}}) {
		t.Errorf("the limit: %+v", r)
	}
	if first.WindowSeconds != 0 || !first.Healthy || len(first.Reasons) != 0 {
		t.Errorf("the first one: %+v", first)
	}
	if p := first.Pool; p.Profile != "wfq" || !p.Ready || !p.Leads || p.Waiting != 2 || p.WaitingFlows != 2 || p.Stock != 1 || p.UpperBound == nil || *p.UpperBound != 1 || p.Engines != 1 || p.ReadyEngines != 1 {
		t.Errorf("pool: %+v", p)
	}
	if e := first.Engines[0]; e.Address != "192.0.2.1:8000" || !e.Ready || e.InFlight != 1 || e.Fill == nil || *e.Fill != 1 || e.State() != "ready" {
		t.Errorf("engine: %+v", e)
	}
	shares := map[string]float64{}
	for _, f := range first.Flows {
		if f.Waiting != 1 || f.Since <= 0 || f.Since > 600 || f.Why != "stock" || f.Entitled == nil || f.Attained != nil {
			t.Errorf("flow: %+v", f)
			continue
		}
		shares[f.Flow] = *f.Entitled
	}
	if fmt.Sprint(shares) != "map[ann:0.75 bob:0.25]" {
		t.Errorf("entitled shares: %v", shares)
	}
	time.Sleep(ratesLeast)
	_ = held.CloseSend() // ann has had all of the service since, with the one request that goes next
	expect.True(t, "one waits", func() bool { return r.pool.controller.State().Queued == 1 })
	expect.True(t, "one has ended", func() bool { ended, rejected := r.pool.controller.Ended(); return ended == 2 && rejected == 1 })
	expect.True(t, "ann's next one is counted", func() bool {
		return slices.ContainsFunc(r.pool.controller.FlowCounts(), func(f flowcontrol.FlowCounts) bool {
			return f.Flow == "ann" && f.Waiting == 0 && f.InFlight == 1
		})
	})
	second := r.document("?flow=A&rejections=0")
	if second.WindowSeconds < ratesLeast.Seconds() || second.Pool.Requests <= 0 || len(second.Flows) != 1 {
		t.Fatalf("the second one: %+v", second)
	}
	if f := second.Flows[0]; f.Flow != "ann" || f.InFlight != 1 || f.Attained == nil || *f.Attained != 1 || f.Requests == nil || *f.Requests <= 0 {
		t.Errorf("ann: %+v", f)
	}
	if only := r.document("?only-flow=bob"); len(only.Flows) != 1 || only.Flows[0].Waiting != 1 {
		t.Errorf("only bob: %+v", only.Flows)
	}
	if code, text := r.debug("/debug/status?flows=x&sort-flows=y"); code != 400 || !strings.Contains(text, `flows: "x": must be`) || !strings.Contains(text, `sort-flows: "y": must be`) {
		t.Errorf("%d %s", code, text)
	}
}

// crowd has so many engines, and so many flows with one waiting request each. The last one expires first.
func crowd(t *testing.T, engines, flows int) *App {
	o := testOptions()
	o.Endpoints = nil
	for i := range engines {
		o.Endpoints = append(o.Endpoints, fmt.Sprintf("192.0.2.%d:%d", i%250+1, 8000+i/250))
	}
	o.ConfigText = "requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }\n" +
		"fairRequestQueue: { totalCapacity: 20000, flowCapacity: 1, queueTTL: 1h }\nlimits: { maxFlows: 20000 }"
	r := start(t, o)
	picks := picker{&r.pool.prepared, &r.pool.lengths, r.pool.index, &r.pool.adapters}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	ask := func(flow string, within time.Duration) {
		placement, err := picks.Prepare("m", request.Subset{}, request.Needs{})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			l, err := r.pool.controller.TryEnqueue(ctx, &flowcontrol.Request{Flow: flow, Placement: placement, Deadline: time.Now().Add(within)})
			switch {
			case err == nil:
				<-ctx.Done()
				l.OnRequestComplete(flowcontrol.Completion{})
			case ctx.Err() == nil:
				t.Errorf("%s: %v", flow, err)
			}
		})
	}
	for i := range engines {
		ask(fmt.Sprint("running-", i), time.Hour)
	}
	expect.True(t, "all run", func() bool { return r.pool.controller.State().Stock == engines })
	for i := range flows {
		within := time.Hour
		if i == flows-1 {
			within = 10 * time.Minute
		}
		ask(fmt.Sprint("waiting-", i), within)
	}
	expect.True(t, "all wait", func() bool { return r.pool.controller.State().Queued == flows })
	return r.App
}

// With 500 engines and 10,000 flows a document has at most 256 KB. It takes no more work than with 2,000 flows, so no
// part of it grows with the flows, under the lock or not.
func TestStatusOfManyFlows(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts 12,000 waiters")
	}
	work := func(a *App) float64 {
		q := status.DefaultQuery()
		text, err := a.statusDocument(&q, time.Now()).Encode()
		if err != nil || len(text) > status.MaxBytes {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		d := a.statusDocument(&q, time.Now())
		if len(d.Engines) != 500 || len(d.Flows) != q.Flows || d.Pool.WaitingFlows < 2000 {
			t.Fatalf("%d engines and %d flows, %+v", len(d.Engines), len(d.Flows), d.Pool)
		}
		q.SortFlows, q.Flow = "since", fmt.Sprint("waiting-", d.Pool.WaitingFlows-1)
		hurried := a.statusDocument(&q, time.Now())
		if !slices.ContainsFunc(hurried.Flows, func(f status.Flow) bool { return f.Flow == q.Flow && f.Waiting == 1 }) {
			t.Errorf("the flow that expires first is not there: %v", hurried.Flows)
		}
		q = status.DefaultQuery()
		least := math.Inf(1) // other tests allocate meanwhile
		for range 5 {
			least = min(least, testing.AllocsPerRun(1, func() { a.statusDocument(&q, time.Now()) }))
		}
		return least
	}
	few, many := work(crowd(t, 500, 2000)), work(crowd(t, 500, 10_000))
	if many > 1.5*few {
		t.Errorf("a document of 10,000 flows takes %v allocations, of 2,000 flows %v", many, few)
	}
}

// Each reason against the health has its word, and ends with its cause.
func TestStatusReasons(t *testing.T) {
	o := testOptions()
	o.Endpoints = nil
	o.EndpointsFile = t.TempDir() + "/endpoints.yaml"
	write := func(text string) {
		if err := os.WriteFile(o.EndpointsFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("endpoints: []\n")
	r := start(t, o)
	reasons := func() (ids string) {
		for _, x := range r.document("").Reasons {
			ids += x.ID + " "
		}
		return strings.TrimSpace(ids)
	}
	expect.True(t, "no engine", func() bool { return reasons() == "no-engine" })
	write("endpoints: [ { address: \"192.0.2.1:8000\" } ]\n")
	expect.True(t, "healthy", func() bool { return reasons() == "" })
	r.configuration.refuse(fmt.Errorf("weir.yaml: invalid:\n  flows.key: bad\n  tiers: bad"))
	if got := reasons(); got != "configuration-invalid" {
		t.Errorf("got %s", got)
	}
	if text := r.document("").Reasons[0].Text; !strings.HasSuffix(text, ": flows.key: bad and 1 line more, see /debug/config") {
		t.Errorf("the reason does not name the key: %s", text)
	}
	r.configuration.refuse(nil)
	r.readiness.set(leading, false)
	if got, d := reasons(), r.document(""); got != "" || d.Pool.Leads || d.Pool.Ready {
		t.Errorf("a follower: %s, %+v", got, d.Pool)
	}
	r.readiness.set(leading, true)
	r.readiness.set(synced, false)
	if got := reasons(); got != "not-ready" {
		t.Errorf("got %s", got)
	}
}

// Rates cover at most a minute, and only the counts between documents.
func TestRates(t *testing.T) {
	var r rates
	begin := time.Unix(1000, 0)
	at := func(seconds float64, n uint64) (from uint64, window time.Duration) {
		old, window := r.before(&counts{at: begin.Add(time.Duration(seconds * float64(time.Second))), ended: n})
		return old.ended, window
	}
	for _, test := range []struct {
		at     float64
		n      uint64
		from   uint64
		window float64
	}{{0, 10, 10, 0}, {.1, 11, 11, 0}, {1, 20, 10, 1}, {30, 40, 10, 30}, {60, 50, 10, 60}, {61, 60, 40, 31}, {300, 90, 90, 0}, {310, 100, 90, 10}} {
		if from, window := at(test.at, test.n); from != test.from || window.Seconds() != test.window {
			t.Errorf("after %v s: from %d in %v, want %d in %v s", test.at, from, window, test.from, test.window)
		}
	}
	for i := range 1000 {
		at(310+float64(i)*ratesSpacing.Seconds(), 0)
	}
	if n := len(r.kept); n > int(ratesWindow/ratesSpacing)+1 {
		t.Errorf("%d counts are kept", n)
	}
	if n := perSecond(5, 15, 2*time.Second); n != 5 {
		t.Errorf("%v per second", n)
	}
	if perSecond(5, 4, time.Second) != 0 || perSecond(5, 6, 0) != 0 {
		t.Error("a count that has begun again, or no time, has a rate")
	}
}
