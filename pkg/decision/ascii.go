package decision

import (
	"strconv"
	"strings"
	"unicode/utf16"
)

// ascii returns JSON in which all other characters, and DEL, are escaped, so that it fits into a header.
func ascii(text []byte) string {
	var out strings.Builder
	out.Grow(len(text))
	for _, r := range string(text) {
		switch {
		case r < 0x7f:
			out.WriteByte(byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			escape(&out, high)
			escape(&out, low)
		default:
			escape(&out, r)
		}
	}
	return out.String()
}

func escape(out *strings.Builder, r rune) {
	out.WriteString(`\u`)
	digits := strconv.FormatInt(int64(r), 16)
	out.WriteString("0000"[len(digits):])
	out.WriteString(digits)
}

// Printable returns the line without characters that control a terminal: clients choose the IDs of their requests.
func Printable(line string) string {
	var out strings.Builder
	for _, r := range line {
		if strconv.IsPrint(r) {
			out.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		out.WriteString(quoted[1 : len(quoted)-1])
	}
	return out.String()
}
