package simulate

import (
	"strings"
	"testing"
)

// Prompts have texts of their lengths, and common parts by their hashes.
func TestTextsOfPrompts(t *testing.T) {
	texts := Texts{BlockBytes: 64, Seed: 1}
	text := func(number uint64, bytes int, hashes ...uint64) string {
		got := string(texts.Append(nil, &Request{Blocks: hashes}, bytes, number))
		if len(got) != bytes {
			t.Errorf("%d bytes, want %d", len(got), bytes)
		}
		if strings.ContainsAny(got, "\"\\\n") {
			t.Errorf("%q needs escaping", got)
		}
		return got
	}
	common := func(a, b string) int {
		n := 0
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		return n
	}
	a := text(1, 250, 7, 8, 9)
	for _, c := range []struct {
		name string
		b    string
		from int // least bytes in common, and at most 15 by chance more
	}{
		{"itself", text(1, 250, 7, 8, 9), 250},
		{"the same hashes of another request", text(2, 250, 7, 8, 9), 192},
		{"two hashes", text(1, 250, 7, 8, 10), 128},
		{"a shorter one, cut within a block", text(1, 100, 7, 8, 9), 100},
		{"no hash", text(1, 250, 17, 8, 9), 0},
		{"none at all", text(1, 250), 0},
	} {
		if got := common(a, c.b); got < c.from || got > c.from+15 {
			t.Errorf("%s: %d bytes in common, want %d", c.name, got, c.from)
		}
	}
	if got := common(text(1, 250), text(2, 250)); got > 15 {
		t.Errorf("two requests without hashes have %d bytes in common", got)
	}
	if got := text(1, 250, 7, 8, 9)[64:128]; got != text(3, 64, 8) {
		t.Error("a hash has another text at another place")
	}
	if got := text(1, 0, 7); got != "" {
		t.Errorf("%q", got)
	}
}
