package extproc

import (
	"strings"
	"testing"
	"testing/synctest"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// Every reply that names the only endpoint has these headers.
const (
	dest = "+x-gateway-destination-endpoint=10.0.0.1:8000"
	meta = "meta=10.0.0.1:8000"
)

// TestStates follows requests through the states, in each mode: Envoy's messages, and the answer to each.
func TestStates(t *testing.T) {
	type step struct {
		say  *extprocv3.ProcessingRequest // or
		do   string                       // hold, grant, reject, preempt
		want string
	}
	const prompt = `{"model":"m","messages":[]}`
	long := `{"model":"m","prompt":"` + strings.Repeat("x", 150_000) + `"}`
	tests := []struct {
		name   string
		mode   string
		change func(*Config)
		steps  []step
	}{
		{"BUFFERED, the headers say enough: the body is never sent", "BUFFERED/NONE", nil, []step{
			{say: chat("x-gateway-model-name", "m"), want: "headers " + dest + " -x-gateway-model-name " + meta + " override=NONE/NONE"},
			{say: responseHeaders("200", false), want: "response-headers"},
		}},
		{"BUFFERED, an override that Envoy ignores: the body comes all the same", "BUFFERED/NONE", nil, []step{
			{say: chat("x-gateway-model-name", "m"), want: "headers " + dest + " -x-gateway-model-name " + meta + " override=NONE/NONE"},
			{say: requestBodyOf(prompt, true), want: "body"},
			{say: responseHeaders("200", false), want: "response-headers"},
		}},
		{"BUFFERED, the body is needed: headers at once, the destination in the body's answer", "BUFFERED/NONE", nil, []step{
			{say: chat(), want: "headers override=BUFFERED/NONE"},
			{say: requestBodyOf(prompt, true), want: "body " + dest + " " + meta},
			{say: responseHeaders("200", false), want: "response-headers"},
			{say: responseTrailers(), want: "response-trailers"},
		}},
		{"BUFFERED, with whole answers, which have trailers: the mode stays while the body is awaited", "BUFFERED/FULL_DUPLEX", nil, []step{
			{say: chat(), want: "headers"},
			{say: requestBodyOf(prompt, true), want: "body " + dest + " " + meta},
			{say: responseHeaders("200", false), want: ""},
			{say: responseBodyOf("x", true), want: "response-headers; response-body chunk=x end"},
		}},
		{"BUFFERED, held in the body phase", "BUFFERED/NONE", nil, []step{
			{do: "hold"},
			{say: chat(), want: "headers override=BUFFERED/NONE"},
			{say: requestBodyOf(prompt, false), want: "timeout=35s"},
			{say: requestTrailers(), want: ""},
			{do: "grant", want: "body " + dest + " " + meta + "; trailers"},
		}},
		{"BUFFERED, a large body: Envoy is asked for its time and the longest wait, before it sends the body", "BUFFERED/NONE", nil, []step{
			{do: "hold"},
			{say: chat("content-length", "33554432"), want: "headers override=BUFFERED/NONE; timeout=9m37s"}, // 30 s + 512 s, 30 s, 5 s
			{say: requestBodyOf(prompt, true), want: "timeout=35s"},
			{do: "grant", want: "body " + dest + " " + meta},
		}},
		{"BUFFERED, no request is announced for longer than Envoy holds one", "BUFFERED/NONE", func(c *Config) { c.LongestWait = LongestHold }, []step{
			{say: chat("content-length", "65536"), want: "headers override=BUFFERED/NONE; timeout=1h0m0s"},
		}},
		{"BUFFERED, a body that no message timeout minds", "BUFFERED/NONE", nil, []step{
			{say: chat("content-length", "65535"), want: "headers override=BUFFERED/NONE"},
		}},
		{"BUFFERED_PARTIAL, a large body", "BUFFERED_PARTIAL/NONE", nil, []step{
			{say: chat("content-length", "65536"), want: "headers override=BUFFERED_PARTIAL/NONE; timeout=1m6s"},
		}},
		{"FULL_DUPLEX, a large body: no timeout runs", "FULL_DUPLEX/FULL_DUPLEX", nil, []step{
			{say: chat("content-length", "33554432"), want: ""},
		}},
		{"BUFFERED, a large body that is not taken waits as any request", "BUFFERED/NONE", nil, []step{
			{do: "hold"},
			{say: chat("x-gateway-model-name", "m", "content-length", "33554432"), want: "timeout=35s"},
			{do: "grant", want: "headers " + dest + " -x-gateway-model-name " + meta + " override=NONE/NONE"},
		}},
		{"BUFFERED, held in the header phase, then rejected", "BUFFERED/NONE", nil, []step{
			{do: "hold"},
			{say: chat("x-gateway-model-name", "m"), want: "timeout=35s"},
			{do: "reject", want: "immediate 503 ttl-expired"},
		}},
		{"BUFFERED, Envoy's own 413 while the body arrives", "BUFFERED/NONE", nil, []step{
			{say: chat(), want: "headers override=BUFFERED/NONE"},
			{say: responseHeaders("413", false), want: "response-headers"},
		}},
		{"BUFFERED, a body that is announced as too large is not awaited", "BUFFERED/NONE", atMost100, []step{
			{say: chat("content-length", "101"), want: "immediate 413 too-large"},
		}},
		{"BUFFERED, a body that is announced as just small enough", "BUFFERED/NONE", atMost100, []step{
			{say: chat("content-length", "100"), want: "headers override=BUFFERED/NONE"},
			{say: requestBodyOf(prompt+strings.Repeat(" ", 100-len(prompt)), true), want: "body " + dest + " " + meta},
		}},
		{"BUFFERED, a large body that is not taken", "BUFFERED/NONE", atMost100, []step{
			{
				say:  chat("x-gateway-model-name", "m", "content-length", "101"),
				want: "headers " + dest + " -x-gateway-model-name " + meta + " override=NONE/NONE",
			},
		}},
		{"BUFFERED_PARTIAL, a large body of which a part is taken", "BUFFERED_PARTIAL/NONE", always100, []step{
			{say: chat("content-length", "101", "x-gateway-model-name", "m"), want: "headers -x-gateway-model-name override=BUFFERED_PARTIAL/NONE"},
			{say: requestBodyOf(`{"model":"m","messages":[{"content":"aaa`, false), want: "body " + dest + " " + meta},
		}},
		{"FULL_DUPLEX, a body that is announced as too large is not awaited", "FULL_DUPLEX/FULL_DUPLEX", atMost100, []step{
			{say: chat("content-length", "101"), want: "immediate 413 too-large"},
		}},
		{"BUFFERED, trailers and no body", "BUFFERED/NONE", nil, []step{
			{say: chat(), want: "headers override=BUFFERED/NONE"},
			{say: requestTrailers(), want: "immediate 400 bad-request"},
		}},
		{"NONE, placed by what the headers say", "NONE/NONE", nil, []step{
			{say: chat(), want: "headers " + dest + " " + meta},
			{say: responseHeaders("503", false), want: "response-headers"},
		}},
		{"NONE, without a response phase", "NONE/NONE", nil, []step{
			{say: chat(), want: "headers " + dest + " " + meta},
		}},
		{"STREAMED, held in the header phase, chunks answered empty", "STREAMED/STREAMED", nil, []step{
			{do: "hold"},
			{say: chat(), want: "timeout=35s"},
			{do: "grant", want: "headers " + dest + " " + meta + " override=NONE/STREAMED"},
			{say: requestBodyOf(`{"mod`, false), want: "body"},
			{say: requestBodyOf(`el":"m"}`, true), want: "body"},
			{say: responseHeaders("200", false), want: "response-headers"},
			{say: responseBodyOf("data: x\n\n", false), want: "response-body"},
			{say: responseBodyOf("", true), want: "response-body"},
		}},
		{"BUFFERED_PARTIAL, a body that ends within the part", "BUFFERED_PARTIAL/NONE", nil, []step{
			{say: chat(), want: "headers override=BUFFERED_PARTIAL/NONE"},
			{say: requestBodyOf(`{"model":"m"}`, true), want: "body " + dest + " " + meta},
			{say: responseHeaders("200", false), want: "response-headers"},
		}},
		{"BUFFERED_PARTIAL, a body that is cut off after a model, which another may follow", "BUFFERED_PARTIAL/NONE", nil, []step{
			{say: chat(), want: "headers override=BUFFERED_PARTIAL/NONE"},
			{say: requestBodyOf(`{"model":"cheap","messages":[{"content":"aaa`, false), want: "immediate 400 bad-request"},
		}},
		{"BUFFERED_PARTIAL, cut off before the model", "BUFFERED_PARTIAL/NONE", nil, []step{
			{say: chat(), want: "headers override=BUFFERED_PARTIAL/NONE"},
			{say: requestBodyOf(`{"messages":[{"content":"aaa`, false), want: "immediate 400 bad-request"},
		}},
		{"BUFFERED_PARTIAL, rewritten when it is whole", "BUFFERED_PARTIAL/NONE", rewriteM, []step{
			{say: chat("content-length", "13"), want: "headers override=BUFFERED_PARTIAL/NONE"},
			{
				say:  requestBodyOf(`{"model":"m"}`, true),
				want: "body " + dest + ` +content-length=16 body={"model":"m-v1"} ` + meta,
			},
		}},
		{"BUFFERED_PARTIAL, a part is not rewritten", "BUFFERED_PARTIAL/NONE", rewriteM, []step{
			{say: chat("content-length", "1000", "x-gateway-model-name", "m"), want: "headers -x-gateway-model-name override=BUFFERED_PARTIAL/NONE"},
			{say: requestBodyOf(`{"model":"m","messages":[{"content":"aaa`, false), want: "body " + dest + " " + meta},
		}},
		{"BUFFERED, rewritten: content-length in the same answer", "BUFFERED/NONE", rewriteM, []step{
			{say: chat("content-length", "27"), want: "headers override=BUFFERED/NONE"},
			{say: requestBodyOf(prompt, true), want: "body " + dest + ` +content-length=30 body={"model":"m-v1","messages":[]} ` + meta},
		}},
		{"BUFFERED, the trusted header's model is rewritten too, so the body is taken", "BUFFERED/NONE", rewriteM, []step{
			{say: chat("x-gateway-model-name", "m"), want: "headers -x-gateway-model-name override=BUFFERED/NONE"},
			{say: requestBodyOf(prompt, true), want: "body " + dest + ` +content-length=30 body={"model":"m-v1","messages":[]} ` + meta},
		}},
		{"FULL_DUPLEX, the whole body first, then sent back", "FULL_DUPLEX/FULL_DUPLEX", nil, []step{
			{do: "hold"},
			{say: chat(), want: ""},
			{say: requestBodyOf(prompt[:10], false), want: ""},
			{say: requestBodyOf(prompt[10:], true), want: "timeout=35s"},
			{do: "grant", want: "headers " + dest + " " + meta + "; body chunk=" + prompt + " end"},
			{say: responseHeaders("200", false), want: ""}, // held: it is not the first token
			{say: responseBodyOf("data: x\n\n", false), want: "response-headers; response-body chunk=data: x\n\n"},
			{say: responseBodyOf("", true), want: "response-body chunk= end"},
		}},
		{"FULL_DUPLEX, trailers end the body and the answer", "FULL_DUPLEX/FULL_DUPLEX", nil, []step{
			{say: chat(), want: ""},
			{say: requestBodyOf(prompt, false), want: ""},
			{say: requestTrailers(), want: "headers " + dest + " " + meta + "; body chunk=" + prompt + "; trailers"},
			{say: responseHeaders("200", false), want: ""},
			{say: responseTrailers(), want: "response-headers; response-trailers"},
		}},
		{"FULL_DUPLEX, chunks of at most 64 KiB each way", "FULL_DUPLEX/FULL_DUPLEX", nil, []step{
			{say: chat(), want: ""},
			{say: requestBodyOf(long, true), want: "headers " + dest + " " + meta +
				"; body chunk=(65536 bytes); body chunk=(65536 bytes); body chunk=(18953 bytes) end"},
			{say: responseHeaders("200", false), want: ""},
			{say: responseBodyOf(long, true), want: "response-headers; response-body chunk=(65536 bytes)" +
				"; response-body chunk=(65536 bytes); response-body chunk=(18953 bytes) end"},
		}},
		{"FULL_DUPLEX, rewritten: a content-length is removed", "FULL_DUPLEX/NONE", rewriteM, []step{
			{say: chat("content-length", "27"), want: ""},
			{say: requestBodyOf(prompt, true), want: "headers " + dest + " -content-length " + meta +
				`; body chunk={"model":"m-v1","messages":[]} end`},
			{say: responseHeaders("200", false), want: "response-headers"},
		}},
		{"FULL_DUPLEX, no body in the answer", "FULL_DUPLEX/FULL_DUPLEX", nil, []step{
			{say: chat(), want: ""},
			{say: requestBodyOf(prompt, true), want: "headers " + dest + " " + meta + "; body chunk=" + prompt + " end"},
			{say: responseHeaders("204", true), want: "response-headers"},
		}},
		{"FULL_DUPLEX, passed on: nothing is collected", "FULL_DUPLEX/FULL_DUPLEX", nil, []step{
			{say: requestHeaders(false, ":method", "POST", ":path", "/tokenize", "content-type", "multipart/form-data; boundary=x"), want: "headers " + dest + " " + meta},
			{say: requestBodyOf("--x", false), want: "body chunk=--x"},
			{say: requestBodyOf("--x--", true), want: "body chunk=--x-- end"},
		}},
		{"FULL_DUPLEX, preempted while the answer's headers are held", "FULL_DUPLEX/FULL_DUPLEX", nil, []step{
			{do: "preemptible"},
			{say: chat(), want: ""},
			{say: requestBodyOf(prompt, true), want: "headers " + dest + " " + meta + "; body chunk=" + prompt + " end"},
			{say: responseHeaders("200", false), want: ""},
			{do: "preempt", want: "immediate 503 preempted"},
		}},
		{"FULL_DUPLEX, comments are no token: they are held, and go on before it", "FULL_DUPLEX/FULL_DUPLEX", nil, []step{
			{say: chat(), want: ""},
			{say: requestBodyOf(prompt, true), want: "headers " + dest + " " + meta + "; body chunk=" + prompt + " end"},
			{say: responseHeaders("200", false, "content-type", "text/event-stream"), want: ""},
			{say: responseBodyOf(": ping\n\n", false), want: ""},
			{say: responseBodyOf(": pong\n\n", false), want: ""},
			{say: responseBodyOf("data: x\n\n", false), want: "response-headers; response-body chunk=: ping\n\n: pong\n\n; response-body chunk=data: x\n\n"},
			{say: responseBodyOf(": more\n\n", true), want: "response-body chunk=: more\n\n end"},
		}},
		{"FULL_DUPLEX, comments that end with trailers", "FULL_DUPLEX/FULL_DUPLEX", nil, []step{
			{say: chat(), want: ""},
			{say: requestBodyOf(prompt, true), want: "headers " + dest + " " + meta + "; body chunk=" + prompt + " end"},
			{say: responseHeaders("200", false, "content-type", "text/event-stream"), want: ""},
			{say: responseBodyOf(": ping\n\n", false), want: ""},
			{say: responseTrailers(), want: "response-headers; response-body chunk=: ping\n\n; response-trailers"},
		}},
		{"FULL_DUPLEX, more than is kept", "FULL_DUPLEX/FULL_DUPLEX", nil, []step{
			{say: chat(), want: ""},
			{say: requestBodyOf(prompt, true), want: "headers " + dest + " " + meta + "; body chunk=" + prompt + " end"},
			{say: responseHeaders("200", false, "content-type", "text/event-stream"), want: ""},
			{say: responseBodyOf(":"+strings.Repeat("x", maxEarlyBytes-1), false), want: ""},
			{say: responseBodyOf("y", false), want: "response-headers; response-body chunk=(16384 bytes); response-body chunk=y"},
		}},
		{"preempted before any answer", "BUFFERED/NONE", nil, []step{
			{do: "preemptible"},
			{say: chat(), want: "headers override=BUFFERED/NONE"},
			{say: requestBodyOf(prompt, true), want: "body " + dest + " " + meta + " linked"},
			{do: "preempt", want: "immediate 503 preempted"},
		}},
		{"never preempted after the first byte", "BUFFERED/NONE", nil, []step{
			{do: "preemptible"},
			{say: chat(), want: "headers override=BUFFERED/NONE"},
			{say: requestBodyOf(prompt, true), want: "body " + dest + " " + meta + " linked"},
			{say: responseHeaders("200", false), want: "response-headers"},
			{do: "preempt", want: ""},
		}},
		{"a message of a later Envoy", "BUFFERED/NONE", nil, []step{
			{say: chat(), want: "headers override=BUFFERED/NONE"},
			{say: &extprocv3.ProcessingRequest{}, want: ""},
			{say: requestBodyOf(prompt, true), want: "body " + dest + " " + meta},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newBench(t, test.change).open(test.mode)
				for i, s := range test.steps {
					switch s.do {
					case "hold":
						c.controller.hold = true
					case "grant":
						c.controller.grant <- nil
					case "reject":
						c.controller.grant <- flowcontrol.ErrExpiredTTL
					case "preemptible":
						c.controller.preempt = make(chan struct{})
					case "preempt":
						close(c.controller.preempt)
					default:
						c.say(s.say)
					}
					if got := c.heard(); got != s.want {
						t.Errorf("step %d (%s%v):\n got %s\nwant %s", i, s.do, s.say, got, s.want)
					}
				}
				c.settled(1)
				if c.logged.has(`"stack"`) > 0 {
					t.Error("a panic")
				}
			})
		})
	}
}

