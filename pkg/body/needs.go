package body

// Needs are a body's needs that not every engine meets.
type Needs struct {
	// Image, Audio and Video are set if the prompt has a part of that kind.
	Image, Audio, Video bool
	// Structured is set if the answer must have a given form: a schema, a grammar, or calls of tools.
	Structured bool
}

// mediaKinds is a set of kinds of parts of a prompt.
type mediaKinds uint8

const (
	imagePart mediaKinds = 1 << iota
	audioPart
	videoPart
)

// kindOf returns the kind of a part by its type in the APIs, or by its key in parts without a type; 0 for text or an
// unknown kind.
func kindOf(name []byte) mediaKinds {
	switch string(name) {
	case "image_url", "input_image", "image", "image_embeds", "image_pil":
		return imagePart
	case "input_audio", "audio_url", "audio", "audio_embeds":
		return audioPart
	case "video_url", "input_video", "video":
		return videoPart
	}
	return 0
}

// typed notes the kind of a part of the prompt by the string under its key "type", and by the key of a URL.
func (s *scanner) typed(raw []byte, escaped bool) {
	switch string(s.under) {
	case "type":
		if escaped {
			raw = unescape(raw)
		}
		s.kinds[s.measured] |= kindOf(raw)
	case "image_url", "audio_url", "video_url", "input_image", "input_audio":
		s.kinds[s.measured] |= kindOf(s.under)
	}
}

// keyed notes the kind of a part of the prompt by its key; its value, an object, begins with c.
func (s *scanner) keyed(c byte) {
	switch string(s.under) {
	case "image_url", "input_audio", "audio_url", "video_url":
		if c == '{' {
			s.kinds[s.measured] |= kindOf(s.under)
		}
	}
}

// structure is a set of the ways to request an answer of a given form. The last of duplicate keys counts, so each key
// has its own bit.
type structure uint32

const (
	byResponseFormat structure = 1 << iota
	byText
	byOutputConfig
	byTools
	byFunctions
	withoutTools // tool_choice is "none", so that no tool is called
	byOther      // and the bits above: one for each of otherForms
)

// otherForms are further keys with a schema or a grammar, of vLLM, SGLang, llama.cpp and Anthropic. A value that is not
// null or empty requests a form.
var otherForms = [...]string{
	"guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs", "output_format",
	"json_schema", "regex", "ebnf", "grammar",
}

// asks reports whether the body requests a form.
func (x structure) asks() bool {
	called := x & (byTools | byFunctions)
	if x&withoutTools != 0 {
		called = 0
	}
	return x&^(byTools|byFunctions|withoutTools) != 0 || called != 0
}

// set notes whether a key requests a form.
func (x *structure) set(way structure, asks bool) {
	if *x &^= way; asks {
		*x |= way
	}
}

// form reads the value of a top-level key that may request a form. done is false for any other key, whose value is not
// read.
func (s *scanner) form(key []byte) (done bool, err error) {
	start := s.i
	switch string(key) {
	case "response_format":
		asks, err := s.typeAsks(1)
		s.structure.set(byResponseFormat, asks)
		return true, err
	case "text":
		asks, err := s.formatAsks()
		s.structure.set(byText, asks)
		return true, err
	case "output_config":
		asks, err := s.formatAsks()
		s.structure.set(byOutputConfig, asks)
		return true, err
	case "functions":
		err := s.value(1)
		s.structure.set(byFunctions, err == nil && s.filled(start))
		return true, err
	case "tool_choice":
		err := s.value(1)
		s.structure.set(withoutTools, err == nil && string(s.b[start:s.i]) == `"none"`)
		return true, err
	}
	for i, name := range otherForms {
		if name == string(key) {
			err := s.value(1)
			s.structure.set(byOther<<i, err == nil && s.filled(start))
			return true, err
		}
	}
	return false, nil
}

// filled reports whether the value from start on is neither null nor false, nor empty.
func (s *scanner) filled(start int) bool {
	switch string(s.b[start:s.i]) {
	case "null", "false", `""`, "[]", "{}":
		return false
	}
	// An object or a list with only blanks in it has no quotes, digits or letters.
	for _, c := range s.b[start:s.i] {
		switch c {
		case '{', '}', '[', ']', ' ', '\t', '\r', '\n':
		default:
			return true
		}
	}
	return false
}

// typeAsks reads a value inside depth open objects, and reports whether it is an object with a type other than "text".
func (s *scanner) typeAsks(depth int) (asks bool, err error) {
	if s.b[s.i] != '{' {
		return false, s.value(depth)
	}
	s.i++
	err = s.members(func(key []byte) error {
		start := s.i
		err := s.value(depth + 1)
		if err == nil && string(key) == "type" {
			value := string(s.b[start:s.i])
			asks = value != `"text"` && value != "null"
		}
		return err
	})
	return asks, err
}

// formatAsks reads the value of text in OpenAI's responses API, or of output_config in Anthropic's, and reports whether
// its format is not text. At other paths text is a string.
func (s *scanner) formatAsks() (asks bool, err error) {
	if s.b[s.i] != '{' {
		return false, s.value(1)
	}
	s.i++
	err = s.members(func(key []byte) error {
		if string(key) != "format" {
			return s.value(2)
		}
		asks, err = s.typeAsks(2)
		return err
	})
	return asks, err
}

// needs returns the needs found.
func (s *scanner) needs() Needs {
	var kinds mediaKinds
	for _, k := range s.kinds {
		kinds |= k
	}
	return Needs{
		Image: kinds&imagePart != 0, Audio: kinds&audioPart != 0, Video: kinds&videoPart != 0, Structured: s.structure.asks(),
	}
}
