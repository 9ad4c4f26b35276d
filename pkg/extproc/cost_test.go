package extproc

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	aiv3 "github.com/envoyproxy/go-control-plane/envoy/data/ai/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/metering"
)

// The queue and the estimator have the same largest cost.
func TestLargestCost(t *testing.T) {
	if int64(estimate.MaxCost) != int64(fairqueue.MaxCost) {
		t.Errorf("%d and %d", estimate.MaxCost, fairqueue.MaxCost)
	}
}

func inTokens(c *Config) { c.Cost = CostTokens }

// A request of an unknown flow is charged, at dispatch, a quarter of the bytes of its text and twice the tokens that its
// answers may have, at most 1,000 each.
func TestEstimateAtDispatch(t *testing.T) {
	text := strings.Repeat("abcd", 100)
	image := `data:image/png;base64,` + strings.Repeat("QUJD", 50_000)
	for _, c := range []struct {
		name, body string
		headers    []string
		want       fairqueue.Cost
	}{
		{"text", `{"prompt":"` + text + `"}`, nil, 100 + 2000},
		{"max_tokens", `{"prompt":"` + text + `","max_tokens":10}`, nil, 100 + 20},
		{"max_completion_tokens", `{"prompt":"` + text + `","max_completion_tokens":10}`, nil, 100 + 20},
		{"the largest of them, since engines differ", `{"prompt":"` + text + `","max_tokens":10,"max_completion_tokens":30}`, nil, 100 + 60},
		{"none of them says none", `{"prompt":"` + text + `","max_tokens":0}`, nil, 100 + 2000},
		{"minus one says none", `{"prompt":"` + text + `","max_tokens":-1}`, nil, 100 + 2000},
		{"n", `{"prompt":"` + text + `","max_tokens":10,"n":16}`, nil, 100 + 16*20},
		{"best_of", `{"prompt":"` + text + `","max_tokens":10,"n":2,"best_of":8}`, nil, 100 + 8*20},
		{"n of two prompts", `{"prompt":["` + text + `","` + text + `"],"max_tokens":10,"n":16}`, nil, 200 + 32*20},
		{"n of nothing", `{"prompt":"` + text + `","max_tokens":10,"n":0}`, nil, 100 + 20},
		{"an image is no text", `{"messages":[{"content":[{"text":"` + text + `"},{"image_url":{"url":"` + image + `"}}]}],"max_tokens":10}`, nil, 4 + 100 + 20},
		{"but a text is", `{"messages":[{"content":"` + image + `"}],"max_tokens":10}`, nil, 4 + (200_022+3)/4 + 20},
		{"empty messages, which a template surrounds", `{"messages":[{},{"role":"","content":""}` + strings.Repeat(`,{"content":""}`, 98) + `],"max_tokens":10}`, nil, 400 + 20},
		{"an exact count", `{"prompt":"` + text + `","max_tokens":10}`, []string{"x-input-tokens", "77"}, 77 + 20},
		{"no number is no count", `{"prompt":"` + text + `","max_tokens":10}`, []string{"x-input-tokens", "-5"}, 100 + 20},
		{"the whole cost", `{"prompt":"` + text + `","max_tokens":10}`, []string{"x-cost", "5", "x-input-tokens", "77"}, 5},
		{"absurd numbers", `{"prompt":"` + text + `","max_tokens":1e300,"n":1e300}`, nil, fairqueue.MaxCost},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, "FULL_DUPLEX/NONE", func(cfg *Config) {
				inTokens(cfg)
				cfg.TrustedHeaders.Cost, cfg.TrustedHeaders.InputTokens = "x-cost", "x-input-tokens"
			}, func(conv *conversation) {
				conv.say(chat(append([]string{"x-gateway-model-name", "m"}, c.headers...)...))
				conv.say(requestBodyOf(c.body, true))
				if heard := conv.heard(); strings.Contains(heard, "immediate") {
					t.Fatal(heard)
				}
				if got := conv.controller.requests[0].Cost; got != c.want {
					t.Errorf("cost %d, want %d", got, c.want)
				}
				conv.settled(1)
			})
		})
	}
}

