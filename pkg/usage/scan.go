package usage

import "bytes"

// scan finds usage numbers in JSON documents that arrive in parts. It tracks strings and brackets byte by byte, and
// remembers only the keys that lead to these numbers:
//
//	usage.NAME, message.usage.NAME, response.usage.NAME, and NAME within …usage.prompt_tokens_details or
//	….input_tokens_details
//
// It does not check the syntax, because the engine wrote the response. It finds nothing in text that is not JSON.
type scan struct {
	counts Counts

	depth int
	// path is the place of the open object at each depth. Deeper objects have no usage.
	path [4]place
	// objects has a bit for each of the first 64 depths: 1 for an object, 0 for an array.
	objects uint64
	// awaitKey is set while the next string is a key. key is the key of the value that comes next.
	awaitKey bool
	key      key

	inString, escaped bool
	// text is the key so far. overlong is set once it can no longer be a key that leads to a number.
	text     []byte
	overlong bool
	// number is the value of the digits so far, while counted is set.
	number  int64
	counted bool
	// last is set once an object has the type of a last event, and whole once such an object has ended.
	last, whole bool
}

// place is the meaning of an open object.
type place uint8

const (
	elsewhere place = iota
	atTop
	inEnvelope // message or response
	inUsage
	inDetails
)

// key is a key that leads to a number.
type key uint8

const (
	noKey key = iota
	keyUsage
	keyEnvelope
	keyDetails
	keyType
	keyInput
	keyOutput
	keyCached
	keyCacheRead
	keyCacheCreated
)

// maxKey is longer than every key that leads to a number, in bytes.
const maxKey = 32

func keyOf(text []byte) key {
	switch string(text) {
	case "usage":
		return keyUsage
	case "message", "response":
		return keyEnvelope
	case "prompt_tokens_details", "input_tokens_details":
		return keyDetails
	case "type":
		return keyType
	case "prompt_tokens", "input_tokens":
		return keyInput
	case "completion_tokens", "output_tokens":
		return keyOutput
	case "cached_tokens":
		return keyCached
	case "cache_read_input_tokens":
		return keyCacheRead
	case "cache_creation_input_tokens":
		return keyCacheCreated
	}
	return noKey
}

// isLastType reports whether text is the type of a last event of a stream of messages or responses.
func isLastType(text []byte) bool {
	switch string(text) {
	case "message_stop", "response.completed", "response.incomplete", "response.failed":
		return true
	}
	return false
}

// restart begins a new document. It keeps the numbers found so far.
func (s *scan) restart() {
	*s = scan{counts: s.counts, last: s.last, text: s.text[:0]}
}

func (s *scan) write(b []byte) {
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
				s.whole = s.whole || s.depth == 0
			}
			s.awaitKey, s.key = false, noKey
		case ',':
			s.awaitKey, s.key = s.inObject(), noKey
		case ':', ' ', '\t', '\r', '\n':
		default: // -, true, false, null: not a count
			s.key = noKey
		}
	}
}

// inside reads bytes of a string and returns their number. It reads each byte at most twice, for any number of escapes.
func (s *scan) inside(b []byte) int {
	if s.escaped {
		s.escaped = false
		return 1
	}
	quote := index(b, '"', 0)
	for i := 0; i < quote; {
		n := bytes.IndexByte(b[i:quote], '\\')
		if n < 0 {
			break
		}
		s.overlong = true // none of the keys has escapes
		if i += n + 2; i > len(b) {
			s.escaped = true
			return len(b)
		}
		if i > quote { // it was escaped
			quote = index(b, '"', i)
		}
	}
	isType := s.key == keyType && s.here() == atTop
	if (s.awaitKey || isType) && !s.overlong {
		if len(s.text)+quote > maxKey {
			s.overlong = true
		} else {
			s.text = append(s.text, b[:quote]...)
		}
	}
	if quote == len(b) {
		return len(b)
	}
	s.inString = false
	switch {
	case s.overlong:
		s.key = noKey
	case s.awaitKey:
		s.key = keyOf(s.text)
	default:
		s.last = s.last || isType && isLastType(s.text)
		s.key = noKey
	}
	s.awaitKey = false
	return quote + 1
}

// index returns the index of the first c in b from the given one on, or len(b) if there is none.
func index(b []byte, c byte, from int) int {
	if n := bytes.IndexByte(b[from:], c); n >= 0 {
		return from + n
	}
	return len(b)
}

func (s *scan) inObject() bool {
	return s.depth > 0 && s.depth <= 64 && s.objects>>(s.depth-1)&1 == 1
}

// here returns the place of the innermost open object.
func (s *scan) here() place {
	if s.depth == 0 || s.depth > len(s.path) {
		return elsewhere
	}
	return s.path[s.depth-1]
}

func (s *scan) open(object bool) {
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

// maxCount bounds a count of tokens; larger counts are invalid.
const maxCount = 1 << 40

func (s *scan) digit(c byte) {
	if s.key < keyInput {
		return
	}
	if !s.counted {
		s.counted, s.number = true, 0
	}
	s.number = min(s.number*10+int64(c-'0'), maxCount)
}

// value ends a number at the byte after it. Counts are integers: a number with a point or an exponent is not one.
func (s *scan) value(after byte) {
	n, key, here := s.number, s.key, s.here()
	s.counted, s.key = false, noKey
	if after == '.' || after == 'e' || after == 'E' {
		return
	}
	switch {
	case key == keyInput && here == inUsage:
		s.counts.Set(Input, n)
	case key == keyOutput && here == inUsage:
		s.counts.Set(Output, n)
	case key == keyCached && here == inDetails:
		s.counts.Set(Cached, n)
	case key == keyCacheRead && here == inUsage:
		s.counts.Set(CacheRead, n)
	case key == keyCacheCreated && here == inUsage:
		s.counts.Set(CacheCreated, n)
	}
}
