package extproc

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/go-logr/logr"
	"google.golang.org/grpc/metadata"

	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// fakeTracer records the requests it gets.
type fakeTracer struct{ told []Traced }

func (t *fakeTracer) Ended(r *Traced) { t.told = append(t.told, *r) }

const (
	envoysParent  = "00-11111111111111111111111111111111-1111111111111111-01"
	clientsParent = "00-22222222222222222222222222222222-2222222222222222-01"
)

// The parent of a request's spans comes from the stream's metadata, where Envoy names its span, otherwise from the
// client's headers.
func TestParentOfSpans(t *testing.T) {
	long := strings.Repeat("x", 129)
	for name, test := range map[string]struct {
		metadata, headers []string
		want              Parent
	}{
		"nobody's":     {},
		"Envoy's":      {metadata: []string{"traceparent", envoysParent, "tracestate", "a=1"}, want: Parent{envoysParent, "a=1"}},
		"the client's": {headers: []string{"traceparent", clientsParent, "tracestate", "b=1"}, want: Parent{clientsParent, "b=1"}},
		"both": {
			metadata: []string{"traceparent", envoysParent}, headers: []string{"traceparent", clientsParent, "tracestate", "b=1"},
			want: Parent{envoysParent, ""},
		},
		"a tracestate without a parent": {
			metadata: []string{"tracestate", "a=1"}, headers: []string{"traceparent", clientsParent}, want: Parent{clientsParent, ""},
		},
		"the longest":         {headers: []string{"traceparent", long[1:]}, want: Parent{Traceparent: long[1:]}},
		"too long":            {headers: []string{"traceparent", long, "tracestate", "b=1"}},
		"Envoy's is too long": {metadata: []string{"traceparent", long}, headers: []string{"traceparent", clientsParent}, want: Parent{clientsParent, ""}},
		"two of the client's": {headers: []string{"traceparent", clientsParent, "traceparent", envoysParent}},
		"a tracestate of 512 bytes": {
			headers: []string{"traceparent", clientsParent, "tracestate", strings.Repeat("b", 512)}, want: Parent{clientsParent, strings.Repeat("b", 512)},
		},
		"a tracestate of 513 bytes": {
			headers: []string{"traceparent", clientsParent, "tracestate", strings.Repeat("b", 513)}, want: Parent{clientsParent, ""},
		},
		"a tracestate in two headers": {
			headers: []string{"traceparent", clientsParent, "tracestate", "a=1", "tracestate", "b=1"}, want: Parent{clientsParent, "a=1,b=1"},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			tracer := &fakeTracer{}
			b := newBench(t, tenants)
			b.server.tracer, b.metadata = tracer, metadata.Pairs(test.metadata...)
			c := b.open("NONE/NONE")
			c.say(chat(ofAlice(test.headers...)...))
			c.end()
			if len(tracer.told) != 1 || tracer.told[0].Parent != test.want {
				t.Errorf("%s: got %+v, want the parent %+v", name, tracer.told, test.want)
			}
		})
	}
}

// The tracer gets each request once, at its end, with the times of its offer, its destination and its rejection, in
// seconds after its stream began.
func TestTracerIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		hold bool
		talk func(c *conversation)
		want string
	}{
		"served after a wait": {
			hold: true,
			talk: func(c *conversation) {
				c.picker.fallbacks = []string{"10.0.0.2:8000", "10.0.0.3:8000"}
				c.controller.queued = 2 * time.Second
				c.say(chat(ofAlice()...))
				time.Sleep(2 * time.Second)
				c.controller.grant <- nil
				c.heard()
				time.Sleep(3 * time.Second)
				c.say(responseHeaders("200", false))
			},
			want: `alice critical 0 dispatched 10.0.0.1:8000 2 wait 2s, offered 0s, sent 2s, rejected -, ended 5s, limit ""`,
		},
		"expired": {
			hold: true,
			talk: func(c *conversation) {
				c.say(chat(ofAlice()...))
				time.Sleep(2 * time.Second)
				c.controller.grant <- flowcontrol.ErrExpiredTTL
			},
			want: `alice critical 0 ttl-expired  0 wait 2s, offered 0s, sent -, rejected 2s, ended 2s, limit ""`,
		},
		"by a limit": {
			talk: func(c *conversation) {
				c.server.controller = shedding{c.controller}
				c.say(chat(ofAlice()...))
			},
			want: `alice critical 0 shed  0 wait 0s, offered 0s, sent -, rejected 0s, ended 0s, limit "flowCapacity"`,
		},
		"refused before the queue": {
			talk: func(c *conversation) {
				c.picker.err = flowcontrol.ErrUnknownModel
				c.say(chat(ofAlice()...))
			},
			want: `alice  0 unknown-model  0 wait 0s, offered -, sent -, rejected 0s, ended 0s, limit ""`,
		},
		"the client has gone": {
			hold: true,
			talk: func(c *conversation) {
				c.say(chat(ofAlice()...))
				time.Sleep(time.Second)
				c.cancel()
			},
			want: `alice critical 0 client-cancelled  0 wait 1s, offered 0s, sent -, rejected 1s, ended 1s, limit ""`,
		},
	} {
		inBubble(t, "NONE/NONE", tenants, func(c *conversation) {
			tracer := &fakeTracer{}
			c.server.tracer, c.controller.hold = tracer, test.hold
			test.talk(c)
			c.end()
			if len(tracer.told) != 1 {
				t.Fatalf("%s: reported %d times", name, len(tracer.told))
			}
			e := tracer.told[0]
			after := func(at time.Time) string {
				if at.IsZero() {
					return "-"
				}
				return at.Sub(e.Begun).String()
			}
			got := fmt.Sprintf("%s %s %d %s %s %d wait %s, offered %s, sent %s, rejected %s, ended %s, limit %q", e.Flow, e.Tier, e.Rank, e.Outcome,
				e.Endpoint, e.Fallbacks, e.Wait, after(e.Offered), after(e.Sent), after(e.Rejected), after(e.At), e.Limit)
			if got != test.want {
				t.Errorf("%s:\ntold %s\nwant %s", name, got, test.want)
			}
		})
	}
}