// A request without output is charged its prompt only, including a whole batch, from the first request on and with any
// limits.
func TestEstimateOfPromptsOnly(t *testing.T) {
	text := strings.Repeat("abcd", 100)
	for _, c := range []struct {
		path, body string
		want       fairqueue.Cost
	}{
		{"/v1/embeddings", `{"input":"` + text + `"}`, 100},
		{"/v1/embeddings?x=y", `{"input":["` + text + `","` + text + `","` + text + `"],"max_tokens":500,"n":16}`, 300 + 3*2},
		{"/v1/embeddings", `{"input":[[1,2,3],[4,5]]}`, 5 + 2*2},
		{"/prefix/v1/rerank", `{"query":"` + text + `","documents":["` + text + `","` + text + `"]}`, 400 + 2*2},
		{"/score", `{"text_1":"` + text + `","text_2":"` + text + `"}`, 200},
		{"/classify", `{"input":"` + text + `"}`, 100},
		{"/pooling", `{"messages":[{"content":"` + text + `"}]}`, 4 + 100},
		{"/v1/completions", `{"prompt":"` + text + `","documents":["` + text + `"]}`, 100 + 2000},
		{"/v1/completions?/v1/embeddings", `{"prompt":"` + text + `"}`, 100 + 2000},
		{"/v1/completions%3f/v1/embeddings", `{"prompt":"` + text + `"}`, 100 + 2000},
		{"/v1/completions;/v1/embeddings", `{"prompt":"` + text + `"}`, 100 + 2000},
	} {
		inBubble(t, "FULL_DUPLEX/NONE", inTokens, func(conv *conversation) {
			conv.say(requestHeaders(false, ":method", "POST", ":path", c.path, "x-gateway-model-name", "m"))
			conv.say(requestBodyOf(c.body, true))
			if heard := conv.heard(); strings.Contains(heard, "immediate") {
				t.Fatal(heard)
			}
			if got := conv.controller.requests[0].Cost; got != c.want {
				t.Errorf("%s %.40s: cost %d, want %d", c.path, c.body, got, c.want)
			}
			conv.settled(1)
		})
	}
}

// An answer that does not state its length has no usage, unless it has no length by nature.
func TestUsageWithoutOutput(t *testing.T) {
	for _, c := range []struct {
		path, mode string
		want       fairqueue.Cost
	}{
		{"/v1/embeddings", "FULL_DUPLEX/FULL_DUPLEX", 120},
		{"/v1/embeddings", "FULL_DUPLEX/NONE", 120},
		{"/v1/completions", "FULL_DUPLEX/FULL_DUPLEX", 120 + 2000},
		{"/v1/completions", "FULL_DUPLEX/NONE", 120 + 2000},
	} {
		inBubble(t, c.mode, inTokens, func(conv *conversation) {
			conv.say(requestHeaders(false, ":method", "POST", ":path", c.path, "x-gateway-model-name", "m"))
			conv.say(requestBodyOf(`{"input":"`+strings.Repeat("abcd", 100)+`"}`, true))
			conv.heard()
			conv.say(responseHeaders("200", false, "content-type", "application/json"))
			if c.mode == "FULL_DUPLEX/NONE" {
				conv.say(withTyped(responseTrailers(), mustPack(&aiv3.TokenUsage{
					InputTokens: wrapperspb.UInt64(120), ExtractionStatus: aiv3.TokenUsage_COMPLETE,
				})))
			} else {
				conv.say(responseBodyOf(`{"usage":{"prompt_tokens":120,"total_tokens":120}}`, true))
			}
			conv.heard()
			conv.settled(1)
			if got := conv.controller.leases[0].completed[0].Cost; got != c.want {
				t.Errorf("%s, %s: cost %d, want %d", c.path, c.mode, got, c.want)
			}
		})
	}
}

// If the body is not read, its length stands for its text. In requests, each request costs 1.
func TestEstimateWithoutBody(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Config)
		length string
		want   fairqueue.Cost
	}{
		{"its length less 256 bytes", inTokens, "4256", 1000 + 2000},
		{"of unknown length", inTokens, "", 2000},
		{"in requests", nil, "4256", 1},
	} {
		inBubble(t, "BUFFERED/NONE", c.change, func(conv *conversation) {
			headers := []string{"x-gateway-model-name", "m"}
			if c.length != "" {
				headers = append(headers, "content-length", c.length)
			}
			conv.say(chat(headers...))
			conv.heard()
			if got := conv.controller.requests[0].Cost; got != c.want {
				t.Errorf("%s: cost %d, want %d", c.name, got, c.want)
			}
			conv.settled(1)
		})
	}
}

