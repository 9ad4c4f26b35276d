package extproc

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// linkOf returns the request's ID in a reply's metadata.
func linkOf(m *extprocv3.ProcessingResponse) string {
	return m.GetDynamicMetadata().GetFields()[weirNamespace].GetStructValue().GetFields()[linkKey].GetStringValue()
}

// openGate opens a gate's stream.
func (b *testbench) openGate() *conversation {
	c := b.open("NONE/STREAMED")
	c.gate = true
	return c
}

// arrives sends a gate's first message, of a response to the request with that ID.
func (c *conversation) arrives(id string, m *extprocv3.ProcessingRequest) {
	if id != "" {
		m.MetadataContext = metadataOf(weirNamespace, linkKey, structpb.NewStringValue(id))
	}
	c.say(m)
}

// granted opens a main stream whose request is granted at once, and returns the request's ID.
func (b *testbench) granted(pass ...string) (main *conversation, id string) {
	main = b.open("BUFFERED/NONE")
	main.say(chat(append(pass, "x-gateway-model-name", "m")...))
	for _, m := range main.stream.take() {
		id = linkOf(m)
	}
	return main, id
}

// seeGate opens a gate's stream, so that the server knows of a gate.
func (b *testbench) seeGate() {
	g := b.openGate()
	g.arrives("", responseHeaders("200", false))
	if got := g.heard(); got != "response-headers" {
		b.t.Errorf("a stranger at the gate: %s", got)
	}
	<-g.done // it ends by itself
}

var (
	sseHeaders = []string{"content-type", "text/event-stream"}
	sse        = func() *extprocv3.ProcessingRequest { return responseHeaders("200", false, sseHeaders...) }
)

// Without a gate no request gets an ID. The first gate's stream shows that there is a gate, even if it names no
// request. Weir answers it at once.
func TestGateIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		first, id := b.granted()
		if id != "" {
			t.Error("an ID without a gate")
		}
		first.end()
		b.seeGate()
		second, id := b.granted()
		if len(id) < 20 || b.server.links.len() != 1 {
			t.Errorf("name %q, %d links", id, b.server.links.len())
		}
		third, other := b.granted()
		if other == id {
			t.Error("two requests with one ID")
		}
		second.end()
		third.settled(3)
		if n := b.server.links.len(); n != 0 {
			t.Errorf("%d links at the end", n)
		}
	})
}

