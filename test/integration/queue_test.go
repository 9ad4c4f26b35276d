package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
)

// single lets each backend have one request: the second one waits, and the queue is released one by one.
const single = "requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }\n"

// one returns a single model server whose requests wait at the valve.
func (v *valve) one() []modelsim.Config { return []modelsim.Config{v.on(recorded(1))} }

// A flow may queue its flowCapacity, and no more. That does not affect other flows (parity A4).
func TestFlowFull(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: byTenant + single + "fairRequestQueue: { totalCapacity: 10, flowCapacity: 2 }\n"})
	s.begin(from("a"))
	s.epp.waitFor(1, "weir_stock_level")
	s.begin(from("a"))
	s.begin(from("a"))
	s.epp.waitFor(2, "weir_queue_length")

	wantRejection(t, s.send(from("a")), rejection{status: 503, reason: "flow-full"})
	s.begin(from("b"))
	s.epp.waitFor(3, "weir_queue_length")
	s.epp.waitFor(2, "weir_active_flows")

	if n := s.epp.value("weir_queue_push_errors_total", "error_type", "ErrInsufficientFlowCapacity"); n != 1 {
		t.Errorf("push errors: %v, want 1", n)
	}
	s.logged("status", 503.0, "details", "flow-full")
	v.open()
	s.epp.settled()
	if got := s.epp.outcomes(); got["flow-full"] != 1 || got["dispatched"] != 4 {
		t.Errorf("outcomes are %v, want 4 dispatched, 1 flow-full", got)
	}
}

// Each flow with queued requests reserves its flowCapacity. If another flow's does not fit, that flow is rejected,
// while the queued flows may still fill theirs (parity A4).
func TestQueueFull(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: byTenant + single + "fairRequestQueue: { totalCapacity: 5, flowCapacity: 2 }\n"})
	s.begin(from("a"))
	s.epp.waitFor(1, "weir_stock_level")
	s.begin(from("a"))
	s.begin(from("b"))
	s.epp.waitFor(2, "weir_queue_length")

	// 2 + 2 are reserved of 5: one place is left, but that is not enough for a flow.
	wantRejection(t, s.send(from("c")), rejection{status: 503, reason: "queue-full"})
	s.begin(from("a"))
	s.begin(from("b"))
	s.epp.waitFor(4, "weir_queue_length")
	if n := s.epp.value("weir_queue_push_errors_total", "error_type", "ErrTooManyFlows"); n != 1 {
		t.Errorf("push errors: %v, want 1", n)
	}
	s.logged("status", 503.0, "details", "queue-full")

	// A flow is tracked while it has queued requests: once b's are gone, c gets its reservation.
	v.pass(4) // the one in service, and a, b, a
	expect.True(t, "b's first is served", func() bool { return len(s.models[0].Records()) >= 5 })
	s.begin(from("c"))
	s.epp.waitFor(1, "weir_queue_length")
	v.open()
	s.epp.settled()
	if got := s.epp.outcomes(); got["queue-full"] != 1 || got["dispatched"] != 6 {
		t.Errorf("outcomes are %v, want 6 dispatched, 1 queue-full", got)
	}
}

// Sheddable requests are not queued: they are rejected when the stock is at or above the upper bound (A9), and below it
// while a request waits.
func TestShed(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: `
requestQueueController: { watermarkPerBackend: 2, lowerBoundPerBackend: 1, upperBoundPerBackend: 2 }
models: [ { name: batch, criticality: Sheddable, targets: [ { name: tiny } ] } ]
`})
	batch := ask{body: chat("batch", false)}
	s.begin(batch) // stock 0 is below the bound and the queue is empty: it goes
	s.epp.waitFor(1, "weir_stock_level")
	s.begin(ask{})
	s.epp.waitFor(2, "weir_stock_level")

	// The stock is exactly at the upper bound.
	wantRejection(t, s.send(batch), rejection{status: 503, reason: "shed"})
	// At the same bound a critical request is queued (A8).
	s.begin(ask{})
	s.epp.waitFor(1, "weir_queue_length")

	// Below the upper bound, but not below the lower, the critical request still waits, so no other bypasses it.
	v.pass(1)
	s.epp.waitFor(1, "weir_stock_level")
	s.epp.waitFor(1, "weir_queue_length")
	wantRejection(t, s.send(batch), rejection{status: 503, reason: "shed"})

	s.logged("status", 503.0, "details", "shed")
	v.open()
	s.epp.settled()
	if got := s.epp.outcomes(); got["shed"] != 2 || got["dispatched"] != 3 {
		t.Errorf("outcomes are %v, want 3 dispatched, 2 shed", got)
	}
}