// atMost100 takes bodies of up to 100 bytes.
func atMost100(c *Config) { c.Limits.MaxBodyBytes = 100 }

// rewriteM serves the model m as m-v1.
func always100(c *Config) {
	c.Limits.MaxBodyBytes, c.RequestBody = 100, request.BodyAlways
}

func rewriteM(c *Config) {
	c.Models = []request.Model{{Name: "m", Targets: []request.Target{{Name: "m-v1", Weight: 1}}}}
}

// Envoy's own responses, and the streams of a filter in observability mode, are not requests, so nothing is admitted.
func TestForeignStreamsAdmitNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newBench(t, nil).open("BUFFERED/NONE")
		c.say(responseHeaders("404", true))
		if got := c.heard(); got != "response-headers" {
			t.Errorf("got %q", got)
		}
		c.say(responseTrailers())
		if got := c.heard(); got != "response-trailers" {
			t.Errorf("got %q", got)
		}
		c.settled(0)
	})
	synctest.Test(t, func(t *testing.T) {
		c := newBench(t, nil).open("BUFFERED/NONE")
		m := chat()
		m.ObservabilityMode = true
		c.say(m)
		c.say(requestBodyOf("{}", true))
		c.say(responseHeaders("200", true))
		if got := c.heard(); got != "" {
			t.Errorf("answered %q in observability mode", got)
		}
		c.settled(0)
	})
}

// If a client leaves while its request waits, its place is free at once, whether the stream is half-closed or reset.
func TestClientGoneWhileQueued(t *testing.T) {
	for _, how := range []string{"half-closed", "reset"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newBench(t, nil).open("BUFFERED/NONE")
				c.controller.hold = true
				c.say(chat("x-gateway-model-name", "m"))
				if got := c.heard(); got != "timeout=35s" {
					t.Fatalf("got %q", got)
				}
				if how == "reset" {
					c.cancel()
				}
				c.settled(1)
				if got := c.heard(); got != "" {
					t.Errorf("answered %q without a reader", got)
				}
			})
		})
	}
}

// If a client leaves while its body is still arriving, its request still has exactly one outcome.
func TestClientGoneBeforeItsBody(t *testing.T) {
	for _, mode := range []string{"BUFFERED/NONE", "FULL_DUPLEX/FULL_DUPLEX"} {
		synctest.Test(t, func(t *testing.T) {
			c := newBench(t, nil).open(mode)
			c.say(chat())
			c.heard()
			c.settled(1)
			if o := flowcontrol.OutcomeOf(c.controller.refused[0]); o != flowcontrol.OutcomeClientCancelled {
				t.Errorf("outcome %v", o)
			}
		})
	}
}
