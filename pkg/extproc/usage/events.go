package usage

import "bytes"

// eventLines splits server-sent events into lines and passes on the data of each event as one document: its data lines,
// joined by line ends. Lines end in CR, LF or CRLF. One space may follow "data:". An empty line ends the event.
type eventLines struct {
	// name is the line's field name so far, while it can still be "data".
	name []byte
	// field is the part of the line that the next byte belongs to.
	field eventField
	// cr is set if the last byte was a CR: an LF then belongs to the same line end.
	cr bool
	// data is set if the event has data. events counts those that had.
	data   bool
	events int64
}

type eventField uint8

const (
	lineStart eventField = iota // in the field name
	afterData                   // just after "data:"
	inData
	ignored // in a line without data
)

const dataField = "data"

func (l *eventLines) write(b []byte, to *scan) {
	for len(b) > 0 {
		c := b[0]
		if l.cr {
			l.cr = false
			if c == '\n' {
				b = b[1:]
				continue
			}
		}
		if c == '\r' || c == '\n' {
			l.cr = c == '\r'
			l.line(to)
			b = b[1:]
			continue
		}
		switch l.field {
		case lineStart:
			switch {
			case c == ':' && string(l.name) == dataField:
				l.field = afterData
			case len(l.name) < len(dataField) && c == dataField[len(l.name)]:
				l.name = append(l.name, c)
			default:
				l.field = ignored
			}
			b = b[1:]
		case afterData:
			if c == ' ' {
				b = b[1:]
			}
			l.field = inData
		case inData, ignored:
			n := bytes.IndexAny(b, "\r\n")
			if n < 0 {
				n = len(b)
			}
			if l.field == inData {
				to.write(b[:n])
			}
			b = b[n:]
		}
	}
}

// line ends a line.
func (l *eventLines) line(to *scan) {
	switch {
	case l.field == lineStart && len(l.name) == 0:
		to.restart()
		if l.data {
			l.data = false
			l.events++
		}
	case l.field == inData || l.field == afterData:
		to.write([]byte{'\n'})
		l.data = true
	}
	l.name, l.field = l.name[:0], lineStart
}
