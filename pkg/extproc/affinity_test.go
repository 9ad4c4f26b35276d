package extproc

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/request"
)

// affinityLog is an Affinity that records its calls.
type affinityLog struct {
	told   []string
	cached int64 // assumed cached tokens of the endpoint
	best   int64 // assumed cached tokens of the best endpoint
}

func (a *affinityLog) Cached() int64 { return a.best }

func (a *affinityLog) Granted() int64 {
	a.told = append(a.told, "granted")
	return a.cached
}

func (a *affinityLog) Failed() { a.told = append(a.told, "failed") }
func (a *affinityLog) Reported(cached int64) {
	a.told = append(a.told, fmt.Sprint("reported ", cached))
}

func byPrefix(c *Config) { inTokens(c); c.Affinity.Mode = request.AffinityPrefix }

// A prompt is rated before its request is offered, noted at the grant, and removed if no engine has read it. The
// engine's reported cached tokens are passed on.
func TestAffinityFollowsAPrompt(t *testing.T) {
	body := `{"model":"m","prompt":"` + strings.Repeat("words ", 1000) + `"}`
	usage := `{"usage":{"prompt_tokens":1500,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":1024}}}`
	for name, test := range map[string]struct {
		goOn func(c *conversation)
		want string
	}{
		"answered": {func(c *conversation) {
			c.say(responseHeaders("200", false, "content-type", "application/json"))
			c.say(responseBodyOf(usage, true))
		}, "granted, reported 1024"},
		"answered without usage": {func(c *conversation) {
			c.say(responseHeaders("200", false, "content-type", "application/json"))
			c.say(responseBodyOf("{}", true))
		}, "granted"},
		"failed":  {func(c *conversation) { c.say(responseHeaders("503", true)) }, "granted, failed"},
		"refused": {func(c *conversation) { c.say(responseHeaders("429", true)) }, "granted, failed"},
		"answered by another endpoint": {func(c *conversation) {
			m := responseHeaders("200", false, "content-type", "application/json")
			m.MetadataContext = metadataOf("envoy.lb", servedKey, structpb.NewStringValue("10.9.9.9:8000"))
			c.say(m)
			c.say(responseBodyOf(usage, true))
		}, "granted, failed"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "FULL_DUPLEX/FULL_DUPLEX", byPrefix, func(c *conversation) {
				log := &affinityLog{}
				c.picker.affinity = log
				c.say(chat("x-gateway-model-name", "m", "content-length", fmt.Sprint(len(body))))
				c.heard()
				c.say(requestBodyOf(body, true))
				c.heard()
				if p := c.picker.prompt; p == nil || len(p.Keys) != 5 || p.Tokens < 1400 || p.Tokens > 1600 {
					t.Errorf("rated %+v", p)
				}
				test.goOn(c)
				c.settled(1)
				if got := strings.Join(log.told, ", "); got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
			})
		})
	}
}

// The first token of a stream is seen if Weir gets the answer's body, or has a gate that enough answers have confirmed.
// The first token of other answers is not seen: their headers come with the last token.
func TestFirstTokensThatAreSeen(t *testing.T) {
	for _, c := range []struct {
		mode, fields string
		gates        int
		want         bool
	}{
		{"BUFFERED/NONE", `"stream":true,`, 0, false},
		{"BUFFERED/STREAMED", `"stream":true,`, 0, false}, // the headers go on at once
		{"FULL_DUPLEX/FULL_DUPLEX", `"stream":true,`, 0, true},
		{"FULL_DUPLEX/FULL_DUPLEX", `"stream":false,`, 0, false},
		{"FULL_DUPLEX/FULL_DUPLEX", ``, 0, false},
		{"BUFFERED/NONE", `"stream":true,`, gateRun - 1, false},
		{"BUFFERED/NONE", `"stream":true,`, gateRun, true},
		{"BUFFERED/NONE", ``, gateRun, false},
	} {
		inBubble(t, c.mode, byPrefix, func(talk *conversation) {
			talk.server.links.presence.appeared()
			for range c.gates {
				talk.server.links.presence.passed()
			}
			talk.picker.affinity = &affinityLog{}
			talk.say(chat("x-gateway-model-name", "m"))
			talk.heard()
			talk.say(requestBodyOf(`{"model":"m",`+c.fields+`"prompt":"`+strings.Repeat("words ", 1000)+`"}`, true))
			talk.heard()
			if talk.picker.watched != c.want {
				t.Errorf("%+v: watched %t", c, talk.picker.watched)
			}
		})
	}
}

