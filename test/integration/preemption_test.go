package integration

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/modelsim"
)

// smgTiers is the profile smg-priority with a small capacity: no reservations, and vip may use every class.
const smgTiers = `
profile: smg-priority
flows: { key: ["header:x-tenant"] }
tenantPolicies: { vip: { maxClass: system } }
tiers:
- { name: system, reservedFloor: 0 }
- { name: interactive, reservedFloor: 0, reservedPerSlot: 0 }
- { name: default, reservedPerSlot: 0 }
- { name: bulk }
`

const (
	smgOneSlot  = smgTiers + "requestQueueController: { slotsPerBackend: 1 }\n"
	smgTwoSlots = smgTiers + "requestQueueController: { slotsPerBackend: 2 }\n"
)

// as returns a request of a class and a tenant.
func as(class, tenant string) ask {
	return ask{header: []string{"x-smg-priority", class, "x-tenant", tenant}}
}

// wantPreempted checks that a preempted client gets the whole 503, and nothing of the answer.
func wantPreempted(t *testing.T, what, path string, got answer) {
	t.Helper()
	if got.err != nil || got.status != http.StatusServiceUnavailable || got.reason() != "preempted" {
		t.Fatalf("%s: got %d %q %v: %q", what, got.status, got.reason(), got.err, got.body)
	}
	for name, want := range map[string]string{
		"X-SMG-Preempted": "true", "Retry-After": "1", "Content-Type": "application/json",
		"X-Llm-D-Request-Dropped-Reason": "preempted",
	} {
		if h := got.header.Get(name); h != want {
			t.Errorf("%s: %s is %q, want %q", what, name, h, want)
		}
	}
	if ms := retryAfterMS(t, got); ms < 1 || ms > 1000 {
		t.Errorf("%s: come back after %d ms", what, ms)
	}
	want := `"type":"server_error","code":"scheduler_preempted"`
	if path == "/v1/messages" {
		want = `{"type":"error","error":{"type":"overloaded_error",`
	}
	if !strings.Contains(got.body, want) {
		t.Errorf("%s: the body is %s, want %s in it", what, got.body, want)
	}
}

// bodies are requests of the APIs.
var bodies = map[string]string{
	"/v1/chat/completions": chat("tiny", false),
	"/v1/completions":      `{"model":"tiny","prompt":"hello","max_tokens":4}`,
	"/v1/messages":         `{"model":"tiny","messages":[],"max_tokens":4}`,
	"/v1/responses":        `{"model":"tiny","input":"hello","max_output_tokens":4}`,
}

// A request of a higher class takes the slot of an unanswered one in flight. The victim's client gets a complete 503 in
// the form of its API, the victim's work ends at the model server, and the slot is the preemptor's until it ends. This
// works in each of Envoy's configurations.
func TestPreemption(t *testing.T) {
	t.Parallel()
	for _, config := range []string{"recommended", "gate", "full-duplex", "header-only"} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			v := newValve()
			// Its work takes a moment, so that an abort can be observed.
			engine := []modelsim.Config{v.on(modelsim.Fixed(1, 10*time.Millisecond))}
			s := start(t, setup{envoys: []string{config}, models: engine, config: smgOneSlot})
			// The first answer shows Weir the gate, if there is one.
			first := s.begin(as("default", "a"))
			v.pass(1)
			wantServed(t, "the first", first.wait())

			victims := uint64(0)
			for path, body := range bodies {
				for _, over := range []*http.Client{client, client2} {
					bulk := as("bulk", "a")
					bulk.path, bulk.body, bulk.client = path, body, over
					victim := s.begin(bulk)
					s.running(1)
					urgent := s.begin(as("interactive", "vip"))
					wantPreempted(t, config+path, path, victim.wait())
					victims++
					s.aborted(victims)
					s.running(1)
					v.pass(1)
					wantServed(t, "the preemptor", urgent.wait())
				}
			}
			again := s.begin(as("bulk", "a"))
			v.pass(1)
			wantServed(t, "the next in the slot", again.wait())
			s.epp.settled()
			s.epp.waitFor(0, "weir_extproc_streams")
			s.epp.waitFor(0, "weir_gate_streams")
			if got := s.epp.outcomes(); got["preempted"] != int(victims) || got["dispatched"] != int(victims)+2 {
				t.Errorf("outcomes are %v", got)
			}
			if n := s.epp.value("weir_preempted_total", "victim_tier", "bulk", "by_tier", "interactive"); n != float64(victims) {
				t.Errorf("%v preempted", n)
			}
			s.logged("status", 503.0, "details", "preempted")
		})
	}
}

