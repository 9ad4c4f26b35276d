package loadgen

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/internal/memnet"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble is a client of a server in virtual time.
type bubble struct {
	*testing.T
	client *Client
	epoch  time.Time
}

// inBubble runs a test in virtual time with a client of the server, over an in-memory connection, so that every
// measured time is exact. Everything has ended when it returns.
func inBubble(t *testing.T, server http.HandlerFunc, test func(*bubble)) {
	synctest.Test(t, func(t *testing.T) {
		listener := memnet.Listen()
		s := &http.Server{Handler: server} //nolint:gosec // no network, no slow clients
		served := make(chan error, 1)
		go func() { served <- s.Serve(listener) }()
		client, err := NewClient(ClientConfig{
			BaseURL: "http://127.0.0.1:1",
			Dial:    listener.Dial,
		})
		if err != nil {
			t.Fatal(err)
		}
		test(&bubble{T: t, client: client, epoch: time.Now()})
		client.Close()
		_ = s.Close()
		<-served
		synctest.Wait()
	})
}

// run executes a plan of one workload and returns its results.
func (b *bubble) run(w Workload) []Result {
	b.Helper()
	report, err := Run(b.Context(), b.client, Plan{Workloads: []Workload{w}}, nil)
	if err != nil && report == nil {
		b.Fatal(err)
	}
	return report.Tracks[0].Results
}

// load returns a workload with these arrivals: up to a thousand requests within an hour.
func load(arrivals Arrivals) Workload {
	return Workload{
		Tenant: "t", Arrivals: arrivals, Request: Template{Path: "/"}, Requests: 1000, Duration: time.Hour,
	}
}

// takes returns a server that answers each request after d, unless its client disconnects.
func takes(d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			_, _ = w.Write([]byte("ok"))
		case <-r.Context().Done():
		}
	}
}

// starts returns the start times of the requests, since the start of the run.
func starts(results []Result) []time.Duration {
	all := make([]time.Duration, len(results))
	for i := range results {
		all[i] = results[i].Start
	}
	return all
}

// wantTimes compares times exactly.
func wantTimes(t testing.TB, what string, got []time.Duration, want ...time.Duration) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