// A request that is passed on without queueing is not charged in tokens.
func TestPassedOnCostsOne(t *testing.T) {
	inBubble(t, "BUFFERED/NONE", inTokens, func(c *conversation) {
		c.say(requestHeaders(true, ":method", "GET", ":path", "/v1/models"))
		c.heard()
		if got := c.controller.requests[0].Cost; got != 1 || c.controller.passedOn != 1 {
			t.Errorf("cost %d", got)
		}
		c.settled(1)
		if got := c.controller.leases[0].completed[0].Cost; got != fairqueue.UnknownCost {
			t.Errorf("completed with %d", got)
		}
	})
}

// told returns response trailers with the usage read by Envoy.
func told(status aiv3.TokenUsage_ExtractionStatus, in, cached, out uint64) *extprocv3.ProcessingRequest {
	packed, err := anypb.New(&aiv3.TokenUsage{
		InputTokens: wrapperspb.UInt64(in), OutputTokens: wrapperspb.UInt64(out), ExtractionStatus: status,
		InputTokenDetails: &aiv3.InputTokenDetails{CachedTokens: wrapperspb.UInt64(cached)},
	})
	if err != nil {
		panic(err)
	}
	return withTyped(responseTrailers(), packed)
}

func withTyped(m *extprocv3.ProcessingRequest, packed *anypb.Any) *extprocv3.ProcessingRequest {
	m.MetadataContext = &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{envoyUsage: packed}}
	return m
}

func mustPack(m proto.Message) *anypb.Any {
	packed, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return packed
}

const (
	usageEvent = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":120,\"completion_tokens\":30}}\n\n"
	doneEvent  = "data: [DONE]\n\n"
)

// A limit that the engine ignores on this path, or reads differently, does not lower the client's charge: neither at
// dispatch nor when the client leaves.
func TestLimitsThatDoNotCount(t *testing.T) {
	for _, c := range []struct {
		path, limits string
		most         fairqueue.Cost // charge for the output when the client leaves after 100 s, at 50 tokens a second
	}{
		{"/v1/chat/completions", `"max_tokens":30`, 30},
		{"/v1/chat/completions", `"max_completion_tokens":30`, 30},
		{"/v1/chat/completions", `"max_tokens":30,"max_completion_tokens":null`, 30},
		{"/v1/chat/completions", `"max_tokens":"30"`, 30},
		{"/v1/chat/completions", `"max_output_tokens":1`, 5000},
		{"/v1/chat/completions", `"max_tokens":1,"max_completion_tokens":"4000"`, 4000},
		{"/v1/chat/completions", `"max_tokens":1,"max_completion_tokens":" +4_000.0 "`, 4000},
		{"/v1/chat/completions", `"max_tokens":1,"max_completion_tokens":"\u0034000"`, 4000},
		{"/v1/chat/completions", `"max_tokens":1,"max_completion_tokens":"many"`, 5000},
		{"/v1/chat/completions", `"max_tokens":1,"max_completion_tokens":-1`, 5000},
		{"/v1/chat/completions", `"max_tokens":30,"n":"16"`, 16 * 30},
		{"/v1/completions", `"max_tokens":30`, 30},
		{"/v1/completions", `"max_completion_tokens":1`, 5000},
		{"/v1/messages", `"max_tokens":30,"max_output_tokens":1`, 30},
		{"/v1/responses", `"max_output_tokens":30`, 30},
		{"/v1/responses", `"max_tokens":1`, 5000},
		{"/v1/another", `"max_tokens":1,"max_output_tokens":1`, 5000},
	} {
		inBubble(t, "FULL_DUPLEX/NONE", inTokens, func(conv *conversation) {
			conv.say(requestHeaders(false, ":method", "POST", ":path", c.path, "content-type", "application/json",
				"x-gateway-model-name", "m"))
			conv.say(requestBodyOf(`{"model":"m","prompt":"`+strings.Repeat("abcd", 100)+`",`+c.limits+`}`, true))
			conv.heard()
			if got, want := conv.controller.requests[0].Cost, 100+2*min(c.most, 1000); got != want {
				t.Errorf("%s with %s: charged %d at dispatch, want %d", c.path, c.limits, got, want)
			}
			conv.say(responseHeaders("200", false, "content-type", "text/event-stream"))
			conv.heard()
			time.Sleep(100 * time.Second)
			conv.settled(1)
			if got, want := conv.controller.leases[0].completed[0].Cost, 100+2*c.most; got != want {
				t.Errorf("%s with %s: charged %d in the end, want %d", c.path, c.limits, got, want)
			}
		})
	}
}