// TestGateHolds checks the messages that a gate holds, and the end of each hold.
func TestGateHolds(t *testing.T) {
	const open = "response-headers"
	type step struct {
		say  *extprocv3.ProcessingRequest
		want string
	}
	body := func(s string) *extprocv3.ProcessingRequest { return responseBodyOf(s, false) }
	tests := []struct {
		name  string
		path  string
		steps []step
		ttft  int
	}{
		{"a streamed answer, until its first piece", "", []step{
			{sse(), ""}, {body("data: x\n\n"), open + "; response-body"},
		}, 1},
		{"comments are no token", "", []step{
			{sse(), ""}, {body(": ping\n\n"), ""}, {body(": pi"), ""}, {body("ng\n\nda"), open + "; response-body; response-body; response-body"},
		}, 1},
		{"a whole answer, until its first piece", "", []step{
			{responseHeaders("200", false, "content-type", "application/json"), ""}, {body("{"), open + "; response-body"},
		}, 1},
		{"an error's piece is no token to be measured", "", []step{
			{responseHeaders("500", false), ""}, {body("{}"), open + "; response-body"},
		}, 0},
		{"no body", "", []step{{responseHeaders("204", true), open}}, 0},
		{"trailers first", "", []step{{sse(), ""}, {responseTrailers(), open + "; response-trailers"}}, 0},
		{"the end of comments", "", []step{
			{sse(), ""}, {body(": ping\n\n"), ""}, {responseBodyOf("", true), open + "; response-body; response-body"},
		}, 0},
		{"an empty piece is none", "", []step{
			{responseHeaders("200", false), ""}, {body(""), ""}, {body("x"), open + "; response-body; response-body"},
		}, 1},
		{"announced trailers, which Envoy keeps back while the headers wait", "", []step{
			{responseHeaders("200", false, "trailer", "x-sum"), open},
		}, 0},
		{"gRPC has trailers always", "", []step{{responseHeaders("200", false, "content-type", "application/grpc"), open}}, 0},
		{"early events of /v1/responses", "/v1/responses", []step{
			{sse(), ""},
			{body("event: response.created\ndata: {}\n\n"), ""},
			{body("event: response.in_progress\ndata: {}\n\n"), ""},
			{body("event: response.output_item.added\n"), open + "; response-body; response-body; response-body"},
		}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, nil)
				b.seeGate()
				var pass []string
				if test.path != "" {
					pass = []string{":path", test.path}
				}
				main := b.open("BUFFERED/NONE")
				m := chat("x-gateway-model-name", "m")
				if pass != nil {
					m.GetRequestHeaders().GetHeaders().GetHeaders()[1].RawValue = []byte(test.path)
				}
				main.say(m)
				id := linkOf(main.stream.take()[0])
				g := b.openGate()
				for i, s := range test.steps {
					if i == 0 {
						g.arrives(id, s.say)
					} else {
						g.say(s.say)
					}
					if got := g.heard(); got != s.want {
						t.Errorf("step %d:\n got %s\nwant %s", i, got, s.want)
					}
				}
				if err := <-g.done; err != nil {
					t.Error(err)
				}
				if got := b.controller.leases[0].firstBytes; got != 1 {
					t.Errorf("the lease was asked %d times", got)
				}
				main.say(responseHeaders("200", false))
				if got := main.heard(); got != "response-headers" {
					t.Errorf("main: %s", got)
				}
				main.settled(1)
				if got := b.counted("weir_extproc_time_to_first_token_seconds"); got != test.ttft {
					t.Errorf("%d first tokens, want %d", got, test.ttft)
				}
				if got := b.counted("weir_extproc_response_headers_seconds"); got != 1 {
					t.Errorf("response headers counted %d times", got)
				}
			})
		})
	}
}

// counted returns the value of a metric, summed over its labels, or the number of observations of a histogram.
func (b *testbench) counted(name string) (sum int) {
	b.t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += int(m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount()))
			}
		}
	}
	return sum
}

// A gate holds a bounded number of messages and bytes.
func TestGateHoldsNoMoreThanItsBounds(t *testing.T) {
	for _, size := range []int{4, 100_000} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, nil)
			b.seeGate()
			main, id := b.granted()
			g := b.openGate()
			g.arrives(id, sse())
			n := 0
			for g.heard() == "" {
				g.say(responseBodyOf(":"+strings.Repeat("x", size-2)+"\n", false))
				n++
			}
			if want := min(maxHeld, (maxHeldBytes+size-1)/size); n != want {
				t.Errorf("let go after %d pieces of %d bytes, want %d", n, size, want)
			}
			main.settled(1)
		})
	}
}

// A gate without an ID, with an unknown one or with that of a rejected request holds nothing and admits nothing.
func TestGateOfStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.seeGate()
		for _, id := range []string{"", "0-0"} {
			g := b.openGate()
			g.arrives(id, sse())
			if got := g.heard(); got != "response-headers" {
				t.Errorf("%q: %s", id, got)
			}
			<-g.done
		}
		// Weir's own rejection on its way to the client is recognised by its reason, and does not count as unknown.
		g := b.openGate()
		g.arrives("gone", responseHeaders("503", false, reasonHeader, "preempted"))
		if got := g.heard(); got != "response-headers" {
			t.Error(got)
		}
		<-g.done
		if got := b.counted("weir_gate_unknown_total"); got != 1 {
			t.Errorf("%v unknown, want 1", got)
		}
		if got := b.counted("weir_gate_streams"); got != 0 {
			t.Errorf("%v streams left", got)
		}
		if b.controller.outcomes != 0 || b.server.Streams() != 0 {
			t.Errorf("%d outcomes, %d streams", b.controller.outcomes, b.server.Streams())
		}
	})
}

