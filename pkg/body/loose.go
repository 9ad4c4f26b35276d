package body

// A measured part is JSON. If an API defines it, engines show only its strings to the model. Other JSON, and a tool's,
// they may show unchanged.

// loose is a member of the measured part whose raw JSON counts. It begins in an object inside open brackets; 0 is none.
type loose struct {
	open  int
	start int
	// counted is the number of its bytes counted as text, or not counted at all.
	counted int64
	// tool is set if it is the arguments of a tool's call, which has no URLs to fetch.
	tool bool
}

// medium is an object of a measured part with base64 in an API's member "data", inside open brackets; 0 is none.
type medium struct {
	open int
	// named is set if only the type "base64" shows it, and base64 if that is the type.
	named, base64 bool
	// parts and bytes count the base64 so far, and before is the number of media before it.
	parts, bytes int64
	before       int
}

// form is the form of a key's value in the APIs.
type form uint8

const (
	unknown form = iota
	text         // a string
	parts        // a string, or objects and lists of such members again
	called       // a string, or a tool's arguments in any form
)

// formOf returns the form of the values under a key of messages, input, system and the like.
func formOf(key []byte) form {
	switch string(key) {
	case "role", "type", "text", "name", "id", "tool_call_id", "tool_use_id", "call_id", "status", "phase",
		"url", "detail", "format", "data", "media_type", "filename", "file_data", "file_id", "title", "context", "transcript",
		"refusal", "reasoning", "reasoning_content", "thinking", "signature", "encrypted_content", "ttl", "uuid":
		return text
	case "content", "tool_calls", "function", "function_call", "custom", "output", "summary", "cache_control", "annotations", "citations",
		"image_url", "audio_url", "video_url", "file_url", "input_audio", "image", "audio", "video", "file", "source":
		return parts
	case "arguments", "input":
		return called
	default:
		return unknown
	}
}

// memberBegins notes a member inside open brackets: its key begins at start, and its value is next and begins with c.
func (s *scanner) memberBegins(c byte, start, open int) {
	f := formOf(s.under)
	switch {
	case f == unknown:
	case c == '"' || c == 'n' || f == parts && (c == '{' || c == '['):
		return
	default:
		start, s.loose.counted = s.i, 0
	}
	s.loose.open, s.loose.start, s.loose.tool = open, start, f == called
}

// beginMedium notes an object, inside open brackets.
func (s *scanner) beginMedium(open int) {
	if s.measured == noPart || s.medium.open > 0 {
		return
	}
	switch string(s.under) {
	case "input_audio":
		s.medium = medium{open: open, before: len(s.media)}
	case "source":
		s.medium = medium{open: open, before: len(s.media), named: true}
	}
}

// memberEnds ends the parts that began with the member ending here, inside open brackets.
func (s *scanner) memberEnds(open int) {
	if s.loose.open == open {
		bytes := int64(s.i-s.loose.start) - s.loose.counted
		if s.loose.tool {
			s.parts[s.measured].Text += bytes
		} else {
			s.parts[s.measured].Rest += bytes
		}
		s.loose = loose{}
	}
	if s.medium.open == open {
		if s.medium.named && !s.medium.base64 {
			s.parts[s.measured].Media -= s.medium.parts
			s.parts[s.measured].Text += s.medium.bytes
			s.media = s.media[:s.medium.before]
		}
		s.medium = medium{}
	}
}

// listed counts a number or literal in a list, from start on.
func (s *scanner) listed(start int) {
	if s.measured != noPart && s.loose.open == 0 {
		s.parts[s.measured].Rest += int64(s.i - start)
	}
}