// A refused request is not noted anywhere.
func TestAffinityOfARefusedRequest(t *testing.T) {
	inBubble(t, "BUFFERED/NONE", byPrefix, func(c *conversation) {
		log := &affinityLog{}
		c.picker.affinity, c.controller.boom = log, "TryEnqueue"
		c.say(chat("x-gateway-model-name", "m"))
		c.say(requestBodyOf(`{"model":"m","prompt":"`+strings.Repeat("words ", 1000)+`"}`, true))
		c.settled(1)
		if len(log.told) > 0 {
			t.Errorf("told %v", log.told)
		}
	})
}

// Without bodies, requests go on without affinity. Weir logs this once and counts each request.
func TestAffinityWithoutBodies(t *testing.T) {
	for _, mode := range []string{"NONE/NONE", "STREAMED/NONE"} {
		inBubble(t, mode, byPrefix, func(c *conversation) {
			for i := range 3 {
				if i > 0 {
					c = c.open(mode)
				}
				c.say(chat("x-gateway-model-name", "m", "content-length", "4096"))
				c.end()
			}
			if got := c.counted("weir_affinity_unknown_total"); got != 3 {
				t.Errorf("%s: counted %v", mode, got)
			}
			if n := c.logged.has("scheduling.affinity"); n != 1 || len(c.controller.leases) != 3 {
				t.Errorf("%s: %d warnings, %d granted", mode, n, len(c.controller.leases))
			}
		})
	}
}

// If a tenant's prompts begin like others' for Weir but not for the engine, the tenant pays for every token that the
// engine reports as uncached, or for all tokens without a report. Until then it is charged Weir's estimate.
func TestLiarsPayWhatEnginesReport(t *testing.T) {
	body := `{"model":"m","prompt":"` + strings.Repeat("words ", 1000) + `"}`
	var estimated fairqueue.Cost
	var expected []fairqueue.Cost
	cost := func(usage string) (cost int) {
		cheap := func(c *Config) { byPrefix(c); c.Tokens.Weights.CachedInput = c.Tokens.Weights.Input / 10 }
		inBubble(t, "FULL_DUPLEX/FULL_DUPLEX", cheap, func(c *conversation) {
			c.picker.affinity = &affinityLog{cached: 1000}
			c.say(chat("x-gateway-model-name", "m", "content-length", fmt.Sprint(len(body))))
			c.heard()
			c.say(requestBodyOf(body, true))
			c.heard()
			estimated, expected = c.controller.requests[0].Cost, c.controller.leases[0].expected
			c.say(responseHeaders("200", false, "content-type", "application/json"))
			c.say(responseBodyOf(usage, true))
			c.settled(1)
			cost = int(c.controller.leases[0].completed[0].Cost)
		})
		return cost
	}
	const usage = `{"usage":{"prompt_tokens":1500,"completion_tokens":0%s}}`
	told := cost(fmt.Sprintf(usage, `,"prompt_tokens_details":{"cached_tokens":1000}`))
	lied := cost(fmt.Sprintf(usage, `,"prompt_tokens_details":{"cached_tokens":0}`))
	silent := cost(fmt.Sprintf(usage, ""))
	if len(expected) != 1 || estimated-expected[0] != 900 {
		t.Errorf("charged %v at the grant instead of %d", expected, estimated)
	}
	if told != 600 || lied != 1500 || silent != 1500 {
		t.Errorf("1,500 tokens cost %d with 1,000 of them cached, %d with none, %d without a word about it", told, lied, silent)
	}
}
