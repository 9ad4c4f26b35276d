package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/expect"
)

const extProcService = "envoy.service.ext_proc.v3.ExternalProcessor"

// checker asks the health port.
func (r *running) checker() func(service string) (healthv1.HealthCheckResponse_ServingStatus, error) {
	r.t.Helper()
	conn, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", r.Ports().Health),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	return func(service string) (healthv1.HealthCheckResponse_ServingStatus, error) {
		response, err := healthv1.NewHealthClient(conn).Check(r.t.Context(),
			&healthv1.HealthCheckRequest{Service: service}, grpc.WaitForReady(true))
		return response.GetStatus(), err
	}
}

// Readiness goes down first, and liveness stays. A stream in flight runs to its end, and only then Run returns.
func TestDrainWaitsForStreams(t *testing.T) {
	r := start(t, testOptions())
	check := r.checker()
	for _, service := range []string{"", "liveness", "synced", "inference-extension", "readiness", extProcService} {
		expect.True(t, "health of "+service, func() bool { // they are set one after the other
			got, err := check(service)
			return err == nil && got == healthv1.HealthCheckResponse_SERVING
		})
	}
	if _, err := check("other"); status.Code(err) != codes.NotFound {
		t.Errorf("health of a service that does not exist: %v", err)
	}
	stream := r.request(t.Context())
	granted(t, stream)

	r.stop()
	expect.True(t, "readiness goes down", func() bool {
		got, err := check("readiness")
		return err == nil && got == healthv1.HealthCheckResponse_NOT_SERVING
	})
	for service, want := range map[string]healthv1.HealthCheckResponse_ServingStatus{
		"": healthv1.HealthCheckResponse_NOT_SERVING, extProcService: healthv1.HealthCheckResponse_NOT_SERVING,
		"synced": healthv1.HealthCheckResponse_NOT_SERVING, "inference-extension": healthv1.HealthCheckResponse_NOT_SERVING,
		"liveness": healthv1.HealthCheckResponse_SERVING,
	} {
		if got, err := check(service); err != nil || got != want {
			t.Errorf("health of %q while draining: %v, %v; want %v", service, got, err, want)
		}
	}
	if code, _ := r.get("/readyz"); code != 503 {
		t.Errorf("/readyz while draining: %d", code)
	}
	// Within the drain window a new request is still served.
	second := r.request(t.Context())
	granted(t, second)
	for _, s := range []extprocv3.ExternalProcessor_ProcessClient{stream, second} {
		if err := s.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("the stream ended with %v, want OK", err)
		}
	}
	r.waitEnd()
}

// oneWaits starts an epp with room for one request, and two requests, the second of which waits.
func oneWaits(t *testing.T, drainWindow string) (r *running, served, waiting extprocv3.ExternalProcessor_ProcessClient) {
	t.Helper()
	o := testOptions()
	o.ConfigText = "requestQueueController: { watermarkPerBackend: 1, upperBoundPerBackend: 1, lowerBoundPerBackend: 1, drainWindow: " + drainWindow + " }"
	r = start(t, o)
	served = r.request(t.Context())
	granted(t, served)
	waiting = r.request(t.Context())
	expect.True(t, "the second request waits", func() bool { return r.pool.controller.State().Queued == 1 })
	return r, served, waiting
}

// After the window, waiters are rejected with their reason, and no request is dropped silently.
func TestDrainRejectsAfterTheWindow(t *testing.T) {
	r, served, waiting := oneWaits(t, "200ms")
	r.stop()
	if got := rejection(t, waiting); got != "draining" {
		t.Errorf("rejected with %q, want draining", got)
	}
	if err := served.CloseSend(); err != nil {
		t.Fatal(err)
	}
	r.waitEnd()
}

// A waiting request is served within the window when its turn comes.
func TestDrainServesTheQueue(t *testing.T) {
	r, served, waiting := oneWaits(t, "30s")
	r.stop()
	if err := served.CloseSend(); err != nil {
		t.Fatal(err)
	}
	granted(t, waiting)
	if err := waiting.CloseSend(); err != nil {
		t.Fatal(err)
	}
	r.waitEnd()
}