// A filter that waits for the answer to the headers, or only observes, is not a gate.
func TestWhatIsNoGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		plain := b.open("NONE/STREAMED") // it waits for the headers' answer, so a hold would stop it
		plain.say(sse())
		if got := plain.heard(); got != "response-headers" {
			t.Error(got)
		}
		plain.end()
		observer := b.openGate()
		m := sse()
		m.ObservabilityMode = true
		observer.say(m)
		if got := observer.heard(); got != "" {
			t.Errorf("answered %s in observability mode", got)
		}
		observer.end()
		if b.server.links.presence.likely() {
			t.Error("taken for a gate")
		}
	})
}

// While the gate holds a streamed response's headers, the main stream can still preempt the request cleanly. After the
// first token it cannot.
func TestPreemptedAtTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.seeGate()
		b.controller.preempt = make(chan struct{})
		main, id := b.granted()
		g := b.openGate()
		g.arrives(id, sse())
		g.heard()
		close(b.controller.preempt)
		if got := main.heard(); got != "immediate 503 preempted" {
			t.Errorf("main: %s", got)
		}
		if n := b.logged.has(`"preempted"`); n == 0 {
			t.Error("no line in the log")
		}
		// A late token is not released, and Envoy ends the gate's stream.
		g.say(responseBodyOf("data: x\n\n", false))
		g.say(responseBodyOf("data: y\n\n", false))
		if got := g.heard(); got != "" {
			t.Errorf("the gate let a preempted answer through: %s", got)
		}
		g.end()
		main.settled(1)
	})
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.seeGate()
		b.controller.preempt = make(chan struct{})
		main, id := b.granted()
		g := b.openGate()
		g.arrives(id, sse())
		g.say(responseBodyOf("data: x\n\n", false))
		if got := g.heard(); got != "response-headers; response-body" {
			t.Errorf("the gate: %s", got)
		}
		if b.controller.leases[0].tryPreempt() {
			t.Error("preempted after its first token")
		}
		main.say(responseHeaders("200", false))
		if got := main.heard(); got != "response-headers" {
			t.Errorf("main: %s", got)
		}
		main.settled(1)
	})
}

// rejecting is the wire of a main stream. When the rejection is sent, Envoy takes it through the gate at once, before the
// main stream has ended.
type rejecting struct {
	*fakeStream
	atGate func()
}

func (r *rejecting) Send(m *extprocv3.ProcessingResponse) error {
	err := r.fakeStream.Send(m)
	if isImmediate(m) {
		r.atGate()
	}
	return err
}

// Weir's own rejection passes the gate at once, even if the main stream that sent it has not ended yet. It does not
// count as a model server's response.
func TestRejectionPassesTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.seeGate()
		b.controller.preempt = make(chan struct{})
		main := &rejecting{fakeStream: &fakeStream{ctx: t.Context(), in: make(chan *extprocv3.ProcessingRequest, 1)}}
		main.atGate = func() {
			g := b.openGate()
			g.arrives(linkOf(main.sent[0]), responseHeaders("503", false))
			if got := g.heard(); got != "response-headers" {
				t.Errorf("the gate answers %q", got)
			}
			<-g.done
		}
		m := chat("x-gateway-model-name", "m")
		m.ProtocolConfig = &extprocv3.ProtocolConfiguration{}
		main.in <- m
		done := make(chan error)
		go func() { done <- b.server.Process(main) }()
		synctest.Wait()
		close(b.controller.preempt)
		<-done
		close(main.in)
		if n := b.counted("weir_extproc_upstream_responses_total") + b.counted("weir_gate_unknown_total"); n != 0 || len(main.sent) != 2 {
			t.Errorf("%d responses counted, %d sent", n, len(main.sent))
		}
	})
}

// If the main stream is lost before it has sent its rejection, the gate sends it, and the client need not wait.
func TestPreemptionOfALostMainStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.seeGate()
		b.controller.preempt = make(chan struct{})
		main, id := b.granted()
		g := b.openGate()
		g.arrives(id, sse())
		g.heard()
		main.cancel()
		<-main.done
		close(b.controller.preempt)
		begun := time.Now()
		g.say(responseBodyOf("data: x\n\n", false))
		<-g.done
		if got := g.heard(); got != "immediate 503 preempted" || time.Since(begun) != lostPatience {
			t.Errorf("%s after %v", got, time.Since(begun))
		}
	})
}

// len returns the number of requests in flight that have an ID.
func (r *links) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byID)
}
