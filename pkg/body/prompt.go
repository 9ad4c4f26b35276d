package body

import (
	"bytes"
	"slices"
)

// Prompt measures the part of a body that an engine has to read: the strings of messages, prompt, input, system and
// instructions, at any depth and without the APIs' keys, and the JSON of tools and of their arguments, which engines
// show to the model unchanged. Media in the body (data URLs, and base64 where an API expects it) are not text.
type Prompt struct {
	// Text is its length in bytes, after escapes are decoded.
	Text int64
	// Numbers is the number of token IDs, in the arrays of prompt and input.
	Numbers int64
	// Frames is the number of tokens that an engine puts around its messages, and around each text of a list.
	Frames int64
	// Media is the number of its parts of unknown size in tokens: media, and parts that an engine fetches by a URL or
	// keeps under a name.
	Media int64
	// Rest is the number of its other bytes, in fields that no API defines: keys, numbers, literals and the bytes
	// between them.
	Rest int64
	// Prompts is the number of prompts in the body, each with its own answers. It is 1 unless prompt is a list, or
	// messages a list of lists.
	Prompts int64
}

// Templates of chats put tokens around each message besides its role and content, Llama 3 and ChatML 4 and others fewer.
// Models that embed and compare texts put 1 or 2 around each.
const (
	aroundMessage = 4
	aroundText    = 2
)

// longestKey is the length in bytes of the APIs' longest keys. The arguments of a tool may have longer keys, which are
// text.
const longestKey = 32

// promptKey numbers the keys of the prompt; those before input can be lists of prompts.
type promptKey uint8

const (
	messages promptKey = iota
	prompt
	input
	system
	instructions
	tools
	previousResponse // this and the next name earlier turns, kept by the engine
	conversation
	query // the first of the pairs
	queries
	text1
	data1
	documents // the first of their other side
	items
	text2
	data2
	texts
	inputs
	noPart
)

// promptParts has one for each of the keys. The last of duplicate keys counts.
type promptParts [noPart]Prompt

func (p *promptParts) sum() (all Prompt) {
	for _, part := range p[:query] {
		all.Text += part.Text
		all.Numbers += part.Numbers
		all.Frames += part.Frames
		all.Media += part.Media
		all.Rest += part.Rest
	}
	all.Prompts = max(1, p[prompt].Prompts, p[messages].Prompts)
	return all
}

// part measures the value of one of these keys.
func (s *scanner) part(k promptKey) error {
	start := s.i
	err := s.measure(k)
	if k <= tools {
		s.spans[k] = span{start, s.i}
	}
	return err
}

func (s *scanner) measure(k promptKey) error {
	start := s.i
	s.parts[k], s.kinds[k] = Prompt{}, 0
	if k == tools {
		err := s.value(1)
		s.parts[k].Text = int64(s.i - start)
		s.structure.set(byTools, err == nil && s.filled(start))
		return err
	}
	if k == previousResponse || k == conversation {
		err := s.value(1)
		if err == nil && s.b[start] != 'n' && s.i-start > len(`""`) {
			s.parts[k].Media = 1
		}
		return err
	}
	s.measured, s.under, s.loose, s.medium = k, nil, loose{}, medium{}
	err := s.value(1)
	s.measured = noPart
	return err
}

// isItem reports whether a value of the measured list, beginning with c, is one of several prompts or texts.
func (s *scanner) isItem(c byte) bool {
	switch s.measured {
	case prompt:
		return c == '"' || c == '['
	case messages:
		return c == '['
	default:
		return s.measured >= query && s.measured < noPart
	}
}

// frame counts the frame of a value that begins with c, inside open brackets and braces of the measured part.
func (s *scanner) frame(c byte, inList bool, open, braces int) {
	p := &s.parts[s.measured]
	switch {
	case c == '{' && braces == 0 && s.measured <= input:
		p.Frames += aroundMessage
	case inList && open == 1 && (s.measured >= query || s.measured == input && (c == '"' || c == '[')):
		p.Frames += aroundText
	}
}

// text counts a string of the measured part, from its opening quote on, inside open brackets.
func (s *scanner) text(start int, escaped bool, open int) {
	raw := s.b[start+1 : s.i-1]
	p := &s.parts[s.measured]
	n, shown := int64(len(raw)), int64(len(raw))
	if escaped {
		n, shown = decodedLength(raw)
	}
	switch {
	case s.loose.open > 0:
		s.loose.counted += int64(len(raw)) - (shown - n)
	case s.isMedia(raw, n, open):
		s.typed(raw, escaped)
		p.Media++
		if len(raw) >= shortestMedia {
			s.media = append(s.media, span{start + 1, s.i - 1})
		}
		return
	}
	if s.loose.open == 0 {
		s.typed(raw, escaped)
	}
	if !s.loose.tool && isReference(s.under, raw) {
		p.Media++ // in addition to the text of its name
	}
	p.Text += n
}

// Keys with a URL in the APIs, perhaps a data URL, or with the name of a file kept by the engine.
var (
	urlKeys  = []string{"url", "image_url", "audio_url", "video_url", "file_url", "file_data"}
	nameKeys = []string{"file_id"}
)

// isReference reports whether the string under a key refers to content outside the body.
func isReference(key, raw []byte) bool {
	return len(key) > 0 && len(raw) > 0 && (slices.Contains(urlKeys, string(key)) || slices.Contains(nameKeys, string(key)))
}

// isMedia reports whether a string of n bytes, inside open brackets, is an image or the like and not text.
func (s *scanner) isMedia(raw []byte, n int64, open int) bool {
	in := s.medium.open > 0 && open == s.medium.open+1
	switch key := string(s.under); {
	case slices.Contains(urlKeys, key) && bytes.HasPrefix(raw, []byte("data:")):
		return bytes.Contains(raw[:min(len(raw), 256)], []byte(";base64,"))
	case key == "file_data":
		return isBase64(raw)
	case in && key == "type":
		s.medium.base64 = string(raw) == "base64"
	case in && key == "data" && isBase64(raw):
		s.medium.parts++
		s.medium.bytes += n
		return true
	}
	return false
}

// shortestBase64 is the length below which base64 cannot be distinguished from a word.
const shortestBase64 = 64

func isBase64(raw []byte) bool {
	if len(raw) < shortestBase64 {
		return false
	}
	for _, c := range raw {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '+' && c != '/' && c != '=' && c != '-' && c != '_' && c != '\\' { // some encoders escape slashes
			return false
		}
	}
	return true
}

// decodedLength returns the length of the inside of a string, checked by str, after decoding its escapes, and its
// length in the JSON that an engine shows, which does not escape non-ASCII characters.
func decodedLength(raw []byte) (n, shown int64) {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return n + int64(len(raw)), shown + int64(len(raw))
		}
		n += int64(i)
		shown += int64(i)
		raw = raw[i+1:]
		if raw[0] != 'u' {
			n++
			shown += 2
			raw = raw[1:]
			continue
		}
		// Each half of a surrogate pair, four bytes together, counts two.
		length := int64(3)
		switch {
		case raw[1] == '0' && raw[2] == '0' && raw[3] < '8':
			n++
			shown += 6
			length = 0
		case raw[1] == '0' && raw[2] < '8', (raw[1] == 'd' || raw[1] == 'D') && raw[2] >= '8':
			length = 2
		}
		n += length
		shown += length
		raw = raw[5:]
	}
}