// Requests are served for minDrain even if none waits: proxies do not yet know of the end.
func TestDrainTakesAtLeastMinDrain(t *testing.T) {
	o := testOptions()
	const least = 4 * time.Second // in which the machine has to find the time for a request
	o.Override = func(d *config.Document) { d.RequestQueueController.MinDrain = config.Duration(least) }
	r := start(t, o)
	check := r.checker()
	begun := time.Now()
	r.stop()
	expect.True(t, "readiness goes down", func() bool {
		got, err := check("readiness")
		return err == nil && got == healthv1.HealthCheckResponse_NOT_SERVING
	})
	bounded, cancel := context.WithTimeout(t.Context(), soon) // a program that has ended would be waited for
	defer cancel()
	late := r.request(bounded)
	granted(t, late)
	if err := late.CloseSend(); err != nil {
		t.Fatal(err)
	}
	r.waitEnd()
	if took := time.Since(begun); took < least {
		t.Errorf("it ended after %v, want %v at least", took, least)
	}
}

// Streams that outlive the drain timeout end with OK, so that Envoy completes their answers.
func TestDrainTimeoutEndsStreamsWithOK(t *testing.T) {
	o := testOptions()
	o.DrainTimeout = 300 * time.Millisecond
	r := start(t, o)
	stream := r.request(t.Context())
	granted(t, stream)
	begun := time.Now()
	r.stop()
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v, want OK", err)
	}
	r.waitEnd()
	if took := time.Since(begun); took < o.DrainTimeout || took > o.DrainTimeout+10*time.Second {
		t.Errorf("stopping took %s with --drain-timeout %s", took, o.DrainTimeout)
	}
	if got := r.pool.controller.State().Stock; got != 0 {
		t.Errorf("stock %d at the end", got)
	}
}

// Even if the window is as long as the whole drain, waiters get their answers before the streams end.
func TestDrainTimeoutRejectsWhatWaits(t *testing.T) {
	o := testOptions()
	o.DrainTimeout = 400 * time.Millisecond
	o.ConfigText = "requestQueueController: { watermarkPerBackend: 1, upperBoundPerBackend: 1, lowerBoundPerBackend: 1 }"
	r := start(t, o)
	served := r.request(t.Context())
	granted(t, served)
	waiting := r.request(t.Context())
	expect.True(t, "the second request waits", func() bool { return r.pool.controller.State().Queued == 1 })
	r.stop()
	if got := rejection(t, waiting); got != "draining" {
		t.Errorf("rejected with %q, want draining", got)
	}
	if _, err := served.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream in flight ended with %v, want OK", err)
	}
	r.waitEnd()
}

// rejection receives the answer that rejects a request, and returns its reason.
func rejection(t *testing.T, stream extprocv3.ExternalProcessor_ProcessClient) string {
	t.Helper()
	for {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		answer := m.GetImmediateResponse()
		if answer == nil {
			continue
		}
		for _, h := range answer.GetHeaders().GetSetHeaders() {
			if h.GetHeader().GetKey() == "x-weir-reason" && answer.GetStatus().GetCode() == 503 {
				return string(h.GetHeader().GetRawValue())
			}
		}
		t.Fatalf("no reason in %v", m)
	}
}

// An App stopped before its start serves no request and ends.
func TestStopAtOnce(t *testing.T) {
	a, err := New(testOptions())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Run(ctx); err != nil {
		t.Error(err)
	}
}

// A part that fails ends the program with its error.
func TestFailingPart(t *testing.T) {
	a, err := New(testOptions())
	if err != nil {
		t.Fatal(err)
	}
	_ = a.listeners.health.Close()
	if err := a.Run(t.Context()); problemsIn(err, "app: serving gRPC", "use of closed network connection") != nil {
		t.Error(err)
	}
}
