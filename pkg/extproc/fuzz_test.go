package extproc

import (
	"testing"
	"testing/synctest"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// FuzzMessages sends any messages of Envoy in any order and mode, with any actions of the queue. A stream neither
// panics nor hangs, an ImmediateResponse is its last message, and it settles exactly one outcome.
func FuzzMessages(f *testing.F) {
	f.Add(uint8(2), uint8(0), []byte{1, 3, 6, 9})
	f.Add(uint8(4), uint8(4), []byte{0, 3, 4, 6, 7, 8})
	f.Add(uint8(4), uint8(4), []byte{12, 0, 4, 13, 6, 7, 9})
	f.Add(uint8(3), uint8(1), []byte{11, 0, 5, 14, 6})
	f.Add(uint8(1), uint8(0), []byte{12, 2, 14, 3, 5, 10, 6})
	f.Add(uint8(0), uint8(2), []byte{6, 7, 8, 0})
	f.Add(uint8(4), uint8(0), []byte{0, 3, 249, 4, 6})
	f.Add(uint8(4), uint8(4), []byte{0, 3, 4, 6, 7, 23, 39, 23, 8})
	f.Add(uint8(2), uint8(1), []byte{0, 4, 6, 7, 23, 39, 23, 183})
	f.Fuzz(func(t *testing.T, requestBodies, responseBodies uint8, script []byte) {
		if len(script) > 40 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			modes := []string{"NONE", "STREAMED", "BUFFERED", "BUFFERED_PARTIAL", "FULL_DUPLEX"}
			b := newBench(t, func(c *Config) {
				rewriteM(c)
				askingForUsage(c)
				c.Limits.MaxBodyBytes = 60
			})
			b.controller.grant = make(chan error, 64)
			b.controller.preempt = make(chan struct{})
			c := b.open(modes[requestBodies%5] + "/" + modes[responseBodies%5])
			preempted := false
			for _, op := range script {
				switch op % 16 {
				case 0:
					c.say(chat())
				case 1:
					c.say(chat("x-gateway-model-name", "other", "x-weir-x", "y"))
				case 2:
					c.say(requestHeaders(true, ":method", "GET", ":path", "/v1/models"))
				case 3:
					c.say(requestBodyOf(`{"model":"m","pro`, false))
				case 4:
					c.say(requestBodyOf(`mpt":"hello","stream":true}`, true))
				case 5:
					c.say(requestTrailers())
				case 6:
					c.say(responseHeaders("200", op >= 128, "content-type", "text/event-stream"))
				case 7:
					part := []string{"data: {}\n\n", usageEvent[:20], usageEvent[20:], ""}[op/16%4]
					c.say(responseBodyOf(part, op >= 128))
				case 8:
					c.say(responseTrailers())
				case 9:
					if op >= 128 {
						time.Sleep(DefaultConfig().Limits.BodyTimeout) // a body that is awaited is late now
					} else {
						c.say(&extprocv3.ProcessingRequest{})
					}
				case 10:
					c.cancel()
				case 11:
					c.controller.reject = flowcontrol.ErrShed
				case 12:
					c.controller.mu.Lock()
					c.controller.hold = true
					c.controller.mu.Unlock()
				case 13:
					c.controller.grant <- nil
				case 14:
					c.controller.grant <- flowcontrol.ErrDisplaced
				case 15:
					if !preempted {
						preempted = true
						close(c.controller.preempt)
					}
				}
				synctest.Wait()
			}
			c.end()
			want := 0
			if len(c.controller.requests)+len(c.controller.refused) > 0 {
				want = 1
			}
			c.settled(want)
			for i, m := range c.stream.sent {
				if m.GetImmediateResponse() != nil && i != len(c.stream.sent)-1 {
					t.Errorf("an answer after the ImmediateResponse: %s", render(c.stream.sent[i+1]))
				}
			}
			if n := c.logged.has(`"stack"`); n != 0 {
				t.Error("a panic")
			}
		})
	})
}

// FuzzSubset: a hint never opens the whole pool, and has no blank members.
func FuzzSubset(f *testing.F) {
	for _, s := range []string{"", " , ", "10.0.0.1", "10.0.0.1:8000, [::1]:8000,::1"} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, text string, list bool) {
		value := structpb.NewStringValue(text)
		if list {
			value = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{value, structpb.NewNumberValue(1)}})
		}
		s := subsetOf(subsetMetadata(value))
		if !s.Set {
			t.Error("not set")
		}
		for _, m := range s.Members {
			if m == "" {
				t.Errorf("%q: an empty member", text)
			}
		}
	})
}

func subsetMetadata(v *structpb.Value) *corev3.Metadata {
	return metadataOf(request.SubsetNamespace, request.SubsetKey, v)
}

func metadataOf(namespace, key string, v *structpb.Value) *corev3.Metadata {
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
		namespace: {Fields: map[string]*structpb.Value{key: v}},
	}}
}
