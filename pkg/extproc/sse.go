package extproc

import "bytes"

// eventLines cuts server-sent events into lines, and passes the data of each event on as one document: its data
// lines joined by line ends. Lines end with CR, LF or both; "data:" may be followed by one blank; an empty line ends
// the event.
type eventLines struct {
	// name is the beginning of the line up to the colon, as far as it can still be "data".
	name []byte
	// field says where in the line we are.
	field eventField
	// cr says that the last byte was a CR, whose LF is no line of its own.
	cr bool
}

type eventField uint8

const (
	lineStart eventField = iota // in the field's name
	afterData                   // just after "data:"
	inData
	ignored // in a line that is no data
)

const dataField = "data"

func (l *eventLines) write(b []byte, to *usageScan) {
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

// line is the end of a line.
func (l *eventLines) line(to *usageScan) {
	switch {
	case l.field == lineStart && len(l.name) == 0:
		to.restart()
	case l.field == inData || l.field == afterData:
		to.write([]byte{'\n'})
	}
	l.name, l.field = l.name[:0], lineStart
}
