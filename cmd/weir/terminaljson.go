package main

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"
)

// terminalJSON writes JSON as a terminal may show it. JSON allows characters that control a terminal or turn the direction of a
// text, and clients choose names: they become escapes, which are the same text to a reader of JSON. Each Write has whole
// characters.
type terminalJSON struct{ to io.Writer }

func (w terminalJSON) Write(text []byte) (int, error) {
	if _, err := w.to.Write(escaped(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// escaped returns JSON without such characters, which stand in its strings only.
func escaped(text []byte) []byte {
	if bytes.IndexFunc(text, controls) < 0 {
		return text
	}
	var out bytes.Buffer
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if controls(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.Write(text[:size])
		}
		text = text[size:]
	}
	return out.Bytes()
}

// controls reports whether a character of a string in JSON controls a terminal (DEL, C1), or the direction of a text. The others,
// below a blank, JSON has as escapes only.
func controls(r rune) bool {
	return r >= 0x7f && r < 0xa0 || r == 0x200e || r == 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
