package extproc

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	aiv3 "github.com/envoyproxy/go-control-plane/envoy/data/ai/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/metering"
)

// streamOf returns the events of a streamed chat completion with this many tokens, without its usage and its end.
func streamOf(tokens int) string {
	return strings.Repeat("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n", tokens)
}

// A request of 400 bytes and at most 500 tokens is charged 100 + 2·500 at dispatch. Each case has its final cost.
func TestCostAtTheEnd(t *testing.T) {
	const estimated = 100 + 2*500
	sse := []string{"content-type", "text/event-stream"}
	for _, c := range []struct {
		name string
		mode string
		way  UsageWay
		run  func(c *conversation)
		want fairqueue.Cost
	}{
		{"a JSON answer", "FULL_DUPLEX/FULL_DUPLEX", UsageAuto, func(c *conversation) {
			c.say(responseHeaders("200", false, "content-type", "application/json"))
			c.say(responseBodyOf(`{"choices":[],"usage":{"prompt_tok`, false))
			c.say(responseBodyOf(`ens":120,"completion_tokens":30}}`, true))
		}, 120 + 60},
		{"a streamed answer", "FULL_DUPLEX/FULL_DUPLEX", UsageBody, func(c *conversation) {
			c.say(responseHeaders("200", false, sse...))
			c.say(responseBodyOf(streamOf(30)+usageEvent+doneEvent, true))
		}, 120 + 60},
		{"the same, not read", "FULL_DUPLEX/FULL_DUPLEX", UsageNone, func(c *conversation) {
			c.say(responseHeaders("200", false, sse...))
			c.say(responseBodyOf(streamOf(30)+usageEvent+doneEvent, true))
		}, estimated},
		{"a streamed answer without usage", "FULL_DUPLEX/FULL_DUPLEX", UsageAuto, func(c *conversation) {
			c.say(responseHeaders("200", false, sse...))
			c.say(responseBodyOf(streamOf(30)+doneEvent, true))
		}, estimated},
		{"a client that leaves at once", "FULL_DUPLEX/FULL_DUPLEX", UsageAuto, func(c *conversation) {
			c.say(responseHeaders("200", false, sse...))
			c.say(responseBodyOf(streamOf(1), false))
		}, estimated},
		{"a client that leaves after the first usage of many", "FULL_DUPLEX/FULL_DUPLEX", UsageAuto, func(c *conversation) {
			c.say(responseHeaders("200", false, sse...))
			c.say(responseBodyOf("data: {\"message\":{\"usage\":{\"input_tokens\":120,\"output_tokens\":1}}}\n\n", false))
		}, 120 + 2*500},
		{"Envoy's reading", "FULL_DUPLEX/NONE", UsageAuto, func(c *conversation) {
			c.say(responseHeaders("200", false, sse...))
			c.say(told(aiv3.TokenUsage_COMPLETE, 120, 20, 30))
		}, 120 + 60},
		{"Envoy's reading, without headers before it", "FULL_DUPLEX/NONE", UsageTrailers, func(c *conversation) {
			c.say(told(aiv3.TokenUsage_COMPLETE, 120, 20, 30))
		}, 120 + 60},
		{"Envoy's reading, not wanted", "FULL_DUPLEX/NONE", UsageBody, func(c *conversation) {
			c.say(responseHeaders("200", false, sse...))
			c.say(told(aiv3.TokenUsage_COMPLETE, 120, 20, 30))
		}, estimated},
		{"half of it", "FULL_DUPLEX/NONE", UsageAuto, func(c *conversation) {
			c.say(responseHeaders("200", false, sse...))
			c.say(told(aiv3.TokenUsage_PARTIAL, 90, 20, 30))
		}, estimated},
		{"half of it, of a prompt longer than estimated", "FULL_DUPLEX/NONE", UsageAuto, func(c *conversation) {
			c.say(responseHeaders("200", false, sse...))
			c.say(told(aiv3.TokenUsage_PARTIAL, 2000, 20, 30))
		}, 2000 + 2*500},
		{"half of it, which is more than the estimate", "FULL_DUPLEX/NONE", UsageAuto, func(c *conversation) {
			c.say(responseHeaders("200", false, sse...))
			c.say(told(aiv3.TokenUsage_PARTIAL, 120, 20, 600))
		}, 120 + 1200},
		{"none of it", "FULL_DUPLEX/NONE", UsageAuto, func(c *conversation) {
			c.say(responseHeaders("200", false, sse...))
			c.say(told(aiv3.TokenUsage_FAILED, 0, 0, 0))
		}, estimated},
		{"something else under that name", "FULL_DUPLEX/NONE", UsageAuto, func(c *conversation) {
			c.say(responseHeaders("200", false, sse...))
			c.say(withTyped(responseTrailers(), mustPack(wrapperspb.String("a lot"))))
		}, estimated},
		{"bytes that are no message", "FULL_DUPLEX/NONE", UsageAuto, func(c *conversation) {
			c.say(responseHeaders("200", false, sse...))
			bad := mustPack(&aiv3.TokenUsage{})
			bad.Value = []byte{0xff, 0xff, 0xff}
			c.say(withTyped(responseTrailers(), bad))
		}, estimated},
		{"absurd numbers", "FULL_DUPLEX/NONE", UsageAuto, func(c *conversation) {
			c.say(responseHeaders("200", false, sse...))
			c.say(told(aiv3.TokenUsage_COMPLETE, 1<<63, 1<<63, 1<<63))
		}, fairqueue.MaxCost},
		{"the engine refuses", "FULL_DUPLEX/NONE", UsageAuto, func(c *conversation) {
			c.say(responseHeaders("400", true))
		}, 1},
		{"nobody answers", "FULL_DUPLEX/NONE", UsageAuto, func(c *conversation) {
			c.say(responseHeaders("503", true))
		}, 1},
		{"the engine fails", "FULL_DUPLEX/NONE", UsageAuto, func(c *conversation) {
			c.say(responseHeaders("500", true))
		}, estimated},
		{"the client leaves before the answer", "FULL_DUPLEX/NONE", UsageAuto, func(*conversation) {}, estimated},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, c.mode, func(cfg *Config) { inTokens(cfg); cfg.Usage = c.way }, func(conv *conversation) {
				conv.say(chat("x-gateway-model-name", "m"))
				conv.say(requestBodyOf(`{"prompt":"`+strings.Repeat("abcd", 100)+`","max_tokens":500}`, true))
				conv.heard()
				if got := conv.controller.requests[0].Cost; got != estimated {
					t.Fatalf("estimated %d", got)
				}
				c.run(conv)
				if heard := conv.heard(); strings.Contains(heard, "immediate") {
					t.Fatal(heard)
				}
				conv.settled(1)
				if got := conv.controller.leases[0].completed[0].Cost; got != c.want {
					t.Errorf("cost %d, want %d", got, c.want)
				}
			})
		})
	}
}

