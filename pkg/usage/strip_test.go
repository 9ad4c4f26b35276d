package usage

import (
	"math/rand/v2"
	"strings"
	"testing"
)

const stripped = `data: {"id":"x","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3}}`

// streams are what engines send after they were asked for usage: what stays, around what goes.
var streams = []struct{ name, before, goes, after string }{
	{"chat", "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n", stripped + "\n\n", "data: [DONE]\n\n"},
	{"completions", "data: {\"choices\":[{\"text\":\"hi\"}]}\n\n", stripped + "\n\n", "data: [DONE]\n\n"},
	{"spaces", "", "data:{ \"usage\" : {\"x\":{}} , \"choices\" : [ ] }\n\n", "data:[DONE]\n\n"},
	{"CRLF", "data: {}\r\n\r\n", stripped + "\r\n\r\n", "data: [DONE]\r\n\r\n"},
	{"CR", "data: {}\r\r", stripped + "\r\r", "data: [DONE]\r\r"},
	{"several lines", "", "data: {\"choices\":[],\r\ndata: \"usage\":{\r\ndata: }}\r\nid: 7\r\n\r\n", "\r\ndata: [DONE]\r\n\r\n"},
	{"a comment before it", ": ping\n", stripped + "\n\n", ": pong\n\ndata: [DONE]\n\n"},
	{"it is the last", "data: {}\n\n", stripped + "\n\n", ""},
	{"it is the last, without an end", "data: {}\n\n", stripped, ""},
	{"twice", "", stripped + "\n\n" + stripped + "\n\n", "data: [DONE]\n\n"},
	// These stay.
	{"an empty stream", "", "", ""},
	{"no usage", "data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n", "", ""},
	{"null", "data: {\"choices\":[],\"usage\":null}\n\n", "", ""},
	{"usage beside a choice", "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"choices\\\":[]\"}}],\"usage\":{\"x\":1}}\n\n", "", ""},
	{"no choices", "data: {\"usage\":{\"x\":1}}\n\ndata: {\"choices\":null,\"usage\":{\"x\":1}}\n\n", "", ""},
	{"deeper", "data: {\"x\":{\"choices\":[],\"usage\":{}}}\n\n", "", ""},
	{"no JSON", "data: {\"choices\":[],\"usage\":{}\n\ndata: \"choices\" \"usage\"\n\n", "", ""},
	{"another field", "event: x\n" + stripped + "\n\n" + "database: {\"choices\":[],\"usage\":{}}\n\n", "", ""},
	{"too long to be held", "data: {\"pad\":\"" + strings.Repeat("x", 2*maxEvent) + "\",\"choices\":[{}],\"usage\":{\"x\":1}}\n\n", "", ""},
	{"no events at all", "{\"choices\":[],\"usage\":{}}", "", ""},
}

func strip(parts ...string) string {
	var s Strip
	var out strings.Builder
	for i, p := range parts {
		out.Write(s.Next([]byte(p), i == len(parts)-1))
	}
	return out.String()
}

// Only the event that reports the usage goes, wherever the stream is cut.
func TestStrip(t *testing.T) {
	for _, c := range streams {
		t.Run(c.name, func(t *testing.T) {
			text, want := c.before+c.goes+c.after, c.before+c.after
			if got := strip(text); got != want {
				t.Fatalf("got %q\nwant %q", got, want)
			}
			for cut := 0; cut < len(text); cut += 1 + len(text)/1000 {
				if got := strip(text[:cut], text[cut:]); got != want {
					t.Fatalf("cut at %d: got %q\nwant %q", cut, got, want)
				}
				if got := strip(text[:cut], text[cut:], ""); got != want {
					t.Fatalf("cut at %d, and an empty end: got %q\nwant %q", cut, got, want)
				}
			}
			if got := strip(strings.Split(text, "")...); got != want {
				t.Errorf("byte by byte: got %q\nwant %q", got, want)
			}
		})
	}
}

// Whole events pass at once, and no more than one event is ever held.
func TestStripHoldsLittle(t *testing.T) {
	var s Strip
	for _, part := range []string{"data: {}\n\n", ": ping", "\n", "\n", "data: [DONE]\n\n", "event: x\ndata: {\"choi", "x: y"} {
		if got := string(s.Next([]byte(part), false)); got != part {
			t.Errorf("%q: got %q", part, got)
		}
	}
	s = Strip{}
	passed := 0
	for range 100 {
		passed += len(s.Next([]byte("data: "+strings.Repeat("x", 1000)), false))
		if len(s.held) > maxEvent {
			t.Fatalf("%d bytes are held", len(s.held))
		}
	}
	if passed < 100*1006-maxEvent {
		t.Errorf("%d bytes passed", passed)
	}
	s = Strip{}
	s.Next([]byte("data: {\"choi"), false)
	if got := string(s.Rest()); got != "data: {\"choi" {
		t.Errorf("the rest is %q", got)
	}
}

// FuzzStripSplits: what stays does not depend on where a stream is cut, and nothing is added to it.
func FuzzStripSplits(f *testing.F) {
	for i, c := range streams {
		if len(c.before) < maxEvent {
			f.Add(c.before+c.goes+c.after, uint64(i))
		}
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		if len(text) > maxEvent {
			return // a long event is held or not by how it is cut
		}
		want := strip(text)
		draw := rand.New(rand.NewPCG(seed, 1))
		var parts []string
		for rest := text; rest != ""; {
			n := 1 + draw.IntN(len(rest))
			if draw.IntN(2) == 0 {
				n = min(n, 3)
			}
			parts, rest = append(parts, rest[:n]), rest[n:]
		}
		if got := strip(parts...); got != want && len(parts) > 0 {
			t.Errorf("in %d parts %q, whole %q: %q", len(parts), got, want, text)
		}
		if !subsequence(want, text) || !strings.Contains(text, `"usage"`) && want != text {
			t.Errorf("%q became %q", text, want)
		}
	})
}

func subsequence(part, text string) bool {
	for i := range len(part) {
		n := strings.IndexByte(text, part[i])
		if n < 0 {
			return false
		}
		text = text[n+1:]
	}
	return true
}