// With hashed flow keys a span has the hash, and no other text of it has the identity.
func TestSpansHaveHashedFlows(t *testing.T) {
	hashed := func(cfg *Config) { tenants(cfg); cfg.HashFlowKeys = true }
	inBubble(t, "NONE/NONE", hashed, func(c *conversation) {
		tracer := &fakeTracer{}
		c.server.tracer, c.controller.reject = tracer, flowcontrol.ErrShed
		c.say(chat(ofAlice()...))
		c.end()
		if len(tracer.told) != 1 || tracer.told[0].Flow != request.HashedFlowName("alice") || strings.Contains(fmt.Sprintf("%+v", tracer.told), "alice") {
			t.Errorf("told %+v", tracer.told)
		}
	})
}

// Streams without a decision on a request have no spans: Envoy's own responses, and the observability mode.
func TestNoSpansOfOtherStreams(t *testing.T) {
	observing := chat(ofAlice()...)
	observing.ObservabilityMode = true
	for name, first := range map[string]*extprocv3.ProcessingRequest{
		"a response": responseHeaders("200", false), "observability": observing,
	} {
		inBubble(t, "NONE/NONE", tenants, func(c *conversation) {
			tracer := &fakeTracer{}
			c.server.tracer = tracer
			c.say(first)
			c.end()
			if len(tracer.told) != 0 {
				t.Errorf("%s: got %+v", name, tracer.told)
			}
		})
	}
}

// Without a tracer a request allocates as much with a trace's headers as without them.
func TestTracingOffAllocatesNothing(t *testing.T) {
	b := newBench(t, nil)
	b.server.controller = quickController{}
	b.server.log = logr.Discard()
	allocations := func(ctx context.Context, headers ...string) float64 {
		message := chat(append(append([]string{}, envoyHeaders...), headers...)...)
		message.ProtocolConfig = &extprocv3.ProtocolConfiguration{RequestBodyMode: requestModes[0]}
		stream := &tracedReplay{replay: replay{messages: []*extprocv3.ProcessingRequest{message, responseHeaders("200", false)}}, ctx: ctx}
		return testing.AllocsPerRun(200, func() {
			stream.next = 0
			_ = b.server.Process(stream)
		})
	}
	traced := metadata.NewIncomingContext(t.Context(), metadata.Pairs(traceparentKey, envoysParent))
	with := allocations(traced, "x-gateway-model-name", "m", "traceparent", clientsParent)
	without := allocations(traced, "x-gateway-model-name", "m", "x-other-parent", clientsParent)
	if with != without {
		t.Errorf("%v allocations with a traceparent, %v without", with, without)
	}
	b.server.tracer = &discardTracer{}
	if on := allocations(traced, "x-gateway-model-name", "m", "traceparent", clientsParent); on <= with {
		t.Errorf("%v allocations with a tracer, %v without: the comparison sees nothing", on, with)
	}
}

// shedding rejects by a limit.
type shedding struct{ *fakeController }

func (shedding) TryEnqueue(context.Context, *flowcontrol.Request) (Lease, error) {
	return nil, &flowcontrol.Rejection{
		Err: flowcontrol.ErrShed, Outcome: flowcontrol.OutcomeShed, Limit: &flowcontrol.Limit{Name: "flowCapacity"},
	}
}

type discardTracer struct{}

func (discardTracer) Ended(*Traced) {}

// tracedReplay is a replay with a context.
type tracedReplay struct {
	replay
	ctx context.Context
}

func (r *tracedReplay) Context() context.Context { return r.ctx }
