package body

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// value consumes one value of any kind, inside depth open objects and arrays. It does not recurse.
func (s *scanner) value(depth int) error {
	// objects has a bit for each open bracket of this value: 1 for an object, 0 for an array.
	var objects [MaxDepth / 64]uint64
	open, braces := 0, 0 // braces counts the objects among open
	for {
		// The next byte begins a value.
		c := s.b[s.i]
		inList := open > 0 && objects[(open-1)/64]>>((open-1)%64)&1 == 0
		if inList && open == 1 && s.isItem(c) {
			s.parts[s.measured].Prompts++
		}
		if s.measured != noPart && open <= 2 {
			s.frame(c, inList, open, braces)
		}
		switch {
		case c == '"':
			start := s.i
			escaped, err := s.str()
			if err != nil {
				return err
			}
			if s.measured != noPart {
				s.text(start, escaped, open)
			}
		case c == '{' || c == '[':
			if depth+open >= MaxDepth {
				return s.fail("nested too deep")
			}
			s.i++
			if c == '{' {
				objects[open/64] |= 1 << (open % 64)
				braces++
				s.beginMedium(open)
			} else {
				objects[open/64] &^= 1 << (open % 64)
				s.under = nil
			}
			open++
			next, err := s.space()
			if err != nil {
				return err
			}
			if next == c+2 { // '{' and '}', '[' and ']' are two apart
				s.i++
				if open--; c == '{' {
					braces--
				}
				break
			}
			if c == '{' {
				if err := s.key(open); err != nil {
					return err
				}
			}
			continue
		case c == '-' || c >= '0' && c <= '9':
			start := s.i
			if err := s.digits(); err != nil {
				return err
			}
			switch {
			case !inList: // key has handled it
			case braces == 0 && (s.measured == prompt || s.measured == input):
				s.parts[s.measured].Numbers++
			default:
				s.listed(start)
			}
		default:
			start := s.i
			if err := s.literal(); err != nil {
				return err
			}
			if inList {
				s.listed(start)
			}
		}
		// A value has ended: close the brackets that end here, and stop before the next value.
		for {
			if open == 0 {
				return nil
			}
			s.memberEnds(open)
			c, err := s.space()
			if err != nil {
				return err
			}
			object := objects[(open-1)/64]>>((open-1)%64)&1 == 1
			if object && c == '}' || !object && c == ']' {
				s.i++
				open--
				if object {
					braces--
				}
				s.under = nil
				continue
			}
			if c != ',' {
				return s.fail("expected a comma or a closing bracket")
			}
			s.i++
			if _, err = s.space(); err != nil {
				return err
			}
			if object {
				if err := s.key(open); err != nil {
					return err
				}
			}
			break
		}
	}
}

// key consumes a key and its colon, inside open brackets, and stops before the value.
func (s *scanner) key(open int) error {
	if s.b[s.i] != '"' {
		return s.fail("expected a key")
	}
	start := s.i
	escaped, err := s.str()
	if err != nil {
		return err
	}
	s.under = s.b[start+1 : s.i-1]
	if s.measured != noPart {
		if s.loose.open == 0 {
			s.loose.counted = 0
		}
		if length := int64(len(s.under)); length > longestKey {
			s.parts[s.measured].Text += length
			s.loose.counted += length
		}
		if escaped {
			s.under = unescape(s.under)
		}
	}
	c, err := s.space()
	if err != nil {
		return err
	}
	if c != ':' {
		return s.fail("expected a colon")
	}
	s.i++
	if c, err = s.space(); err == nil && s.measured != noPart && s.loose.open == 0 {
		s.keyed(c)
		s.memberBegins(c, start, open)
	}
	return err
}

func (s *scanner) literal() error {
	for _, word := range [...]string{"true", "false", "null"} {
		if s.b[s.i] != word[0] {
			continue
		}
		rest := s.b[s.i:]
		if len(rest) >= len(word) {
			if string(rest[:len(word)]) == word {
				s.i += len(word)
				return nil
			}
		} else if strings.HasPrefix(word, string(rest)) {
			return errEnd
		}
		return s.fail("expected true, false or null")
	}
	return s.fail("expected a value")
}

