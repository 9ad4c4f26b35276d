package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/modelsim"
)

// call is the result of one call of a real client; see testdata/clients.py.
type call struct {
	Text   string
	Tokens int

	Exception, Message, Type, Code, Shown string

	Attempts []attempt
}

// attempt is one request on the wire.
type attempt struct {
	At, Answered float64 // seconds
	Status       int
	RetryAfter   string `json:"retry-after"`
	RetryAfterMs string `json:"retry-after-ms"`
	ShouldRetry  string `json:"x-should-retry"`
	Reason       string `json:"x-weir-reason"`
}

// python starts the real clients. The channel receives the results of the calls, by name.
func (s *scene) python(what string, options ...string) <-chan map[string]call {
	s.t.Helper()
	interpreter := os.Getenv("CLIENTS_PYTHON")
	if interpreter == "" {
		s.t.Fatal("no Python with the openai and anthropic clients: run `make openai`, and set CLIENTS_PYTHON=$(hack/clients.sh)")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	arguments := append([]string{"testdata/clients.py", s.envoy().URL(), what}, options...)
	cmd := exec.CommandContext(ctx, interpreter, arguments...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	ended := make(chan map[string]call, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(ended)
		out, err := cmd.Output()
		if err != nil {
			s.t.Errorf("%s: %v\n%s", what, err, complaints.String())
			return
		}
		calls := map[string]call{}
		if err := json.Unmarshal(out, &calls); err != nil {
			s.t.Errorf("%s: %v: %s", what, err, out)
		}
		ended <- calls
	}()
	s.t.Cleanup(func() { cancel(); <-done })
	return ended
}

// Every API of the real clients works through Weir, streaming or not, with both ways in which Envoy shows bodies.
func TestRealClientsWork(t *testing.T) {
	t.Parallel()
	for _, envoy := range []string{"recommended", "full-duplex"} {
		t.Run(envoy, func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{envoys: []string{envoy}})
			calls := <-s.python("everything")
			if len(calls) != 8 {
				t.Errorf("%d calls, want 8", len(calls))
			}
			for name, c := range calls {
				if c.Exception != "" || c.Text == "" || c.Tokens != 8 || len(c.Attempts) != 1 {
					t.Errorf("%s: %+v, want a text of 8 tokens at the first attempt", name, c)
				}
			}
			if n := s.epp.outcomes()["dispatched"]; n != 8 {
				t.Errorf("dispatched %d, want 8", n)
			}
		})
	}
}

// congested starts one request that does not end by itself, and fills the only place in the queue.
func congested(t *testing.T, config string) *scene {
	t.Helper()
	s := start(t, setup{
		models: []modelsim.Config{modelsim.Fixed(1, 5*time.Millisecond)}, file: true,
		config: `
fairRequestQueue: { totalCapacity: 1, flowCapacity: 1, queueTTL: 10m }
requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }
` + config,
	})
	s.models[0].Inject(1, modelsim.Quirk{HeaderDelay: time.Hour})
	return s
}

