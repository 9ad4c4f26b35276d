package extproc

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/internal/golden"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// everyMessage has each kind of message that Envoy can send, and one of a later Envoy.
var everyMessage = []struct {
	name string
	say  func() *extprocv3.ProcessingRequest
}{
	{"request headers", func() *extprocv3.ProcessingRequest { return chat("x-gateway-model-name", "m") }},
	{"request body", func() *extprocv3.ProcessingRequest { return requestBodyOf(`{"model":`, false) }},
	{"request body, last", func() *extprocv3.ProcessingRequest { return requestBodyOf(`{"model":"m"}`, true) }},
	{"request trailers", requestTrailers},
	{"response headers", sse},
	{"response headers, last", func() *extprocv3.ProcessingRequest { return responseHeaders("413", true) }},
	{"response body", func() *extprocv3.ProcessingRequest { return responseBodyOf("data: x\n\n", false) }},
	{"response body, a comment", func() *extprocv3.ProcessingRequest { return responseBodyOf(": ping\n\n", false) }},
	{"response body, last", func() *extprocv3.ProcessingRequest { return responseBodyOf("", true) }},
	{"response trailers", responseTrailers},
	{"another", func() *extprocv3.ProcessingRequest { return &extprocv3.ProcessingRequest{} }},
}

// everyState leads a stream into each state in which a message can arrive. A lead returns false if the stream's mode
// lacks the state.
var everyState = []struct {
	name string
	lead func(c *conversation) bool
}{
	{"first message", func(*conversation) bool { return true }},
	{"body awaited", func(c *conversation) bool {
		c.say(chat())
		return c.mode.request != request.None && c.mode.request != request.Streamed
	}},
	{"queued, and granted after the message", func(c *conversation) bool {
		c.controller.hold = true
		c.leadToGrant()
		return true
	}},
	{"placed", func(c *conversation) bool { c.leadToGrant(); return true }},
	{"placed, response headers skipped", func(c *conversation) bool {
		if c.mode.request == request.FullDuplex {
			return false
		}
		c.server.links.presence.appeared()
		for range gateRun {
			c.server.links.presence.passed()
		}
		c.leadToGrant()
		return true
	}},
	{"response headers held", func(c *conversation) bool {
		c.leadToGrant()
		c.say(sse())
		return c.mode.response == modev3.ProcessingMode_FULL_DUPLEX_STREAMED
	}},
	{"responding", func(c *conversation) bool {
		c.leadToGrant()
		c.say(sse())
		c.say(responseBodyOf("data: x\n\n", false))
		return true
	}},
	{"answered by Envoy", func(c *conversation) bool {
		c.say(chat())
		synctest.Wait()
		c.say(responseHeaders("413", true))
		return c.mode.request != request.None && c.mode.request != request.Streamed
	}},
	{"rejected", func(c *conversation) bool {
		c.controller.reject = flowcontrol.ErrShed
		c.leadToGrant()
		return true
	}},
	{"not a request", func(c *conversation) bool { c.say(responseHeaders("404", false)); return true }},
	{"placed by an earlier filter", func(c *conversation) bool {
		m := chat()
		m.MetadataContext = metadataOf("envoy.lb", request.DestinationHeader, structpb.NewStringValue("10.0.0.1:8000"))
		c.say(m)
		return true
	}},
	{"observed", func(c *conversation) bool {
		m := chat()
		m.ObservabilityMode = true
		c.say(m)
		return true
	}},
	{"gate, holding", func(c *conversation) bool {
		if c.mode.String() != "NONE/STREAMED" {
			return false
		}
		main, id := c.testbench.preemptible()
		c.t.Cleanup(main.end)
		c.gate = true
		c.arrives(id, sse())
		return true
	}},
	{"gate, preempted", func(c *conversation) bool {
		if c.mode.String() != "NONE/STREAMED" {
			return false
		}
		main, id := c.testbench.preemptible()
		c.gate = true
		c.arrives(id, sse())
		synctest.Wait()
		close(c.controller.preempt)
		main.end()
		c.say(responseBodyOf("data: x\n\n", false))
		return true
	}},
}

// leadToGrant sends the fewest messages that lead to an offer of the request.
func (c *conversation) leadToGrant() {
	c.say(chat("x-gateway-model-name", "m"))
	if c.mode.request == request.FullDuplex {
		c.say(requestBodyOf(`{"model":"m"}`, true))
	}
}

// preemptible opens a main stream whose request was granted and can be preempted.
func (b *testbench) preemptible() (main *conversation, id string) {
	b.controller.preempt = make(chan struct{})
	return b.granted()
}

func (m modes) String() string { return fmt.Sprintf("%s/%s", m.request, m.response) }

// TestEveryMessageInEveryState has the answer to each message in each state, in the modes that differ. A line that begins
// with "!" is a message that makes no sense there and is counted as unexpected.
func TestEveryMessageInEveryState(t *testing.T) {
	short := strings.NewReplacer("\n", "\\n", dest+" ", "DESTINATION ", meta, "METADATA")
	var w strings.Builder
	for _, mode := range []string{"BUFFERED/NONE", "FULL_DUPLEX/FULL_DUPLEX", "NONE/STREAMED"} {
		for _, state := range everyState {
			reached := true
			var lines strings.Builder
			for _, message := range everyMessage {
				synctest.Test(t, func(t *testing.T) {
					c := newBench(t, nil).open(mode)
					if reached = reached && state.lead(c); !reached {
						c.end()
						return
					}
					c.heard()
					before := c.counted("weir_extproc_unexpected_messages_total")
					c.say(message.say())
					answer := c.heard()
					if c.controller.hold {
						c.controller.grant <- nil
						answer += c.heard()
					}
					mark := " "
					if c.counted("weir_extproc_unexpected_messages_total") > before {
						mark = "!"
					}
					if answer == "" {
						answer = "nothing"
					}
					fmt.Fprintf(&lines, "%s %-26s %s\n", mark, message.name, short.Replace(answer))
					c.cancel()
					c.end()
					if n := c.logged.has(`"stack"`); n != 0 {
						t.Errorf("%s, %s, %s: a panic", mode, state.name, message.name)
					}
				})
			}
			if reached {
				fmt.Fprintf(&w, "%s: %s\n%s\n", mode, state.name, lines.String())
			}
		}
	}
	golden.Check(t, "testdata/messages.txt", w.String())
}