// A request that the engine refuses pays for the room that it held meanwhile: a flow of refused huge requests pays for
// the room that other flows do not get. A later refusal costs the tokens that the engine may have generated before it:
// 50 tokens a second for each of 100 answers.
func TestRefusedPaysForItsRoom(t *testing.T) {
	const estimated = 100 + 100*2*1000
	for _, c := range []struct {
		status string
		after  time.Duration
		want   fairqueue.Cost
	}{
		{"400", 0, 1},
		{"400", 10 * time.Millisecond, estimated / 100},
		{"503", 100 * time.Millisecond, estimated / 10},
		{"422", time.Second, estimated},
		{"503", 10 * time.Second, estimated},
		{"400", time.Minute, 100 + 2*100*50*60},
	} {
		inBubble(t, "FULL_DUPLEX/NONE", inTokens, func(conv *conversation) {
			conv.say(chat("x-gateway-model-name", "m"))
			conv.say(requestBodyOf(`{"prompt":"`+strings.Repeat("abcd", 100)+`","n":100}`, true))
			conv.heard()
			time.Sleep(c.after)
			conv.say(responseHeaders(c.status, true))
			conv.heard()
			conv.settled(1)
			if got := conv.controller.leases[0].completed[0].Cost; got != c.want {
				t.Errorf("%s after %v: %d, want %d", c.status, c.after, got, c.want)
			}
		})
	}
}

