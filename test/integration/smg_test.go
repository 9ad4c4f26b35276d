package integration

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// SMG's rejections over the wire, in both shapes.
func TestSMGRejections(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: strings.Replace(smgOneSlot, "- { name: bulk }",
		"- { name: bulk, queueSize: 0 }", 1) + "fairRequestQueue: { totalCapacity: 1856 }\n"})
	running := s.begin(as("default", "a"))
	s.running(1)
	for path, want := range map[string]string{
		"/v1/chat/completions": `"type":"rate_limit_error","code":"scheduler_queue_full"`,
		"/v1/messages":         `{"type":"error","error":{"type":"rate_limit_error",`,
	} {
		full := as("bulk", "a")
		full.path, full.body = path, bodies[path]
		got := s.send(full)
		if got.status != http.StatusTooManyRequests || got.reason() != "queue-full" || !strings.Contains(got.body, want) {
			t.Errorf("%s: got %d %q: %s", path, got.status, got.reason(), got.body)
		}
		if ms := retryAfterMS(t, got); ms < 1000 {
			t.Errorf("%s: come back after %d ms, want a second at least", path, ms)
		}
	}
	v.pass(1)
	wantServed(t, "the one in flight", running.wait())
	s.epp.settled()
}

// tellingState is a configuration that tells clients the queue's state if they ask.
const tellingState = "responses: { queueState: true }\n"

func TestSMGQueueTimeout(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: strings.Replace(smgOneSlot, "- { name: bulk }",
		"- { name: bulk, queueTimeout: 300ms, starvationThreshold: 200ms }", 1) + tellingState})
	running := s.begin(as("default", "a"))
	s.running(1)
	for path, want := range map[string]string{
		"/v1/chat/completions": `"type":"server_error","code":"scheduler_queue_timeout"`,
		"/v1/messages":         `{"type":"error","error":{"type":"overloaded_error",`,
	} {
		late := as("bulk", "a")
		late.path, late.body = path, bodies[path]
		late.header = append(late.header, "x-weir-queue-state", "1")
		got := s.send(late)
		if got.status != http.StatusServiceUnavailable || got.reason() != "ttl-expired" || !strings.Contains(got.body, want) {
			t.Errorf("%s: got %d %q: %s", path, got.status, got.reason(), got.body)
		}
		if ms := retryAfterMS(t, got); ms < 1000 {
			t.Errorf("%s: come back after %d ms, want a second at least", path, ms)
		}
		if waited, err := time.ParseDuration(got.header.Get("x-weir-queued-ms") + "ms"); err != nil || waited < 300*time.Millisecond {
			t.Errorf("%s: waited %v, %v", path, waited, err)
		}
	}
	v.pass(1)
	wantServed(t, "the one in flight", running.wait())
	s.epp.settled()
}

// Unknown classes count as default, and are counted; clients that ask get the queue's state, and others do not.
func TestSMGUnknownClassAndQueueState(t *testing.T) {
	t.Parallel()
	v := newValve()
	s := start(t, setup{models: v.one(), config: smgOneSlot + tellingState})
	running := s.begin(as("default", "a"))
	s.running(1)
	unknown := as("urgent", "vip")
	unknown.header = append(unknown.header, "x-weir-queue-state", "1")
	asked := s.begin(unknown)
	s.epp.waitFor(1, "weir_tier_queue_length", "tier", "default")
	s.epp.waitFor(1, "weir_priority_unknown_total")
	v.pass(1)
	if got := running.wait(); got.header.Get("x-weir-queue-length") != "" || got.header.Get("x-weir-queued-ms") != "" {
		t.Errorf("told to one who did not ask: %v", got.header)
	}
	v.pass(1)
	got := asked.wait()
	wantServed(t, "the unknown", got)
	if got.header.Get("x-weir-queue-length") != "0" || got.header.Get("x-weir-queued-ms") == "" {
		t.Errorf("the queue's state is %v", got.header)
	}
	for _, r := range s.models[0].Records() {
		if r.Header.Get("x-weir-queue-state") != "" {
			t.Error("the question came to the model server")
		}
	}
}

// A content type other than JSON does not bypass the queue.
func TestOtherContentTypeIsQueued(t *testing.T) {
	t.Parallel()
	for _, config := range []string{"recommended", "full-duplex"} {
		t.Run(config, func(t *testing.T) {
			v := newValve()
			s := start(t, setup{envoys: []string{config}, models: v.one(), config: smgOneSlot})
			running := s.begin(as("default", "a"))
			s.running(1)
			status := make(chan int, 1)
			go func() {
				response, err := http.Post(s.envoy().URL()+"/v1/chat/completions", "text/plain", strings.NewReader(chat("tiny", false)))
				if err != nil {
					t.Error(err)
					status <- 0
					return
				}
				_ = response.Body.Close()
				status <- response.StatusCode
			}()
			s.epp.waitFor(1, "weir_queue_length")
			v.pass(1)
			wantServed(t, "the first", running.wait())
			v.pass(1)
			if got := <-status; got != http.StatusOK {
				t.Errorf("the other: %d", got)
			}
			if got := string(s.models[0].Records()[1].Body); got != chat("tiny", false) {
				t.Errorf("its body is %q", got)
			}
		})
	}
}