// Users of the real clients get the exception that their code expects, with Weir's message in it.
func TestRealClientsGetTypedExceptions(t *testing.T) {
	t.Parallel()
	const waiting = "Too many requests without a tenant are waiting for this model. Please retry later."
	for _, c := range []struct {
		name, config string
		lists        string // the only model that the model server lists
		options      []string
		full         bool
		openAI       call
		anthropic    call
	}{
		{
			name: "429", config: "responses: { preset: gateway }", full: true,
			openAI:    call{Exception: "openai.RateLimitError", Type: "rate_limit_error", Code: "flow-full", Message: waiting},
			anthropic: call{Exception: "anthropic.RateLimitError", Type: "rate_limit_error", Code: "flow-full", Message: waiting},
		},
		{
			name: "503", full: true,
			openAI:    call{Exception: "openai.InternalServerError", Type: "server_error", Code: "flow-full", Message: waiting},
			anthropic: call{Exception: "anthropic.ServiceUnavailableError", Type: "overloaded_error", Code: "flow-full", Message: waiting},
		},
		{
			name: "529", config: "responses: { preset: dynamo }", full: true,
			openAI:    call{Exception: "openai.InternalServerError", Type: "server_error", Code: "flow-full", Message: waiting},
			anthropic: call{Exception: "anthropic.OverloadedError", Type: "overloaded_error", Code: "flow-full", Message: waiting},
		},
		{
			name: "400", options: []string{"model="},
			openAI: call{
				Exception: "openai.BadRequestError", Type: "invalid_request_error", Code: "bad-request",
				Message: `The field "model" is empty.`,
			},
			anthropic: call{
				Exception: "anthropic.BadRequestError", Type: "invalid_request_error", Code: "bad-request",
				Message: `The field "model" is empty.`,
			},
		},
		{
			name: "404", lists: "tiny", options: []string{"model=other"},
			openAI: call{
				Exception: "openai.NotFoundError", Type: "invalid_request_error", Code: "unknown-model",
				Message: `No model server serves the model "other".`,
			},
			anthropic: call{
				Exception: "anthropic.NotFoundError", Type: "not_found_error", Code: "unknown-model",
				Message: `No model server serves the model "other".`,
			},
		},
		{
			name: "413", config: "limits: { maxBodyBytes: 1000 }", options: []string{"bytes=2000"},
			openAI: call{
				Exception: "openai.APIStatusError", Type: "invalid_request_error", Code: "too-large",
				Message: "The request body is larger than 1000 bytes.",
			},
			anthropic: call{
				Exception: "anthropic.ContentTooLargeError", Type: "request_too_large", Code: "too-large",
				Message: "The request body is larger than 1000 bytes.",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := congested(t, c.config+"\n")
			if c.lists != "" {
				s.listEndpoints()
				s.listEndpoints(fmt.Sprintf("{ address: %q, models: [%s] }", s.models[0].Address(), c.lists))
			}
			if c.full {
				s.begin(ask{})
				s.running(1)
				s.begin(ask{})
				s.epp.waitFor(1, "weir_queue_length")
			}
			calls := <-s.python("chat,chat_stream,messages,messages_stream", append(c.options, "retries=0")...)
			for name, got := range calls {
				want := c.openAI
				if strings.HasPrefix(name, "messages") {
					want = c.anthropic
				}
				if got.Exception != want.Exception || got.Type != want.Type || got.Code != want.Code || got.Message != want.Message {
					t.Errorf("%s: got %+v\nwant %+v", name, got, want)
				}
				if !strings.Contains(got.Shown, want.Message) {
					t.Errorf("%s: the user reads %q", name, got.Shown)
				}
			}
			if len(calls) != 4 {
				t.Errorf("%d calls, want 4", len(calls))
			}
		})
	}
}

// A rejection has a Retry-After, and the real clients retry at that time. By then there is room, and the user notices
// nothing.
func TestRealClientsRetryWhenTold(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"chat_stream", "messages"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := congested(t, "")
			running := s.begin(ask{})
			s.running(1)
			s.begin(ask{})
			s.epp.waitFor(1, "weir_queue_length")
			calls := s.python(name)
			s.epp.waitFor(1, "weir_requests_total", "outcome", "flow-full")
			running.cancel() // the queue empties while the client waits

			got := (<-calls)[name]
			if got.Text == "" || len(got.Attempts) != 2 {
				t.Fatalf("got %+v, want a text at the second attempt", got)
			}
			first, second := got.Attempts[0], got.Attempts[1]
			if first.Status != 503 || first.Reason != "flow-full" || first.RetryAfter == "" {
				t.Errorf("rejected with %+v", first)
			}
			ms, err := strconv.ParseFloat(first.RetryAfterMs, 64)
			if err != nil {
				t.Fatal(err)
			}
			// The retry is never before that time, and not long after it. Without Retry-After it would come within 1 s.
			told, waited := ms/1000, second.At-first.Answered
			if waited < told || waited > told+10 {
				t.Errorf("came back after %.3f s, Retry-After was %.3f s", waited, told)
			}
		})
	}
}

// If a retry is hopeless, the answer tells the clients not to retry, even with a status that they would retry.
func TestRealClientsDoNotRetryTheHopeless(t *testing.T) {
	t.Parallel()
	s := start(t, setup{config: "limits: { maxBodyBytes: 1000 }\nresponses: { status: { too-large: 503 } }\n"})
	calls := <-s.python("chat,chat_stream,messages,messages_stream", "bytes=2000")
	for name, got := range calls {
		if len(got.Attempts) != 1 || got.Attempts[0].Status != 503 || got.Attempts[0].ShouldRetry != "false" {
			t.Errorf("%s: attempts %+v, want one, 503, and x-should-retry: false", name, got.Attempts)
		}
	}
	if n := s.epp.outcomes()["too-large"]; len(calls) != 4 || n != 4 {
		t.Errorf("%d calls, %d too large, want 4", len(calls), n)
	}
}