// A request that waits longer than its TTL is rejected once, and never reaches a model server (A5).
func TestTTLExpired(t *testing.T) {
	t.Parallel()
	v := newValve()
	// The sweep is far off: only the deadline itself can end the wait.
	s := start(t, setup{models: v.one(), config: `
fairRequestQueue: { queueTTL: 300ms }
requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1, expiryCleanupInterval: 10m }
`})
	s.begin(from("first"))
	s.epp.waitFor(1, "weir_stock_level")

	begun := time.Now()
	wantRejection(t, s.send(from("late")), rejection{status: 503, reason: "ttl-expired"})
	if waited := time.Since(begun); waited < 300*time.Millisecond {
		t.Errorf("it was turned away after %v", waited)
	}
	s.logged("status", 503.0, "details", "ttl-expired")
	if n := s.epp.value("weir_requests_expired_total", "model", "tiny", "target_model", "tiny"); n != 1 {
		t.Errorf("expired: %v, want 1", n)
	}
	if n := s.epp.value("weir_queue_latency_seconds", "success", "false"); n != 1 {
		t.Errorf("observed waits that ended badly: %v, want 1", n)
	}
	v.open()
	s.epp.settled()
	if got := tenants(s.models[0]); len(got) != 1 {
		t.Errorf("the model server got %v, want the first one only", got)
	}
	if got := s.epp.outcomes(); got["ttl-expired"] != 1 || got["dispatched"] != 1 || len(got) != 2 {
		t.Errorf("outcomes are %v, want 1 dispatched, 1 ttl-expired", got)
	}
}

// Within a flow requests are served in order of arrival (A3): three that queued one after another are served in that
// order.
func TestOrderWithinAFlow(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: single})
	want := []string{"0", "1", "2", "3"}
	for i, name := range want {
		s.begin(from(name)) // the flow is the model's
		if i == 0 {
			s.epp.waitFor(1, "weir_stock_level")
		} else {
			s.epp.waitFor(float64(i), "weir_queue_length")
		}
	}
	v.open()
	s.epp.settled()
	if got := tenants(s.models[0]); !slices.Equal(got, want) {
		t.Errorf("served %v, want %v", got, want)
	}
	if n := s.epp.value("weir_queue_latency_seconds", "success", "true", "model", "tiny"); n != 3 {
		t.Errorf("observed waits: %v, want 3", n)
	}
}

// A client's own deadline, in a header that an outer hop sets, ends its wait before the TTL does (parity A6).
func TestDeadlineHeader(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: byTenant +
		"requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1, " +
		"deadlineHeaders: [x-deadline-ms] }\n"})
	s.begin(from("a"))
	s.epp.waitFor(1, "weir_stock_level")

	hurried := from("b")
	hurried.header = append(hurried.header, "x-deadline-ms", "300")
	sent := time.Now()
	if got := s.send(hurried); got.status != 504 || got.reason() != "deadline-exceeded" ||
		!strings.Contains(got.body, `"code":"deadline-exceeded"`) || got.header.Get("Retry-After") != "" {
		t.Errorf("got %d %q %v: %s", got.status, got.reason(), got.header, got.body)
	}
	if waited := time.Since(sent); waited < 300*time.Millisecond {
		t.Errorf("the deadline of 300 ms was over after %v", waited)
	}
	s.epp.waitFor(0, "weir_queue_length")
	s.logged("status", 504.0, "details", "deadline-exceeded")
	v.open()
	s.epp.settled()
	if got := s.epp.outcomes(); got["deadline-exceeded"] != 1 || got["dispatched"] != 1 {
		t.Errorf("outcomes are %v, want 1 dispatched, 1 deadline-exceeded", got)
	}
}
