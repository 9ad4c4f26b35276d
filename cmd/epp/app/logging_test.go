package app

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// A warning has its own level, for the counts and alerts of log collectors, and no other mark.
func TestWarningsHaveTheirLevel(t *testing.T) {
	var out bytes.Buffer
	log, flush := newLogger(&out, encoderJSON, 0)
	log.Info("WARNING: the first", "a", 1)
	log.WithName("part").WithValues("b", 2).Info("WARNING: the second")
	log.Info("not a WARNING: in the middle")
	log.V(1).Info("WARNING: not shown at --v=0")
	flush()
	var got []string
	for line := range strings.Lines(out.String()) {
		var entry struct{ Level, Logger, Msg string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		got = append(got, entry.Level+" "+entry.Logger+" "+entry.Msg)
	}
	want := "warn  the first|warn part the second|info  not a WARNING: in the middle"
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
	out.Reset()
	log, flush = newLogger(&out, encoderConsole, 0)
	log.Info("WARNING: for people")
	flush()
	if text := out.String(); !strings.Contains(text, "\tWARN\tfor people") {
		t.Errorf("the console has %q", text)
	}
}

// Clients' bytes appear only as values and never change the log's form: one line each, in both encodings.
func TestValuesDoNotForgeLines(t *testing.T) {
	for _, encoding := range []string{encoderJSON, encoderConsole} {
		var out bytes.Buffer
		log, flush := newLogger(&out, encoding, 1)
		log.V(1).Info("request", "flow", "x\"\n{\"level\":\"error\",\"msg\":\"forged\"}\r\x1b[2J\x00\xff\u2028", "id", "a\tb")
		flush()
		text := out.String()
		if strings.Count(text, "\n") != 1 || strings.ContainsAny(text, "\r\x1b\x00") || !utf8.ValidString(text) || strings.Contains(text, `"x"`) {
			t.Errorf("%s: %q", encoding, text)
		}
	}
}
