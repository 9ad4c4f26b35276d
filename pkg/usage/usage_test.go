package usage

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// responses are what engines send, in the forms that a real vLLM was seen to send.
var responses = []struct {
	name   string
	events bool
	text   string
	want   Tokens
	none   bool
}{
	{name: "chat, JSON", text: `{"id":"x","choices":[{"message":{"content":"{\"usage\":{\"prompt_tokens\":99}}"}}],"usage":{"prompt_tokens":11,"total_tokens":18,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":4}}}`, want: Tokens{11, 7, 4}},
	{name: "chat, no usage", text: `{"id":"x","usage":null}`, none: true},
	{name: "chat, stream", events: true, text: "data: {\"choices\":[{\"delta\":{\"content\":\"usage\"}}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":32,\"total_tokens\":37}}\n\ndata: [DONE]\n\n", want: Tokens{5, 32, 0}},
	{name: "without the blank", events: true, text: "data:{\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3}}\n\ndata:[DONE]\n\n", want: Tokens{5, 3, 0}},
	{name: "CRLF", events: true, text: "data: {\"usage\":{\"prompt_tokens\":5,\r\ndata: \"completion_tokens\":3}}\r\n\r\ndata: [DONE]\r\n\r\n", want: Tokens{5, 3, 0}},
	{name: "CR, several lines, comments and other fields", events: true, text: ": ping\rid: 7\rdatabase: {\"usage\":{\"prompt_tokens\":1}}\rdata: {\"usage\":\rdata: {\"prompt_tokens\":5,\"completion_tokens\":3}}\r\r", want: Tokens{5, 3, 0}},
	{name: "messages, JSON", text: `{"type":"message","usage":{"input_tokens":9,"output_tokens":8,"cache_read_input_tokens":2}}`, want: Tokens{11, 8, 2}},
	{name: "messages, stream", events: true, text: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":9,\"output_tokens\":0}}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":9,\"output_tokens\":8}}\n\n", want: Tokens{9, 8, 0}},
	{name: "messages, cached and put there", text: `{"type":"message","usage":{"input_tokens":4,"cache_creation_input_tokens":100,"cache_read_input_tokens":2000,"output_tokens":8}}`, want: Tokens{2104, 8, 2000}},
	{name: "messages, nobody knows what was cached", text: `{"type":"message","usage":{"input_tokens":9,"cache_creation_input_tokens":null,"cache_read_input_tokens":null,"output_tokens":8}}`, want: Tokens{9, 8, 0}},
	{name: "messages, stream, corrected", events: true, text: "data: {\"message\":{\"usage\":{\"input_tokens\":2104,\"output_tokens\":0}}}\n\ndata: {\"usage\":{\"input_tokens\":104,\"cache_read_input_tokens\":2000,\"output_tokens\":8}}\n\n", want: Tokens{2104, 8, 2000}},
	{name: "chat that says it twice", text: `{"usage":{"prompt_tokens":2104,"completion_tokens":8,"prompt_tokens_details":{"cached_tokens":2000},"cache_creation_input_tokens":100,"cache_read_input_tokens":2000}}`, want: Tokens{2104, 8, 2000}},
	{name: "no output", text: `{"usage":{"prompt_tokens":5,"total_tokens":5}}`, want: Tokens{5, 0, 0}, none: true},
	{name: "no input", text: `{"usage":{"output_tokens":5}}`, want: Tokens{0, 5, 0}, none: true},
	{name: "responses, stream", events: true, text: "event: response.created\ndata: {\"response\":{\"usage\":null}}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"usage\":{\"input_tokens\":77}}],\"usage\":{\"input_tokens\":6,\"output_tokens\":5,\"input_tokens_details\":{\"cached_tokens\":3}}}}\n\n", want: Tokens{6, 5, 3}},
	{name: "escapes at the end of a text and in a key", text: `{"text":"say \"usage\"\n","usage":{"prompt_tokens":5,"completion_tokens":3},"\nusage":{"prompt_tokens":99}}`, want: Tokens{5, 3, 0}},
	{name: "no JSON at all", text: "upstream connect error", none: true},
}

