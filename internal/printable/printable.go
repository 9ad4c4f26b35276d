package printable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Commands reports whether a character is unprintable: it controls a terminal (the C0 and C1 sets, DEL), ends a line,
// or changes the direction of the surrounding text.
func Commands(r rune) bool {
	return r < ' ' || r >= 0x7f && (unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control))
}

// Text returns a text with U+FFFD instead of unprintable characters and of bytes that are not UTF-8.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if Commands(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
}

// JSON returns JSON with such characters escaped, since encoding/json escapes only those below a blank.
func JSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, escaped) {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	for _, r := range string(text) {
		if escaped(r) {
			out = fmt.Appendf(out, `\u%04x`, r) // all of them have four digits
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

func escaped(r rune) bool { return r >= 0x7f && Commands(r) }

// WriteJSON writes a value as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	out := json.NewEncoder(Writer(w))
	out.SetIndent("", "  ")
	return out.Encode(v)
}

// Writer returns a writer of JSON to w; each of its writes must end with a whole character.
func Writer(w io.Writer) io.Writer { return writer{w} }

type writer struct{ w io.Writer }

func (w writer) Write(text []byte) (int, error) {
	if _, err := w.w.Write(JSON(text)); err != nil {
		return 0, err
	}
	return len(text), nil
}