// A client that leaves during a long answer pays for its time so far, at 50 tokens a second while no other rate is
// known: leaving just before the usage gains nothing.
func TestLeavingLatePaysForTheTime(t *testing.T) {
	for _, c := range []struct {
		mode  string
		after time.Duration
		want  fairqueue.Cost
	}{
		{"FULL_DUPLEX/NONE", 10 * time.Second, 100 + 2*1000},
		{"FULL_DUPLEX/NONE", 100 * time.Second, 100 + 2*5000},
		{"FULL_DUPLEX/NONE", 1000 * time.Second, 100 + 2*8000},
	} {
		inBubble(t, c.mode, inTokens, func(conv *conversation) {
			conv.say(chat("x-gateway-model-name", "m"))
			conv.say(requestBodyOf(`{"prompt":"`+strings.Repeat("abcd", 100)+`","max_tokens":8000}`, true))
			conv.heard()
			conv.say(responseHeaders("200", false, "content-type", "text/event-stream"))
			conv.heard()
			time.Sleep(c.after)
			conv.settled(1)
			if got := conv.controller.leases[0].completed[0].Cost; got != c.want {
				t.Errorf("after %v: %d, want %d", c.after, got, c.want)
			}
		})
	}
}

// Without usage, a prompt that the body does not show is charged by its possible size: 2,000 tokens for each image,
// file or earlier turn, whatever their bytes, and a quarter of the bytes of fields that an engine may show to the
// model. The charge at dispatch is that of the text; the stock also has the images and turns. The engine's report of
// the prompt replaces all of these.
func TestUnmeasuredPromptsPayWithoutUsage(t *testing.T) {
	image := `{"image_url":{"url":"data:image/png;base64,` + strings.Repeat("QUJD", 50_000) + `"}}`
	for _, c := range []struct {
		name, path, body string
		told             string
		want             fairqueue.Cost
	}{
		{"an image", "/v1/chat/completions", `{"messages":[{"content":[` + image + `]}],"max_tokens":10}`, "", 4 + 2000 + 20},
		{"two images", "/v1/chat/completions", `{"messages":[{"content":[` + image + `,` + image + `]}],"max_tokens":10}`, "", 4 + 4000 + 20},
		{"an image on the web", "/v1/chat/completions", `{"messages":[{"content":[{"image_url":{"url":"https://x"}}]}],"max_tokens":10}`, "", 4 + 2000 + 3 + 20},
		{"earlier turns", "/v1/responses", `{"input":"abcd","previous_response_id":"r","max_output_tokens":10}`, "", 2000 + 1 + 20},
		{
			"documents", "/v1/chat/completions", `{"messages":[{"content":"abcd"}],"documents":["` + strings.Repeat("abcd", 1000) + `"],"max_tokens":10}`, "",
			4 + 1000 + 2 + 20,
		},
		{"padding that no engine reads", "/v1/chat/completions", `{"messages":[{"content":"abcd"}],"user":"` + strings.Repeat("abcd", 1000) + `","max_tokens":10}`, "", 4 + 1 + 20},
		{"images to embed", "/v1/embeddings", `{"input":[` + image + `]}`, "", 4 + 2000},
		{
			"an image of which the engine has said its tokens", "/v1/messages", `{"messages":[{"content":[` + image + `]}],"max_tokens":10}`,
			"data: {\"message\":{\"usage\":{\"input_tokens\":258,\"output_tokens\":1}}}\n\n", 258 + 20,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, "FULL_DUPLEX/FULL_DUPLEX", inTokens, func(conv *conversation) {
				conv.say(requestHeaders(false, ":method", "POST", ":path", c.path, "content-type", "application/json", "x-gateway-model-name", "m"))
				conv.say(requestBodyOf(c.body, true))
				conv.heard()
				media := strings.Contains(c.body, "image_url") || strings.Contains(c.body, "previous_response_id")
				if got := conv.controller.requests[0]; got.Cost > 30 || media != (got.Tokens >= 2000) {
					t.Errorf("at dispatch %d, and %d of the stock", got.Cost, got.Tokens)
				}
				conv.say(responseHeaders("200", false, "content-type", "text/event-stream"))
				conv.heard()
				conv.say(responseBodyOf(streamOf(1)+c.told, false))
				conv.heard()
				conv.settled(1)
				if got := conv.controller.leases[0].completed[0].Cost; got != c.want {
					t.Errorf("cost %d, want %d", got, c.want)
				}
			})
		})
	}
}

