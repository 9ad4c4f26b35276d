package integration

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/extproc/codec"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// faultyPlacer panics in the next placements of requests.
type faultyPlacer struct {
	placement.Placer
	faults atomic.Int32
}

func (p *faultyPlacer) Place(
	of flowcontrol.Placement, bound scheduling.Bound, except *scheduling.EndpointSet,
) scheduling.Reservation {
	if p.faults.Load() > 0 {
		p.faults.Add(-1)
		panic("injected")
	}
	return p.Placer.Place(of, bound, except)
}

// plainPicker prepares each request's placement on a snapshot, and nothing else.
type plainPicker struct {
	scheduler *scheduling.Scheduler
	snapshot  *scheduling.Snapshot
}

func (p plainPicker) Prepare(model string, _ request.Subset, _ request.Needs) (extproc.Placement, error) {
	query, err := p.scheduler.Prepare(p.snapshot, scheduling.Ask{Model: model})
	if err != nil {
		return nil, err
	}
	return query, nil
}

func (plainPicker) Require(subset request.Subset, _ *request.Requirements) request.Subset {
	return subset
}

func (plainPicker) Confine(string, request.Subset, extproc.Length) (*request.Subset, error) {
	return nil, nil //nolint:nilnil // any endpoint may take it
}
func (plainPicker) Rate(extproc.Placement, *body.Blocks, bool) extproc.Affinity { return nil }
func (plainPicker) Lists(string) bool                                           { return false }
func (p plainPicker) Locate(address string) (flowcontrol.Endpoint, bool) {
	e, ok := p.snapshot.ByAddress(address)
	return e.ID, ok
}

// weirWithFaults is Weir in this process, built from its packages, since epp cannot inject a failing decision. It has
// one model server, for one request at a time, behind a real Envoy.
type weirWithFaults struct {
	*faultyPlacer
	controller *flowcontrol.RequestQueueController
	envoy      *envoyrun.Envoy
	answer     chan struct{} // closed when the model server may answer
}

func startWithFaults(t *testing.T) *weirWithFaults {
	t.Helper()
	must := func(err error) {
		if t.Helper(); err != nil {
			t.Fatal(err)
		}
	}
	d, err := config.Load(config.Source{Text: []byte(whole(oneRequest))})
	must(err)
	w := &weirWithFaults{answer: make(chan struct{})}
	model := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		_, _ = io.Copy(io.Discard, in.Body)
		<-w.answer
		_, _ = io.WriteString(out, "{}")
	}))
	t.Cleanup(model.Close)
	address := model.Listener.Addr().String()

	scheduler, err := scheduling.New(d.SchedulingConfig())
	must(err)
	board := scheduling.NewBoard(scheduler, nil)
	snapshot := scheduling.NewSnapshot(1, []scheduling.Endpoint{{Key: "model", Address: address, Ready: true}})
	w.faultyPlacer = &faultyPlacer{Placer: placement.On(board)}
	w.controller, err = flowcontrol.New(d.FlowcontrolConfig(), w.faultyPlacer, logr.Discard())
	must(err)
	server, err := extproc.NewServer(d.ExtprocConfig(), extproc.Dependencies{
		Controller: extproc.Controlled(w.controller), Picker: plainPicker{scheduler, snapshot}, Log: logr.Discard(),
		Registerer: prometheus.NewRegistry(),
	})
	must(err)
	ctx, stop := context.WithCancel(context.Background())
	parked := make(chan error, 1)
	go func() { parked <- w.controller.Run(ctx) }()
	w.controller.SetBackends([]stock.Backend{{ID: 0}}, nil, func() { board.SetSnapshot(snapshot) })

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	g := grpc.NewServer(grpc.ForceServerCodecV2(codec.New()))
	extprocv3.RegisterExternalProcessorServer(g, server)
	served := make(chan error, 1)
	go func() { served <- g.Serve(listener) }()
	t.Cleanup(func() {
		g.Stop()
		stop()
		<-parked
		<-served
	})
	w.envoy, err = envoyrun.Start(context.Background(), envoyrun.Options{
		Config: "recommended", Weir: listener.Addr().String(), ModelServers: []string{address}, Edit: trustIssuer,
	})
	must(err)
	t.Cleanup(w.envoy.Kill)
	return w
}

const oneRequest = "requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }\n"

// An error while a request is enqueued fails closed: its client gets a 500 with the reason, through a real Envoy, and
// the next request goes on. An error while one is dequeued fails open: the request goes to its engine with the next
// decision, and so do those behind it.
func TestDecisionsThatFail(t *testing.T) {
	t.Parallel()
	w := startWithFaults(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	post := func() answer { return send(ctx, w.envoy.URL(), ask{}) }

	w.faults.Store(1)
	wantRejection(t, post(), rejection{status: http.StatusInternalServerError, reason: "internal"})
	if s := w.controller.State(); s.Stock != 0 || s.Queued != 0 || s.Panics != 1 {
		t.Fatalf("after the error: %+v", s)
	}

	answers := make(chan answer, 3)
	for n := range 3 {
		go func() { answers <- post() }()
		expect.Eventually(t, "a request holds the engine, and the others wait", func() error {
			if s := w.controller.State(); s.Stock != 1 || s.Queued != n {
				return fmt.Errorf("%d at the engine and %d in the queue, want 1 and %d", s.Stock, s.Queued, n)
			}
			return nil
		})
	}
	w.faults.Store(1)
	close(w.answer)
	for range 3 {
		if got := <-answers; got.status != http.StatusOK {
			t.Errorf("%d %s %v", got.status, got.body, got.err)
		}
	}
	if w.faults.Load() != 0 || w.controller.State().Panics != 2 {
		t.Errorf("%d faults are left, %d panics", w.faults.Load(), w.controller.State().Panics)
	}
}
