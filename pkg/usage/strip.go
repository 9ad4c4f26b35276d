package usage

import (
	"bytes"
	"encoding/json"
)

// Strip removes the event that reports only usage from a stream of chat completions or completions: its data is a JSON
// object with empty choices and a usage object. All other bytes pass unchanged and at once, except the beginning of an
// event that may be this one: it waits for its end, as clients also do.
type Strip struct {
	// held is the beginning of an event that has not ended.
	held []byte
	kind eventKind
	// inLine is set within a line.
	inLine bool
	// cr is set if the last byte was a CR, so that an LF belongs to the same line end. dropLF is set if that LF belongs
	// to the removed event.
	cr, dropLF bool
}

// eventKind is the kind of the event of the next byte, as read so far.
type eventKind uint8

const (
	noEvent     eventKind = iota // between events
	someEvent                    // it is kept
	heldEvent                    // it began like data, and may be the usage event
	commentLine                  // a line outside any event
)

// maxEvent is the largest number of held bytes of an event. A longer event is kept.
const maxEvent = 16 << 10

// Next returns the part of the stream to pass on after its next part. end is set with the last part. The result is
// valid until the next call; part must not be changed before that.
func (s *Strip) Next(part []byte, end bool) []byte {
	b, i, first := part, 0, -1 // first is the index of the held event's first byte
	if len(s.held) > 0 {
		i, first = len(s.held), 0
		b = append(s.held, part...)
		s.held = nil
	}
	var kept []byte
	from, cut := 0, false // the bytes between kept and from are removed
	drop := func(start, end int) {
		kept, from, cut = append(kept, b[from:start]...), end, true
	}
	var lines lineEnds
	for i < len(b) {
		c := b[i]
		if s.cr {
			s.cr = false
			if c == '\n' {
				if s.dropLF {
					drop(i, i+1)
				}
				i++
				continue
			}
		}
		if c != '\r' && c != '\n' {
			if !s.inLine {
				s.inLine = true
				if first = s.begin(c, i, first); s.kind == heldEvent && i-first > maxEvent {
					s.kind = someEvent
				}
			}
			i = lines.next(b, i)
			continue
		}
		after := i + 1
		if c == '\r' {
			if after == len(b) {
				s.cr, s.dropLF = true, false
			} else if b[after] == '\n' {
				after++
			}
		}
		if s.inLine {
			s.inLine = false
			if s.kind == commentLine {
				s.kind = noEvent
			}
		} else {
			if s.kind == heldEvent && onlyUsage(b[first:i]) {
				drop(first, after)
				s.dropLF = s.cr
			}
			s.kind = noEvent
		}
		i = after
	}
	rest := len(b)
	if s.kind == heldEvent {
		switch {
		case end && onlyUsage(b[first:]):
			drop(first, rest)
		case end || rest-first > maxEvent:
			s.kind = someEvent
		case first == 0:
			s.held, rest = b, 0
		default:
			s.held, rest = bytes.Clone(b[first:]), first
		}
	}
	if !cut {
		return b[:rest]
	}
	return append(kept, b[from:max(from, rest)]...)
}

// begin reads the first byte of a line, and returns the index of the held event's first byte.
func (s *Strip) begin(c byte, i, first int) int {
	if s.kind != noEvent {
		return first
	}
	switch c {
	case ':':
		s.kind = commentLine
	case dataField[0]:
		s.kind = heldEvent
		return i
	default:
		s.kind = someEvent
	}
	return first
}

// Rest returns the held part, when the stream has ended without a last part.
func (s *Strip) Rest() []byte {
	rest := s.held
	s.held = nil
	return rest
}

// onlyUsage reports whether an event, without its last empty line, reports only usage.
func onlyUsage(event []byte) bool {
	if !bytes.Contains(event, []byte(`"usage"`)) || !bytes.Contains(event, []byte(`"choices"`)) {
		return false // nearly all
	}
	var data []byte
	for len(event) > 0 {
		n := bytes.IndexAny(event, "\r\n")
		line := event
		if n >= 0 {
			line, event = event[:n], event[n+1:]
		} else {
			event = nil
		}
		if text, ok := bytes.CutPrefix(line, []byte(dataField+":")); ok {
			data = append(append(data, text...), '\n')
		}
	}
	var d struct {
		Choices []json.RawMessage `json:"choices"`
		Usage   json.RawMessage   `json:"usage"`
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return false
	}
	return d.Choices != nil && len(d.Choices) == 0 && bytes.HasPrefix(d.Usage, []byte("{"))
}