// Answers without usage are charged by time, non-streamed ones from the time at which the request went to the engine.
// They predict the lengths of the flow's next answers. Errors predict nothing.
func TestTimeTeachesLengths(t *testing.T) {
	const sse = "text/event-stream"
	for _, c := range []struct {
		name          string
		before, after time.Duration // the answer's headers
		status, kind  string
		most          fairqueue.Cost // of the estimate after twenty of them
	}{
		{"a stream", time.Second, 2 * time.Second, "200", sse, 100 + 2*112},
		{"a whole answer", 2 * time.Second, 0, "200", "application/json", 100 + 2*112},
		{"lines of JSON", 0, 2 * time.Second, "200", "application/x-ndjson", 100 + 2*112},
		{"an error", 2 * time.Second, 0, "500", "application/json", 100 + 2*1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, func(cfg *Config) { inTokens(cfg); cfg.Usage = UsageNone })
				var first *conversation
				for i := range 21 {
					conv := b.open("FULL_DUPLEX/NONE")
					conv.say(chat("x-gateway-model-name", "m"))
					conv.say(requestBodyOf(`{"prompt":"`+strings.Repeat("abcd", 100)+`"}`, true))
					conv.heard()
					time.Sleep(c.before)
					conv.say(responseHeaders(c.status, false, "content-type", c.kind))
					conv.heard()
					time.Sleep(c.after)
					conv.end()
					if i == 0 {
						first = conv
					}
				}
				if got := first.controller.leases[0].completed[0].Cost; got != 100+2*1000 {
					t.Errorf("the first one cost %d", got)
				}
				got := b.controller.requests[20].Cost
				if least := c.most - 2*12; got < least || got > c.most {
					t.Errorf("estimated at %d in the end, want %d to %d", got, least, c.most)
				}
			})
		})
	}
}

// A preempted request is settled at once, and the estimator learns nothing from it.
func TestPreemptedIsNotCharged(t *testing.T) {
	inBubble(t, "FULL_DUPLEX/NONE", inTokens, func(c *conversation) {
		c.controller.preempt = make(chan struct{})
		c.say(chat("x-gateway-model-name", "m"))
		c.say(requestBodyOf(`{"prompt":"x"}`, true))
		c.heard()
		if !c.controller.leases[0].tryPreempt() {
			t.Fatal("not preempted")
		}
		c.heard()
		c.settled(1)
		if got := c.controller.leases[0].completed[0]; got.Cost != fairqueue.UnknownCost {
			t.Errorf("%+v", got)
		}
		if n := c.metric("weir_extproc_usage_unknown_total"); n != 0 {
			t.Errorf("%v unknown", n)
		}
	})
}

// A defect that prevents the report of the cost does not keep the lease from being settled.
func TestPanicInTheCostSettles(t *testing.T) {
	inBubble(t, "FULL_DUPLEX/NONE", inTokens, func(c *conversation) {
		c.say(chat("x-gateway-model-name", "m"))
		c.say(requestBodyOf(`{"prompt":"x"}`, true))
		c.heard()
		c.server.meter = metering.Meter{}
		c.end()
		if n := len(c.controller.leases[0].completed); n != 1 {
			t.Errorf("completed %d times", n)
		}
		if got, want := c.controller.leases[0].completed[0], (flowcontrol.Completion{}); got != want {
			t.Errorf("%+v", got)
		}
		if n := c.metric("weir_extproc_panics_total"); n != 1 {
			t.Error(fmt.Sprint(n, " panics"))
		}
	})
}
