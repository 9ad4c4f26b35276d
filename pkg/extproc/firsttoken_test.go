package extproc

import (
	"strings"
	"testing"
)

// The first token is found at the same byte for every cut of the response.
func TestFirstToken(t *testing.T) {
	const none = "NONE"
	early := "event: response.created\ndata: {\"type\":\"response.created\"}\n\n"
	tests := []struct {
		name      string
		responses bool
		before    string // no token
		token     string // its first byte, or line, is one
	}{
		{"data", false, "", "data: x"},
		{"an event", false, "", "event: message_start"},
		{"comments", false, ": ping\n\n:\n: data: x\r\n\r\n\r\r", "data: x"},
		{"a comment without end", false, ": " + strings.Repeat("x", 1000), none},
		{"blank lines", false, "\n\n\r\n\r", "id: 1"},
		{"an early event of another API", false, "", early},
		{"early events", true, early + ": ping\n\nevent:response.queued\r\ndata: a\r\ndata: b\r\nid: 7\r\n\r\n" +
			"event: response.in_progress\rdata: x\r\r", "event: response.output_item.added\n"},
		{"data after an early event", true, early, "data: x"},
		{"an early event's data, and no end", true, "event: response.created\ndata: " + strings.Repeat("x", 1000), none},
		{"a name that goes on", true, "", "event: response.created.not\n"},
		{"a name without end", true, "event: " + strings.Repeat("x", 57), "x"},
		{"an unknown field", true, "", "retry: 5"},
		{"a byte order mark", true, "", "\xef\xbb\xbfdata: x"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for cut := 1; cut < 80; cut++ {
				w := tokenWatch{events: true, responses: test.responses}
				for rest := test.before; rest != ""; {
					n := min(cut, len(rest))
					if w.token([]byte(rest[:n])) {
						t.Fatalf("cut by %d: a token with %q to go", cut, rest)
					}
					rest = rest[n:]
				}
				if test.token == none {
					continue
				}
				found := false
				for rest := test.token; rest != "" && !found; {
					n := min(cut, len(rest))
					found = w.token([]byte(rest[:n]))
					rest = rest[n:]
				}
				if !found {
					t.Fatalf("cut by %d: no token", cut)
				}
			}
		})
	}
}

// FuzzFirstToken cuts a response in two ways, which have to agree on whether there is a token. Only early lines are kept.
func FuzzFirstToken(f *testing.F) {
	f.Add([]byte(": ping\n\ndata: x\n\n"), 3, true)
	f.Add([]byte("event: response.created\ndata: x\n\nevent: x\n"), 1, true)
	f.Add([]byte("event:"+strings.Repeat("x", 2*maxEventLine)), 1, true)
	f.Fuzz(func(t *testing.T, b []byte, cut int, responses bool) {
		if cut < 1 {
			return
		}
		whole, parts := tokenWatch{events: true, responses: responses}, tokenWatch{events: true, responses: responses}
		want, got := whole.token(b), false
		for rest := b; len(rest) > 0 && !got; {
			n := min(cut, len(rest))
			got = parts.token(rest[:n])
			rest = rest[n:]
		}
		if got != want {
			t.Errorf("%q: %t whole, %t cut by %d", b, want, got, cut)
		}
		if len(whole.line) > maxEventLine {
			t.Errorf("%d bytes of a line are kept", len(whole.line))
		}
	})
}