// An overflowing number of answers gives the largest cost.
func TestAnswersDoNotOverflow(t *testing.T) {
	inBubble(t, "FULL_DUPLEX/NONE", inTokens, func(conv *conversation) {
		conv.say(chat("x-gateway-model-name", "m"))
		prompts := strings.Repeat(`"",`, 1<<23)
		conv.say(requestBodyOf(`{"prompt":[`+prompts+`""],"max_tokens":10,"n":1e300}`, true))
		conv.heard()
		if got := conv.controller.requests[0].Cost; got != fairqueue.MaxCost {
			t.Errorf("cost %d", got)
		}
		conv.settled(1)
	})
}

// An answer that outgrows its estimate is charged while it streams, if Weir sees it: at least the tokens seen, and at
// most the tokens that the request allows.
func TestChargedWhileStreaming(t *testing.T) {
	inBubble(t, "FULL_DUPLEX/FULL_DUPLEX", inTokens, func(c *conversation) {
		c.say(chat("x-gateway-model-name", "m"))
		c.say(requestBodyOf(`{"prompt":"`+strings.Repeat("abcd", 100)+`","max_tokens":3000}`, true))
		c.heard()
		c.say(responseHeaders("200", false, "content-type", "text/event-stream"))
		lease := c.controller.leases[0]
		charged := fairqueue.Cost(100 + 2*1000)
		for seen := 100; seen <= 3000; seen += 100 {
			c.say(responseBodyOf(streamOf(100), false))
			c.heard()
			if n := len(lease.costs); n > 0 {
				charged = lease.costs[n-1]
			}
			if least := fairqueue.Cost(100 + 2*seen); charged < least || charged > 100+2*3000 {
				t.Fatalf("%d tokens: charged %d", seen, charged)
			}
			if n := len(lease.tokens); n > 0 && (lease.tokens[n-1]-100)*2 != flowcontrol.Tokens(charged-100) {
				t.Fatalf("%d tokens: charged %d, of the stock %d", seen, charged, lease.tokens[n-1])
			}
		}
		if n := len(lease.costs); n > 12 {
			t.Errorf("charged %d times", n)
		}
		c.say(responseBodyOf("data: {\"usage\":{\"prompt_tokens\":90,\"completion_tokens\":3000}}\n\n", true))
		c.heard()
		c.settled(1)
		if got := lease.completed[0].Cost; got != 90+2*3000 {
			t.Errorf("in the end %d", got)
		}
	})
}

// A flow is estimated by its own past usage, in whatever form, and by no other flow's.
func TestEstimatesLearn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(c *Config) {
			inTokens(c)
			c.FlowKey = []string{"header:x-tenant"}
		})
		ask := func(tenant string, end func(c *conversation)) fairqueue.Cost {
			c := b.open("FULL_DUPLEX/NONE")
			c.say(chat("x-gateway-model-name", "m", "x-tenant", tenant))
			c.say(requestBodyOf(`{"prompt":"`+strings.Repeat("abcd", 500)+`"}`, true))
			c.heard()
			end(c)
			c.heard()
			c.end()
			return b.controller.requests[len(b.controller.requests)-1].Cost
		}
		answered := func(c *conversation) {
			c.say(responseHeaders("200", false))
			c.say(told(aiv3.TokenUsage_COMPLETE, 1000, 0, 50))
		}
		for range 50 {
			ask("a", answered)
		}
		if got := ask("a", answered); got < 950+100 || got > 1050+112 {
			t.Errorf("a: %d, want about 1,000 + 2·50", got)
		}
		if got := ask("b", answered); got < 450+2000 || got > 550+2000 {
			t.Errorf("b: %d, want about 500 + 2·1,000", got)
		}
		for name, want := range map[string]float64{
			"weir_extproc_usage_tokens_total/input":  52_000,
			"weir_extproc_usage_tokens_total/output": 52 * 50,
			"weir_extproc_usage_unknown_total":       0,
		} {
			if got := b.metric(name); got != want {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
		if got := b.metric("weir_extproc_estimated_tokens_total/output"); got < 52*50+9000 || got > 52*56+10_000 {
			t.Errorf("estimated output %v", got)
		}
		ask("a", func(*conversation) {})
		if got := b.metric("weir_extproc_usage_unknown_total"); got != 1 {
			t.Errorf("%v unknown", got)
		}
	})
}

