package printable

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// Characters that control a terminal are replaced in texts, and escaped in JSON, which keeps its meaning. Other
// characters stay.
func TestText(t *testing.T) {
	const bad, good = "\x1b[2J\r\n\u009b31m\u0085\x7f\u2028\u202e\u2066\u061c", "Ünïcode 日本 🙂 <img>\u00a0"
	if got := Text(good + "\xff"); got != good+"\uFFFD" {
		t.Errorf("%q", got)
	}
	for _, r := range Text(bad) {
		if Commands(r) {
			t.Errorf("%U is left", r)
		}
	}
	text, err := json.Marshal(good + bad)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if n, err := Writer(&out).Write(text); n != len(text) || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if strings.ContainsFunc(out.String(), Commands) || !strings.Contains(out.String(), "日本") {
		t.Errorf("%q", &out)
	}
	var back string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != good+bad {
		t.Errorf("%q, %v", back, err)
	}
	if indented := []byte("{\n\t\"a\": 1\n}\n"); !bytes.Equal(JSON(indented), indented) {
		t.Errorf("%q", JSON(indented))
	}
}