// digits consumes a number: -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?. A number at the very end of the bytes may
// be cut off. It is never taken for a complete number, because the end of the body's object must follow.
func (s *scanner) digits() error {
	at := func() byte {
		if s.i < len(s.b) {
			return s.b[s.i]
		}
		return 0
	}
	run := func() error {
		start := s.i
		for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
			s.i++
		}
		switch {
		case s.i == len(s.b):
			return errEnd
		case s.i == start:
			return s.fail("expected a digit")
		}
		return nil
	}
	if at() == '-' {
		s.i++
	}
	if at() == '0' {
		s.i++
		if s.i == len(s.b) {
			return errEnd
		}
	} else if err := run(); err != nil {
		return err
	}
	if at() == '.' {
		s.i++
		if err := run(); err != nil {
			return err
		}
	}
	if c := at(); c == 'e' || c == 'E' {
		s.i++
		if c := at(); c == '+' || c == '-' {
			s.i++
		}
		if err := run(); err != nil {
			return err
		}
	}
	return nil
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// str consumes a string, whose opening quote is the next byte, and reports whether it has escapes.
func (s *scanner) str() (escaped bool, err error) {
	i := s.i + 1
	for {
		// Skip eight bytes at a time, up to a quote, a backslash or a control character. The lowest mark is exact. Those
		// above it may be wrong, because the borrow of a subtraction carries upwards.
		for i+8 <= len(s.b) {
			w := binary.LittleEndian.Uint64(s.b[i:])
			q, e := w^(ones*'"'), w^(ones*'\\')
			marks := ((q-ones)&^q | (e-ones)&^e | (w-ones*0x20)&^w) & highs
			if marks != 0 {
				i += bits.TrailingZeros64(marks) / 8
				break
			}
			i += 8
		}
		if i >= len(s.b) {
			s.i = len(s.b)
			return escaped, errEnd
		}
		switch c := s.b[i]; {
		case c == '"':
			s.i = i + 1
			return escaped, nil
		case c == '\\':
			escaped = true
			if i, err = s.escape(i + 1); err != nil {
				return true, err
			}
		case c < 0x20:
			s.i = i
			return escaped, s.fail("control character in a string")
		default:
			i++
		}
	}
}

// escape checks the escape whose letter is at i, and returns the index behind it.
func (s *scanner) escape(i int) (int, error) {
	if i >= len(s.b) {
		s.i = len(s.b)
		return i, errEnd
	}
	switch s.b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1, nil
	case 'u':
		for j := i + 1; j < i+5; j++ {
			if j >= len(s.b) {
				s.i = len(s.b)
				return j, errEnd
			}
			if _, ok := hexDigit(s.b[j]); !ok {
				s.i = j
				return j, s.fail("expected a hexadecimal digit")
			}
		}
		return i + 5, nil
	}
	s.i = i
	return i, s.fail("unknown escape")
}

func hexDigit(c byte) (rune, bool) {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0'), true
	case c >= 'a' && c <= 'f':
		return rune(c-'a') + 10, true
	case c >= 'A' && c <= 'F':
		return rune(c-'A') + 10, true
	}
	return 0, false
}

// unescape decodes the inside of a string that str has checked. Half a surrogate pair becomes U+FFFD.
func unescape(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			i++
			continue
		}
		switch c := raw[i+1]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := unicodeEscape(raw[i:])
			if utf16.IsSurrogate(r) {
				low := unicodeEscape(raw[i+6:])
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
			i += 4
		default:
			out = append(out, c)
		}
		i += 2
	}
	return out
}

// unicodeEscape returns the value of the \uXXXX at the beginning of b, or -1.
func unicodeEscape(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range b[2:6] {
		d, _ := hexDigit(c)
		r = r<<4 | d
	}
	return r
}

// validUTF8 returns b as a string. Like encoding/json, it replaces each byte that is not UTF-8 by U+FFFD.
func validUTF8(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string(bytes.Runes(b))
}