// A tenant clamped below the classes that may preempt does not preempt: it waits, and the other is served.
func TestClampedTenantDoesNotPreempt(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: smgOneSlot})
	bulk := s.begin(as("bulk", "a"))
	s.running(1)
	clamped := s.begin(as("interactive", "b"))
	s.epp.waitFor(1, "weir_tier_queue_length", "tier", "default")
	v.pass(1)
	wantServed(t, "the one in flight", bulk.wait())
	v.pass(1)
	wantServed(t, "the clamped one", clamped.wait())
	s.epp.settled()
	if got := s.epp.outcomes(); got["preempted"] != 0 || got["dispatched"] != 2 {
		t.Errorf("outcomes are %v", got)
	}
	if n := s.epp.value("weir_priority_clamps_total", "requested", "interactive", "effective", "default"); n != 1 {
		t.Errorf("%v clamps", n)
	}
}

// longStream is a streamed request whose tokens come one by one for a minute, the first after 100 ms.
const longStream = `{"model":"tiny","messages":[],"max_tokens":600,"stream":true}`

// While a streamed request waits for its first token in the model server's own queue, its 200 is held at the gate, and
// it can be preempted cleanly. Once its first token has been sent, it cannot. Without a gate the headers have been
// sent, so no preemption is possible.
func TestPreemptionBeforeTheFirstToken(t *testing.T) {
	t.Parallel()
	for config, preempted := range map[string]bool{"gate": true, "full-duplex": true, "recommended": false} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			engine := modelsim.Fixed(1, time.Minute)
			s := start(t, setup{envoys: []string{config}, models: []modelsim.Config{engine}, config: smgTwoSlots})
			// Any answer shows Weir the gate: here one whose client disconnects.
			first := s.begin(ask{body: longStream})
			s.epp.waitFor(1, "weir_extproc_response_headers_seconds")
			first.cancel()
			s.epp.settled()
			s.running(0)
			tokens := s.epp.value("weir_extproc_time_to_first_token_seconds") // its first one may have come by then

			bulk := as("bulk", "a")
			bulk.body = longStream
			streaming := s.begin(bulk) // the model server's only slot
			s.epp.waitFor(2, "weir_extproc_response_headers_seconds")
			if preempted {
				s.epp.waitFor(tokens+1, "weir_extproc_time_to_first_token_seconds")
			}
			waiting := s.begin(bulk) // waits for it there
			s.running(2)
			s.epp.waitFor(3, "weir_extproc_response_headers_seconds")

			urgent := s.begin(as("interactive", "vip"))
			if preempted {
				wantPreempted(t, config, "", waiting.wait())
				s.aborted(2)
				s.running(2) // the streaming one, and the preemptor
				s.epp.waitFor(0, "weir_queue_length")
			} else {
				s.epp.waitFor(1, "weir_tier_queue_length", "tier", "interactive")
			}
			another := s.begin(as("interactive", "vip"))
			want := 1.0
			if !preempted {
				want = 2
			}
			s.epp.waitFor(want, "weir_tier_queue_length", "tier", "interactive")
			select {
			case <-streaming.done:
				t.Errorf("an answer that had begun ended: %d %v", streaming.answer.status, streaming.answer.err)
			default:
			}
			for _, p := range []*pending{another, urgent, streaming, waiting} {
				p.cancel()
			}
			s.epp.settled()
			s.epp.waitFor(0, "weir_extproc_streams")
			s.epp.waitFor(0, "weir_gate_streams")
		})
	}
}
