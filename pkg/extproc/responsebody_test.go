package extproc

import (
	"strings"
	"testing"
	"testing/synctest"
)

// lastEvents are ends of streams that report a usage of 120 and 30 tokens.
var lastEvents = []struct{ name, text string }{
	{"chat", usageEvent + doneEvent},
	{
		"messages", "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}," +
			"\"usage\":{\"input_tokens\":120,\"output_tokens\":30}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
	},
	{
		"responses", "event: response.completed\r\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"text\":\"\\\"usage\\\"\"}]," +
			"\"usage\":{\"input_tokens\":120,\"output_tokens\":30,\"total_tokens\":150}}}\r\n\r\n",
	},
}

// If Envoy shows the response, its usage counts for every cut of the last events.
func TestUsageInAnySplit(t *testing.T) {
	for _, mode := range []string{"NONE/STREAMED", "BUFFERED/STREAMED", "FULL_DUPLEX/FULL_DUPLEX"} {
		for _, last := range lastEvents {
			t.Run(mode+" "+last.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, inTokens)
					for cut := range len(last.text) {
						c := b.open(mode)
						c.say(chat("x-gateway-model-name", "m", "content-length", "656"))
						if mode == "FULL_DUPLEX/FULL_DUPLEX" {
							c.say(requestBodyOf(`{"prompt":"`+strings.Repeat("abcd", 100)+`"}`, true))
						}
						c.say(responseHeaders("200", false, sseHeaders...))
						c.say(responseBodyOf(streamOf(2)+last.text[:cut], false))
						c.say(responseBodyOf(last.text[cut:], true))
						c.heard()
						c.end()
						lease := b.controller.leases[cut]
						if got := lease.completed[0].Cost; got != 120+60 {
							t.Fatalf("cut at %d: cost %d", cut, got)
						}
					}
				})
			})
		}
	}
}

// In STREAMED each part of a response is acknowledged unchanged, whatever its content. An unreadable part gives no
// usage.
func TestStreamedPartsAreAcknowledged(t *testing.T) {
	usage := `{"usage":{"prompt_tokens":120,"completion_tokens":30}}`
	for _, c := range []struct {
		name    string
		headers []string
		parts   []string
		cut     bool // before the end
		known   bool
	}{
		{"JSON", nil, []string{usage}, false, true},
		{"compressed", []string{"content-encoding", "gzip"}, []string{usage}, false, false},
		{"no JSON", nil, []string{"upstream \x00 error", `"usage":{"prompt_tokens":1`, "}}}]]]"}, false, false},
		{"cut short", nil, []string{usage[:len(usage)-1]}, true, false},
		{"whole, but for Envoy's word", nil, []string{usage}, true, true},
		{"nothing but its end", nil, []string{""}, false, false},
		{"long", nil, []string{`{"text":"` + strings.Repeat(`\"usage`, 1<<20), `"`, `,` + usage[1:]}, false, true},
		{"deep", nil, []string{strings.Repeat("[{", 1<<20), usage}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, "NONE/STREAMED", inTokens, func(conv *conversation) {
				conv.say(chat("x-gateway-model-name", "m"))
				conv.say(responseHeaders("200", false, c.headers...))
				conv.heard()
				for i, part := range c.parts {
					conv.say(responseBodyOf(part, i == len(c.parts)-1 && !c.cut))
					if heard := conv.heard(); heard != "response-body" {
						t.Errorf("part %d: %s", i, heard)
					}
				}
				conv.settled(1)
				if got := conv.metric("weir_extproc_usage_unknown_total") == 0; got != c.known {
					t.Errorf("known %v", got)
				}
			})
		})
	}
}
