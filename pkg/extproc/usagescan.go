package extproc

import "bytes"

// usageScan finds usage numbers in JSON documents that come in parts. It is a byte machine that follows strings and
// brackets and remembers only the keys that lead to a number it wants:
//
//	usage.NAME, message.usage.NAME, response.usage.NAME, and NAME within …usage.prompt_tokens_details or
//	….input_tokens_details
//
// It does not check the syntax: answers are the engine's. What is no JSON finds nothing.
type usageScan struct {
	usage Usage
	found bool

	depth int
	// path has the place of the innermost known object for each depth; deeper than that is of no interest.
	path [4]place
	// objects has a bit for each depth below 64: 1 for an object.
	objects uint64
	// awaitKey says that the next string is a key; key is the wanted key before the value.
	awaitKey bool
	key      usageKey

	inString, escaped bool
	// text is the string so far, as long as it may be a key that is wanted; overlong says that it is none.
	text     []byte
	overlong bool
	// number is the value of the digits so far, -1 when no number is being read.
	number  int64
	counted bool
}

// place is what an object means.
type place uint8

const (
	elsewhere place = iota
	atTop
	inEnvelope // message or response
	inUsage
	inDetails
)

// usageKey is a key that leads somewhere.
type usageKey uint8

const (
	noKey usageKey = iota
	keyUsage
	keyEnvelope
	keyDetails
	keyInput
	keyOutput
	keyCached
)

// maxKey is the longest key that is wanted.
const maxKey = 32

func keyOf(text []byte) usageKey {
	switch string(text) {
	case "usage":
		return keyUsage
	case "message", "response":
		return keyEnvelope
	case "prompt_tokens_details", "input_tokens_details":
		return keyDetails
	case "prompt_tokens", "input_tokens":
		return keyInput
	case "completion_tokens", "output_tokens":
		return keyOutput
	case "cached_tokens", "cache_read_input_tokens":
		return keyCached
	}
	return noKey
}

// restart begins a new document; what was found stays.
func (s *usageScan) restart() {
	*s = usageScan{usage: s.usage, found: s.found, text: s.text[:0]}
}

func (s *usageScan) write(b []byte) {
	for i := 0; i < len(b); i++ {
		if s.inString {
			i += s.inside(b[i:]) - 1
			continue
		}
		c := b[i]
		if c >= '0' && c <= '9' {
			s.digit(c)
			continue
		}
		if s.counted {
			s.value(c)
		}
		switch c {
		case '"':
			s.inString, s.escaped, s.overlong, s.text = true, false, false, s.text[:0]
		case '{', '[':
			s.open(c == '{')
		case '}', ']':
			if s.depth > 0 {
				s.depth--
			}
			s.awaitKey, s.key = false, noKey
		case ',':
			s.awaitKey, s.key = s.inObject(), noKey
		case ':', ' ', '\t', '\r', '\n':
		default: // -, true, false, null: no count
			s.key = noKey
		}
	}
}

// inside takes bytes of a string, and returns how many.
func (s *usageScan) inside(b []byte) int {
	if s.escaped {
		s.escaped, s.overlong = false, true // no wanted key has escapes
		return 1
	}
	n := bytes.IndexAny(b, `"\`)
	plain := b
	if n >= 0 {
		plain = b[:n]
	}
	if s.awaitKey && !s.overlong {
		if len(s.text)+len(plain) > maxKey {
			s.overlong = true
		} else {
			s.text = append(s.text, plain...)
		}
	}
	if n < 0 {
		return len(b)
	}
	if b[n] == '\\' {
		s.escaped, s.overlong = true, true
		return n + 1
	}
	s.inString = false
	if s.awaitKey && !s.overlong {
		s.key = keyOf(s.text)
	} else {
		s.key = noKey
	}
	s.awaitKey = false
	return n + 1
}

func (s *usageScan) inObject() bool {
	return s.depth > 0 && s.depth <= 64 && s.objects>>(s.depth-1)&1 == 1
}

// here is the place of the innermost object.
func (s *usageScan) here() place {
	if s.depth == 0 || s.depth > len(s.path) {
		return elsewhere
	}
	return s.path[s.depth-1]
}

func (s *usageScan) open(object bool) {
	next := elsewhere
	if object {
		switch here := s.here(); {
		case s.depth == 0:
			next = atTop
		case s.key == keyUsage && (here == atTop || here == inEnvelope):
			next = inUsage
		case s.key == keyEnvelope && here == atTop:
			next = inEnvelope
		case s.key == keyDetails && here == inUsage:
			next = inDetails
		}
	}
	s.depth++
	if s.depth <= len(s.path) {
		s.path[s.depth-1] = next
	}
	if s.depth <= 64 {
		s.objects &^= 1 << (s.depth - 1)
		if object {
			s.objects |= 1 << (s.depth - 1)
		}
	}
	s.awaitKey, s.key = object, noKey
}

// maxCount bounds a count of tokens: a larger one is nonsense.
const maxCount = 1 << 40

func (s *usageScan) digit(c byte) {
	if s.key < keyInput {
		return
	}
	if !s.counted {
		s.counted, s.number = true, 0
	}
	s.number = min(s.number*10+int64(c-'0'), maxCount)
}

// value is the end of a number, seen by the byte after it. Counts are integers: one with a point or an exponent is
// none.
func (s *usageScan) value(after byte) {
	n, key, here := s.number, s.key, s.here()
	s.counted, s.key = false, noKey
	if after == '.' || after == 'e' || after == 'E' {
		return
	}
	switch {
	case key == keyInput && here == inUsage:
		s.usage.Input = n
	case key == keyOutput && here == inUsage:
		s.usage.Output = n
	case key == keyCached && (here == inUsage || here == inDetails):
		s.usage.Cached = n
	default:
		return
	}
	s.found = true
}
