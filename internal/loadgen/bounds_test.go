package loadgen

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A plan without bounds in requests and in time is an error with every problem, and sends nothing.
func TestUnboundedPlansAreErrors(t *testing.T) {
	inBubble(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }, func(b *bubble) {
		plan := Plan{
			Workloads: []Workload{
				{Tenant: "unbounded", Arrivals: ClosedLoop{Workers: 1}, Request: Template{Path: "/"}},
				{
					Arrivals: ClosedLoop{Workers: 0, Stagger: -1, Staggered: -1}, Request: Template{Path: "x"},
					Requests: MaxRequests + 1, Duration: -1, Begin: -1, Timeout: -1, Retry: Retry{Max: -1},
				},
				{Tenant: "open", Arrivals: OpenLoop{Rate: 2e6, MaxInFlight: -1}, Requests: 1, Duration: 1, Request: Template{Path: "/"}},
				{Tenant: "none", Requests: 1, Duration: 1, Request: Template{Path: "/"}},
			},
			Warmup: time.Hour, Drain: -1,
		}
		report, err := Run(b.Context(), b.client, plan, nil)
		if report != nil || err == nil {
			b.Fatalf("%v, %v", report, err)
		}
		for _, fault := range []string{
			`"unbounded": requests must be 1 to`, `"unbounded": duration must be above 0`, "tenant is empty", "not 4194305",
			"begin must not", "timeout must not", `path must begin with a slash, not "x"`, "retry.max must not",
			"workers must be above 0", "stagger must not", "staggered must not", "rate must be above 0", "max in flight must not",
			`"none": arrivals is missing`, "warmup must be", "drain must not",
		} {
			if !strings.Contains(err.Error(), fault) {
				b.Errorf("%q is not named in\n%v", fault, err)
			}
		}
		if _, err := Run(b.Context(), b.client, Plan{}, nil); err == nil {
			b.Error("a plan of nothing is carried out")
		}
	})
}

// For any number of workers, a run sends at most the workload's requests. Each has one result, in the order of sending.
func TestBoundedInRequests(t *testing.T) {
	inBubble(t, takes(time.Millisecond), func(b *bubble) {
		w := load(ClosedLoop{Workers: 7})
		w.Requests = 100
		results := b.run(w)
		for i := range results {
			if r := &results[i]; r.Tenant != "t" || !r.OK() || r.Attempts != 1 {
				b.Errorf("result %d: %+v", i, r)
			}
		}
		if len(results) != 100 {
			b.Errorf("%d results, want 100", len(results))
		}
		// 100 requests of 1 ms by 7 workers are 15 rounds.
		if took := time.Since(b.epoch); took != 15*time.Millisecond {
			b.Errorf("took %v, want 15 ms", took)
		}
	})
}

// A run sends nothing after the workload's end. Requests in flight then have the drain time to finish, and are cut off
// after it.
func TestBoundedInTime(t *testing.T) {
	for drain, want := range map[time.Duration]string{0: "cut off", 64 * time.Millisecond: "cut off", 66 * time.Millisecond: ""} {
		inBubble(t, takes(70*time.Millisecond), func(b *bubble) {
			w := load(ClosedLoop{Workers: 1})
			w.Begin, w.Duration = 10*time.Millisecond, 145*time.Millisecond
			// The third starts at 150 ms, 5 ms before the end, and would end at 220 ms.
			report, err := Run(b.Context(), b.client, Plan{Workloads: []Workload{w}, Drain: drain}, nil)
			if err != nil {
				b.Fatal(err)
			}
			results := report.Tracks[0].Results
			wantTimes(b, "starts", starts(results), 10*time.Millisecond, 80*time.Millisecond, 150*time.Millisecond)
			if got := results[2].Fault(); got != want {
				b.Errorf("drain %v: the last one's fault is %q, want %q", drain, got, want)
			}
			if report.Length != 155*time.Millisecond {
				b.Errorf("the run is %v long, want 155 ms", report.Length)
			}
		})
	}
}

// The timeout covers one attempt. A request that times out fails, and its worker continues.
func TestTimeout(t *testing.T) {
	inBubble(t, takes(time.Second), func(b *bubble) {
		w := load(ClosedLoop{Workers: 1})
		w.Requests, w.Timeout = 2, 300*time.Millisecond
		results := b.run(w)
		for i := range results {
			if r := &results[i]; r.Fault() != "timeout" || r.Total != 300*time.Millisecond || r.Status != 0 {
				b.Errorf("result %d: %+v", i, r)
			}
		}
		wantTimes(b, "starts", starts(results), 0, 300*time.Millisecond)
	})
}

// When the caller's context ends, Run returns the report so far and the cause.
func TestCancelledRun(t *testing.T) {
	inBubble(t, takes(time.Second), func(b *bubble) {
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(b.Context())
		time.AfterFunc(2500*time.Millisecond, func() { cancel(enough) })
		report, err := Run(ctx, b.client, Plan{Workloads: []Workload{load(ClosedLoop{Workers: 1})}}, nil)
		if !errors.Is(err, enough) {
			b.Errorf("error %v, want the cause", err)
		}
		if results := report.Tracks[0].Results; len(results) != 3 || !results[1].OK() || results[2].Err == nil {
			b.Errorf("results %+v", results)
		}
	})
}

// Only loopback addresses are accepted.
func TestOnlyLoopback(t *testing.T) {
	for _, url := range []string{"http://127.0.0.1:1", "http://localhost:80", "http://[::1]:1", "http://127.9.9.9"} {
		if _, err := NewClient(ClientConfig{BaseURL: url}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, url := range []string{"http://10.0.0.1:1", "http://example.com", "http://0.0.0.0:1", "http://localhost.example.com"} {
		if _, err := NewClient(ClientConfig{BaseURL: url}); !errors.Is(err, ErrNotLoopback) {
			t.Errorf("%s: %v, want ErrNotLoopback", url, err)
		}
	}
	for _, url := range []string{"https://127.0.0.1", "127.0.0.1:80", "", "http://"} {
		if _, err := NewClient(ClientConfig{BaseURL: url}); err == nil {
			t.Errorf("%s is taken", url)
		}
	}
	for _, url := range []string{"https://example.com", "http://10.0.0.1:1"} {
		if _, err := NewClient(ClientConfig{BaseURL: url, Anywhere: true}); err != nil {
			t.Errorf("%s, anywhere: %v", url, err)
		}
	}
	inBubble(t, takes(0), func(b *bubble) {
		w := load(ClosedLoop{Workers: 1})
		w.Request.Path = "//example.com/"
		if _, err := Run(b.Context(), b.client, Plan{Workloads: []Workload{w}}, nil); !errors.Is(err, ErrNotLoopback) {
			b.Errorf("a path with a host: %v, want ErrNotLoopback", err)
		}
	})
}
