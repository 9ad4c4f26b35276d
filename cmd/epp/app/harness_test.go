package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/envoystream"
	"github.com/weir-epp/weir/internal/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon bounds waits for immediate events, on a machine that may be busy.
const soon = 30 * time.Second

// testOptions are the defaults and the proposal's profile on free ports of the loopback, with one model server that
// gets no request.
func testOptions() Options {
	o := DefaultOptions()
	o.BindAddress = "127.0.0.1"
	o.GRPCPort, o.HealthPort, o.MetricsPort, o.DebugPort = 0, 0, 0, 0
	o.Endpoints = []string{"192.0.2.1:8000"}
	o.SecureServing = false
	o.ProbePath = ""
	o.Profile = config.ProfileWFQ
	o.Override = func(d *config.Document) { d.RequestQueueController.MinDrain = 0 }
	return o
}

// running is an App between start and stop.
type running struct {
	*App
	t     *testing.T
	ended chan error
	stop  context.CancelFunc
	conn  *grpc.ClientConn
}

// start runs an App until everything listens. At the end of the test it stops the App, if it still runs; the App must
// end without an error.
func start(t *testing.T, o Options) *running {
	t.Helper()
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{App: a, t: t, ended: make(chan error, 1), stop: cancel}
	go func() { r.ended <- a.Run(ctx) }()
	transport := insecure.NewCredentials()
	if o.SecureServing {
		transport = credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}) //nolint:gosec // self-signed
	}
	r.conn, err = grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", a.Ports().GRPC), grpc.WithTransportCredentials(transport))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.conn.Close()
		r.stop()
		r.waitEnd()
	})
	expect.True(t, "everything listens", func() bool { return !strings.Contains(a.readiness.lacks(), conditionNames[listening]) })
	return r
}

// waitEnd waits until Run has returned.
func (r *running) waitEnd() {
	r.t.Helper()
	select {
	case err := <-r.ended:
		r.ended <- err
		if err != nil {
			r.t.Errorf("Run: %v", err)
		}
	case <-time.After(soon):
		r.t.Fatal("Run does not return")
	}
}

// request begins a stream as Envoy does, with the headers of a completion request for the model chat, and more.
func (r *running) request(ctx context.Context, more ...[2]string) envoystream.Stream {
	r.t.Helper()
	stream, err := envoystream.Open(ctx, r.conn, envoystream.First("chat", more...))
	if err != nil {
		r.t.Fatal(err)
	}
	return stream
}

// granted receives the reply that sends a request on, and returns its destination.
func granted(t *testing.T, stream envoystream.Stream) string {
	t.Helper()
	address, err := envoystream.Granted(stream)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// get reads a page of the metrics port.
func (r *running) get(path string) (status int, body string) {
	r.t.Helper()
	return r.getAt(r.Ports().Metrics, path)
}

// debug reads a page of the debug port.
func (r *running) debug(path string) (status int, body string) {
	r.t.Helper()
	return r.getAt(r.Ports().Debug, path)
}

func (r *running) getAt(port int, path string) (status int, body string) {
	r.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// problemsIn says which of the texts an error does not have.
func problemsIn(err error, texts ...string) error {
	if err == nil {
		return errors.New("no error")
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			return fmt.Errorf("%q is not in: %w", text, err)
		}
	}
	return nil
}