// The metrics of usage count its source and time, and the answers without any. Refused requests have no usage.
func TestUsageSeen(t *testing.T) {
	exchange := func(b *testbench, mode, status string, rest ...func(c *conversation)) {
		c := b.open(mode)
		c.say(chat("x-gateway-model-name", "m"))
		c.say(requestBodyOf(`{"prompt":"x"}`, true))
		c.heard()
		c.say(responseHeaders(status, false, "content-type", "application/json"))
		for _, more := range rest {
			more(c)
		}
		c.heard()
		c.end()
	}
	inBubble(t, "FULL_DUPLEX/NONE", inTokens, func(c *conversation) {
		var toldAt, readAt time.Time
		exchange(c.testbench, "FULL_DUPLEX/NONE", "200", func(c *conversation) {
			c.say(told(aiv3.TokenUsage_COMPLETE, 120, 20, 30))
			toldAt = time.Now()
		})
		time.Sleep(time.Minute)
		exchange(c.testbench, "FULL_DUPLEX/FULL_DUPLEX", "200", func(c *conversation) {
			c.say(responseBodyOf(`{"choices":[],"usage":{"prompt_tokens":120,"completion_tokens":30}}`, true))
			readAt = time.Now()
		})
		time.Sleep(time.Minute)
		exchange(c.testbench, "FULL_DUPLEX/NONE", "200")
		exchange(c.testbench, "FULL_DUPLEX/NONE", "400")
		seen := c.server.UsageSeen()
		if want := map[metering.Way]time.Time{metering.Trailers: toldAt, metering.Body: readAt}; !maps.Equal(seen.Last, want) {
			t.Errorf("%v, want %v", seen.Last, want)
		}
		if seen.Answers != 3 || seen.Unknown != 1 {
			t.Errorf("%d of %d without usage, want 1 of 3", seen.Unknown, seen.Answers)
		}
	})
}

// A request has two numbers. The queue charges two for a token of the answer. The stock takes one, or the configured
// number. Without an estimate, the stock takes the cost.
func TestCostAndTokensOfTheStock(t *testing.T) {
	weighted := func(cfg *Config) {
		inTokens(cfg)
		cfg.Tokens.StockWeights = estimate.Weights{Input: 3 * estimate.WeightOne, Output: estimate.WeightOne / 2}
	}
	for _, c := range []struct {
		name    string
		change  func(*Config)
		headers []string
		cost    fairqueue.Cost
		tokens  flowcontrol.Tokens
	}{
		{"by default", inTokens, nil, 100 + 2*50, 100 + 50},
		{"with weights of its own", weighted, nil, 100 + 2*50, 3*100 + 25},
		{"a cost that the gateway states", inTokens, []string{"x-cost", "7"}, 7, 0},
		{"in requests", func(*Config) {}, nil, 1, 0},
	} {
		inBubble(t, "FULL_DUPLEX/NONE", func(cfg *Config) {
			c.change(cfg)
			cfg.TrustedHeaders.Cost = "x-cost"
		}, func(conv *conversation) {
			conv.say(chat(append([]string{"x-gateway-model-name", "m"}, c.headers...)...))
			conv.say(requestBodyOf(`{"prompt":"`+strings.Repeat("abcd", 100)+`","max_tokens":50}`, true))
			conv.heard()
			if r := conv.controller.requests[0]; r.Cost != c.cost || r.Tokens != c.tokens {
				t.Errorf("%s: cost %d, tokens %d; want %d and %d", c.name, r.Cost, r.Tokens, c.cost, c.tokens)
			}
			conv.settled(1)
		})
	}
}
