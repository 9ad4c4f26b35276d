package loadgen

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryListener is a listener in memory: its connections may be used in a synctest bubble, where time is virtual and
// so every time that a run measures is exact.
type memoryListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "pipe"} }

func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bubble is a client of a server in virtual time.
type bubble struct {
	*testing.T
	client *Client
	epoch  time.Time
}

// inBubble runs a test with a client of the server. All that runs has ended when the test has.
func inBubble(t *testing.T, server http.HandlerFunc, test func(*bubble)) {
	synctest.Test(t, func(t *testing.T) {
		listener := &memoryListener{conns: make(chan net.Conn), closed: make(chan struct{})}
		s := &http.Server{Handler: server} //nolint:gosec // no network, no slow clients
		served := make(chan error, 1)
		go func() { served <- s.Serve(listener) }()
		client, err := NewClient(ClientConfig{BaseURL: "http://127.0.0.1:1", Dial: listener.dial})
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

// run carries a plan of one workload out and returns its results.
func (b *bubble) run(w Workload) []Result {
	b.Helper()
	report, err := Run(b.Context(), b.client, Plan{Workloads: []Workload{w}}, nil)
	if err != nil && report == nil {
		b.Fatal(err)
	}
	return report.Tracks[0].Results
}

// load is a workload with these arrivals: up to a thousand requests within an hour.
func load(arrivals Arrivals) Workload {
	return Workload{
		Tenant: "t", Arrivals: arrivals, Request: Template{Path: "/"}, Requests: 1000, Duration: time.Hour,
	}
}

// takes is a server that answers each request after so long, unless its client leaves before.
func takes(d time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			_, _ = w.Write([]byte("ok"))
		case <-r.Context().Done():
		}
	}
}

// starts are when the requests started, since the begin of the run.
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
