package extproc

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weir-epp/weir/pkg/request"
)

// The main stream skips response headers only for requests that can never be preempted, and only once responses
// regularly come through a gate. It never skips headers that carry the queue's state or describe a body that Weir
// reads. The status then comes through the gate.
func TestHeadersAreSkippedOnceTheGateIsAHabit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { tellingState(c); inTokens(c) })
		b.seeGate()
		mode := "BUFFERED/NONE"
		exchange := func(status string, pass ...string) (skipped bool) {
			main := b.open(mode)
			main.say(chat(append(pass, "x-gateway-model-name", "m")...))
			answer := main.stream.take()[0]
			skipped = strings.Contains(render(answer), "no-headers")
			g := b.openGate()
			g.arrives(linkOf(answer), responseHeaders(status, true))
			<-g.done
			if !skipped {
				main.say(responseHeaders(status, true))
			}
			main.end()
			return skipped
		}
		for i := range gateRun {
			if exchange("200") {
				t.Fatalf("skipped at exchange %d", i)
			}
		}
		if !exchange("418") {
			t.Error("not skipped")
		}
		last := b.controller.leases[len(b.controller.leases)-1]
		if len(last.completed) != 1 || last.completed[0].Status != 418 {
			t.Errorf("completed %+v, want the gate's status", last.completed)
		}
		if exchange("200", request.QueueStateHeader, "1") {
			t.Error("skipped, though the client wants the queue's state in them")
		}
		mode = "BUFFERED/STREAMED"
		if exchange("200") {
			t.Error("skipped, though the usage is read from the body")
		}
		mode = "BUFFERED/NONE"
		b.controller.preempt = make(chan struct{})
		if exchange("200") {
			t.Error("skipped of a request that can be preempted")
		}
		if got := b.counted("weir_extproc_upstream_responses_total"); got != gateRun+4 {
			t.Errorf("%v answers counted, want %d", got, gateRun+4)
		}
	})
}

// The gate finds a request by its ID even if the same metadata has the decision for the access log.
func TestNameBesideTheDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) { c.Responses.Metadata = true })
		b.seeGate()
		main := b.open("BUFFERED/NONE")
		main.say(chat("x-gateway-model-name", "m"))
		answer := main.stream.take()[0]
		fields := answer.GetDynamicMetadata().GetFields()
		if weir := fields["weir"].GetStructValue().AsMap(); linkOf(answer) == "" || weir["outcome"] != "dispatched" ||
			fields["envoy.lb"].GetStructValue() == nil {
			t.Errorf("metadata %v", answer.GetDynamicMetadata())
		}
		g := b.openGate()
		g.arrives(linkOf(answer), sse())
		synctest.Wait()
		if got := g.heard(); got != "" {
			t.Errorf("the headers are not held: %s", got)
		}
		g.say(responseBodyOf("data: x\n\n", false))
		<-g.done
		main.end()
	})
}

// A response with skipped headers and without a gate's stream suggests that the gate is gone: the next request does not
// rely on it.
func TestSkippedHeadersThatNoGateSaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.server.links.presence.appeared()
		for range gateRun {
			b.server.links.presence.passed()
		}
		for i, want := range []bool{true, false} {
			main := b.open("BUFFERED/NONE")
			main.say(chat("x-gateway-model-name", "m"))
			if got := strings.Contains(main.heard(), "no-headers"); got != want {
				t.Errorf("request %d: headers skipped: %v", i, got)
			}
			main.end()
		}
	})
}

// A main stream that ends with its response, held by its gate, is no sign of streams that end too early.
func TestStreamsBehindAGateDoNotEndTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.seeGate()
		for range 2 * unobservedRun {
			main, id := b.granted()
			g := b.openGate()
			g.arrives(id, sse())
			g.say(responseBodyOf("data: x\n\n", true))
			<-g.done
			main.say(sse())
			main.heard()
			main.end()
		}
		if n := b.logged.has("response_trailer_mode"); n != 0 {
			t.Errorf("%d warnings", n)
		}
	})
}

// A returning gate counts like the first one: a single response that bypasses it does not end it.
func TestGateThatComesBack(t *testing.T) {
	var p presence
	p.appeared()
	for range gateRun {
		p.missed()
	}
	if p.likely() {
		t.Fatal("not forgotten")
	}
	if !p.appeared() {
		t.Error("its return is no news")
	}
	p.missed()
	if !p.likely() {
		t.Error("forgotten after one answer")
	}
}

// A removed gate no longer counts. From the first response that bypasses it, headers are no longer skipped.
func TestGateIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.seeGate()
		for i := range gateRun {
			main, id := b.granted()
			if id == "" {
				t.Fatalf("forgotten after %d", i)
			}
			main.say(responseHeaders("200", true))
			main.heard()
			main.end()
		}
		main, id := b.granted()
		if id != "" {
			t.Error("an ID without a gate")
		}
		main.end()
		if b.controller.outcomes != gateRun+1 {
			t.Errorf("%d outcomes", b.controller.outcomes)
		}
	})
}

// A request that can be preempted always has an ID: before the first gate, and after the last one. Its response still
// shows, for other requests, whether there is a gate.
func TestWhoCanBePreemptedAlwaysHasAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		b.controller.preempt = make(chan struct{})
		first, id := b.granted()
		if id == "" {
			t.Error("no ID before a gate was seen")
		}
		g := b.openGate()
		g.arrives(id, sse())
		if got := g.heard(); got != "" {
			t.Errorf("not held: %s", got)
		}
		g.say(responseBodyOf("data: x\n\n", false))
		<-g.done
		first.end()
		for range 2 * gateRun {
			main, id := b.granted()
			if id == "" {
				t.Fatal("no ID behind an Envoy without a gate")
			}
			main.say(responseHeaders("200", true))
			main.heard()
			main.end()
		}
		b.controller.preempt = nil
		main, id := b.granted()
		if id != "" {
			t.Error("an ID without a gate")
		}
		main.end()
	})
}

func TestPresence(t *testing.T) {
	var p presence
	if p.likely() || !p.appeared() || p.appeared() || !p.likely() || p.certain() {
		t.Error("the first gate")
	}
	for range gateRun {
		p.passed()
	}
	if !p.certain() {
		t.Error("a habit")
	}
	for range 10 * gateRun {
		p.passed()
	}
	p.missed()
	if p.certain() || !p.likely() {
		t.Error("one miss ends the habit")
	}
	for range gateRun - 2 {
		p.missed()
	}
	if !p.likely() {
		t.Error("too early")
	}
	p.missed()
	if p.likely() {
		t.Error("it is gone")
	}
}
