package extproc

import (
	"bytes"
	"slices"
	"time"
)

// tokenWatch finds the first token of a response that comes in parts, which may be cut anywhere.
//
// The first token of a JSON response is its first byte. In server-sent events it is the first line that is neither
// empty nor a comment. In /v1/responses the events that an engine sends before it begins to work do not count either.
// Anything that tokenWatch does not understand counts as a token, because it must not be held.
type tokenWatch struct {
	events    bool // the response consists of server-sent events
	responses bool // and of /v1/responses

	// line is the line so far, unless it is passing.
	line []byte
	// passing is set while the rest of the line does not matter, early within an early event, and cr if the last byte
	// was a CR, so that an LF belongs to the same line end.
	passing, early, cr bool
}

// maxEventLine is the largest number of bytes kept of a line. A longer line counts as a token.
const maxEventLine = 64

const eventPrefix = "event:"

// earlyEvents are sent at once, before the request waits in the engine.
var earlyEvents = []string{"response.created", "response.queued", "response.in_progress"}

// token reads the next part and reports whether the first token is in it.
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

// endLine ends a line and reports whether it was something other than a token.
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

// mayPass reports whether the line so far may still be something other than a token.
func (w *tokenWatch) mayPass() bool {
	switch {
	case w.line[0] == ':':
		w.passing = true
	case !w.responses:
		return false
	case bytes.HasPrefix(w.line, []byte(eventPrefix)), bytes.HasPrefix([]byte(eventPrefix), w.line):
		// Only the whole line can tell.
	case w.early:
		w.passing = true
	default:
		return false
	}
	return true
}

// isEarly reports whether the line names, or belongs to, an early event.
func (w *tokenWatch) isEarly() bool {
	name, ok := bytes.CutPrefix(w.line, []byte(eventPrefix))
	if !ok {
		return w.early
	}
	name = bytes.TrimPrefix(name, []byte(" "))
	return slices.Contains(earlyEvents, string(name))
}

// firstToken notes the first token of a response: the endpoint has read the prompt. ok is set if the status is 2xx, and
// begun is the time of the request.
func (s *shared) firstToken(l Lease, ok bool, begun time.Time) {
	if l != nil {
		l.OnFirstToken()
	}
	if ok {
		s.metrics.firstToken.Observe(time.Since(begun).Seconds())
	}
}
