package extproc

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// A panic costs one stream a 500 and nothing else. The request still has exactly one outcome, and it is the right one.
func TestPanicIsContained(t *testing.T) {
	dispatched, unsent := &flowcontrol.Completion{}, &flowcontrol.Completion{Unsent: true}
	seen := &flowcontrol.Completion{Status: 200}
	tests := []struct {
		name, mode string
		boom       func(c *conversation)
		want       string
		outcome    *flowcontrol.Completion // nil: refused as internal
	}{
		{"before there is a lease", "BUFFERED/NONE", func(c *conversation) {
			c.controller.boom = "TryEnqueue"
			c.say(chat("x-gateway-model-name", "m"))
		}, "immediate 500 internal", nil},
		{"before the destination was sent", "BUFFERED/NONE", func(c *conversation) {
			c.picker.boom = true
			c.say(chat("x-gateway-model-name", "m"))
		}, "immediate 500 internal", unsent},
		{"placed", "BUFFERED/NONE", func(c *conversation) {
			c.controller.boom = "OnFirstByte"
			c.say(chat("x-gateway-model-name", "m"))
			c.heard()
			c.say(responseTrailers())
		}, "immediate 500 internal", dispatched},
		{"gated", "FULL_DUPLEX/FULL_DUPLEX", func(c *conversation) {
			c.controller.boom = "OnFirstByte"
			c.say(chat())
			c.say(requestBodyOf(`{"model":"m"}`, true))
			c.say(responseHeaders("200", false))
			c.heard()
			c.say(responseBodyOf("x", false))
		}, "immediate 500 internal", seen},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, test.mode, nil, func(c *conversation) {
				test.boom(c)
				if got := c.heard(); got != test.want {
					t.Errorf("got %q", got)
				}
				c.settled(1)
				switch {
				case test.outcome == nil:
					if len(c.controller.refused) != 1 || flowcontrol.OutcomeOf(c.controller.refused[0]) != flowcontrol.OutcomeInternal {
						t.Errorf("refused: %v", c.controller.refused)
					}
				case len(c.controller.leases) != 1 || c.controller.leases[0].completed[0] != *test.outcome:
					t.Errorf("completed %+v, want %+v", c.controller.leases[0].completed, *test.outcome)
				}
				if n := c.logged.has("\"stack\""); n != 1 {
					t.Errorf("%d log lines of the panic", n)
				}
			})
		})
	}
}

// A request that reached no engine, because of a panic before its destination was sent, is charged 1 instead of its
// estimate.
func TestPanicBeforeSendingIsNotCharged(t *testing.T) {
	inBubble(t, "BUFFERED/NONE", inTokens, func(c *conversation) {
		c.picker.boom = true
		c.say(chat("x-gateway-model-name", "m", "content-length", "4256"))
		if got := c.heard(); got != "immediate 500 internal" {
			t.Errorf("got %q", got)
		}
		c.settled(1)
		if got, want := c.controller.leases[0].completed[0], (flowcontrol.Completion{Unsent: true, Cost: 1, Unserved: true}); got != want {
			t.Errorf("completed %+v, want %+v", got, want)
		}
	})
}

// A panic between the count of a rejection and its sending does not change the count: the client still gets an answer,
// and the request one outcome.
func TestPanicAfterTheCount(t *testing.T) {
	inBubble(t, "BUFFERED/NONE", tellingState, func(c *conversation) {
		c.controller.boom = "Waiting"
		c.say(chat("content-length", "99999999999", request.QueueStateHeader, "1"))
		if got := c.heard(); got != "immediate 500 internal" {
			t.Errorf("got %q", got)
		}
		c.settled(1)
	})
}

// gRPC recovers no panic, so an unrecovered one at the end of a stream would end the process.
func TestDefectPanicAtTheEndOfAStreamEndsTheProcess(t *testing.T) {
	inBubble(t, "FULL_DUPLEX/FULL_DUPLEX", nil, func(c *conversation) {
		c.controller.boom, c.controller.preempt = "OnRequestComplete", make(chan struct{}) // it has a reader
		c.say(chat())
		c.say(requestBodyOf(`{"model":"m"}`, true))
		c.say(responseHeaders("200", false))
		c.heard()
		c.settled(1)
		if c.logged.has("\"stack\"") != 1 || c.counted("weir_extproc_panics_total") != 1 {
			t.Error("not told")
		}
	})
}

// A panic at the end of a stream does not keep the other parts from being released: the request's link, its body, and a
// gate's place in the gauge.
func TestPanicAtTheEndKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		wire := newConnection(&b.server.shared, &fakeStream{ctx: t.Context()}, time.Now())
		st, g := newMainStream(wire, chat()), newGate(wire)
		st.body.arrival = &arrival{stream: nobody{}}
		if err := st.body.add([]byte("x"), false); err != nil {
			t.Fatal(err)
		}
		b.controller.boom = "OnRequestComplete"
		lease := &fakeLease{controller: b.controller}
		st.grant.lease, st.link = lease, &link{lease: lease}
		b.server.links.add(st.link)
		st.end()
		g.end()
		if len(lease.completed) != 1 || b.server.links.len() != 0 || b.server.memory.bytes() != 0 ||
			b.counted("weir_gate_streams") != 0 {
			t.Error("something is kept")
		}
	})
}
