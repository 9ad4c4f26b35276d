package extproc

import (
	"bytes"
	"slices"
)

// tokenWatch looks for the first token in an answer that passes by in parts, cut anywhere. In a whole answer it is the
// first byte. In server-sent events it is the first line that is neither empty nor a comment; of /v1/responses also
// the events that an engine sends before it has begun to work are none, with all their lines. What is not understood
// counts as a token: it must not be held.
type tokenWatch struct {
	events    bool // the answer is server-sent events
	responses bool // of /v1/responses

	// line is the line so far, as far as it matters.
	line []byte
	// passing says that the rest of the line does not matter, early that the event is an early one, cr that the last
	// byte was a CR, whose LF is no line of its own.
	passing, early, cr bool
}

// maxEventLine is the longest line, in bytes, that is kept to be looked at.
const maxEventLine = 64

const eventPrefix = "event:"

// earlyEvents come at once, however long the request then waits in the engine.
var earlyEvents = []string{"response.created", "response.queued", "response.in_progress"}

// token takes in the next part and says whether the first token is in it.
func (w *tokenWatch) token(b []byte) bool {
	if !w.events {
		return len(b) > 0
	}
	for len(b) > 0 {
		c := b[0]
		b = b[1:]
		if w.cr {
			w.cr = false
			if c == '\n' {
				continue
			}
		}
		if c == '\r' || c == '\n' {
			w.cr = c == '\r'
			if !w.endLine() {
				return true
			}
			continue
		}
		if w.passing {
			n := bytes.IndexAny(b, "\r\n")
			if n < 0 {
				return false
			}
			b = b[n:]
			continue
		}
		if len(w.line) == maxEventLine {
			return true
		}
		w.line = append(w.line, c)
		if !w.mayPass() {
			return true
		}
	}
	return false
}

// endLine is the end of a line; false: it was a token.
func (w *tokenWatch) endLine() bool {
	switch {
	case w.passing:
	case len(w.line) == 0:
		w.early = false
	default:
		if w.early = w.isEarly(); !w.early {
			return false
		}
	}
	w.line, w.passing = w.line[:0], false
	return true
}

// mayPass says whether the line so far may still be something else than a token.
func (w *tokenWatch) mayPass() bool {
	switch {
	case w.line[0] == ':':
		w.passing = true
	case !w.responses:
		return false
	case bytes.HasPrefix(w.line, []byte(eventPrefix)), bytes.HasPrefix([]byte(eventPrefix), w.line):
		// It takes the whole line to know.
	case w.early:
		w.passing = true
	default:
		return false
	}
	return true
}

// isEarly says whether the line names an early event.
func (w *tokenWatch) isEarly() bool {
	name, ok := bytes.CutPrefix(w.line, []byte(eventPrefix))
	if !ok {
		return w.early
	}
	name = bytes.TrimPrefix(name, []byte(" "))
	return slices.Contains(earlyEvents, string(name))
}
