package child

import (
	"strings"
	"testing"
)

func TestLog(t *testing.T) {
	var log Log
	for _, text := range []string{"first\n", strings.Repeat("x", maxLog-10), "12345", "beyond"} {
		if n, err := log.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	got := log.String()
	if len(got) != maxLog || !strings.HasPrefix(got, "first\nxx") || !strings.HasSuffix(got, "x1234") {
		t.Errorf("%d bytes, from %q to %q", len(got), got[:8], got[len(got)-8:])
	}
}

func TestTail(t *testing.T) {
	for text, want := range map[string]string{"a\nb\nc\n": "b\nc", "a\n": "a", "": ""} {
		if got := Tail(text, 2); got != want {
			t.Errorf("%q ends with %q, want %q", text, got, want)
		}
	}
}