func readUsage(events bool, parts ...string) (Tokens, bool) {
	r := NewReader(events)
	for _, p := range parts {
		r.Write([]byte(p))
	}
	c := r.Counts()
	return c.Tokens(false)
}

func TestUsage(t *testing.T) {
	for _, a := range responses {
		t.Run(a.name, func(t *testing.T) {
			if got, ok := readUsage(a.events, a.text); got != a.want || ok == a.none {
				t.Errorf("got %+v, %v", got, ok)
			}
		})
	}
}

// Peers lose the usage when a line is split across chunks.
func TestDefectUsageLostWhenALineSplits(t *testing.T) {
	for _, a := range responses {
		for cut := range len(a.text) {
			if got, ok := readUsage(a.events, a.text[:cut], a.text[cut:]); got != a.want || ok == a.none {
				t.Fatalf("%s, cut at %d: got %+v, %v", a.name, cut, got, ok)
			}
		}
		if got, _ := readUsage(a.events, strings.Split(a.text, "")...); got != a.want {
			t.Errorf("%s, byte by byte: got %+v", a.name, got)
		}
	}
}

// FuzzUsageSplits: the result does not depend on where a response is cut.
func FuzzUsageSplits(f *testing.F) {
	for i, a := range responses {
		f.Add(a.text, a.events, uint64(i))
	}
	f.Fuzz(func(t *testing.T, text string, events bool, seed uint64) {
		want, wantOK := readUsage(events, text)
		draw := rand.New(rand.NewPCG(seed, 1))
		var parts []string
		for rest := text; rest != ""; {
			n := 1 + draw.IntN(len(rest))
			if draw.IntN(2) == 0 {
				n = min(n, 3)
			}
			parts = append(parts, rest[:n])
			rest = rest[n:]
		}
		if got, ok := readUsage(events, parts...); got != want || ok != wantOK {
			t.Errorf("in %d parts %+v %v, whole %+v %v: %q", len(parts), got, ok, want, wantOK, text)
		}
	})
}

// A response that says that it has ended has ended, wherever it is cut, and not before its last byte but one.
func TestEnded(t *testing.T) {
	for _, c := range []struct {
		name   string
		events bool
		text   string
		ended  bool
	}{
		{"chat", true, "data: {\"choices\":[{\"delta\":{\"content\":\"[DONE]\"}}]}\n\ndata: [DONE]\n\n", true},
		{"chat, CRLF", true, "data:{}\r\n\r\ndata:[DONE]\r\n\r\n", true},
		{"chat, and more after the end", true, "data: [DONE]\n\n: bye\n\ndata: {}\n\n", true},
		{"chat, not yet", true, "data: {}\n\ndata: [DONE]\n", false},
		{"chat, something else", true, "data: [DONE]x\n\ndata: x[DONE]\n\ndata: [DO\ndata: NE]\n\n: [DONE]\n\n", false},
		{"messages", true, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", true},
		{"messages, not yet", true, "event: message_delta\ndata: {\"type\":\"message_delta\",\"x\":{\"type\":\"message_stop\"},\"y\":\"message_stop\"}\n\n", false},
		{"responses", true, "data: {\"type\":\"response.completed\",\"response\":{}}\n\n", true},
		{"responses, cut short", true, "data: {\"type\":\"response.incomplete\",\"response\":{}}\n\n", true},
		{"responses, failed", true, "data: {\"type\":\"response.failed\",\"response\":{}}\n\n", true},
		{"JSON", false, `{"type":"message","content":[{}]}`, true},
		{"JSON, not yet", false, `{"content":[{"type":"message_stop"}],`, false},
	} {
		for cut := range len(c.text) {
			r := NewReader(c.events)
			r.Write([]byte(c.text[:cut]))
			if r.Ended() && !c.ended {
				t.Fatalf("%s: it has ended at %d", c.name, cut)
			}
			r.Write([]byte(c.text[cut:]))
			if r.Ended() != c.ended {
				t.Fatalf("%s, cut at %d: ended %v", c.name, cut, r.Ended())
			}
		}
	}
}
