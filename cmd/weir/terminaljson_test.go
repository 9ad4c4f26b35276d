package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// Names in JSON control no terminal, and are the same names to a reader.
func TestTerminalJSON(t *testing.T) {
	names := []string{"plain é 漢 😀", "\x7f\u0080\u009b2J\u009f", "\u200e\u202e\u2066", "\x1b[2J\n\"\\", "\u00a0\u07ff", "\xff\x9b"}
	var out strings.Builder
	encoder := json.NewEncoder(terminalJSON{&out})
	if err := encoder.Encode(names); err != nil {
		t.Fatal(err)
	}
	for _, r := range strings.TrimSuffix(out.String(), "\n") {
		if r < ' ' || controls(r) {
			t.Errorf("%q has %U", out.String(), r)
		}
	}
	var read []string
	if err := json.Unmarshal([]byte(out.String()), &read); err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		if want := strings.ToValidUTF8(name, "\ufffd"); read[i] != want && i < 5 {
			t.Errorf("%q became %q", name, read[i])
		}
	}
}
