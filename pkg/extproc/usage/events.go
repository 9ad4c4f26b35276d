package usage

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
	lf := -1 // the next LF, unless it is behind i
	for i := 0; i < len(b); {
		c := b[i]
		if l.cr {
			l.cr = false
			if c == '\n' {
				i++
				continue
			}
		}
		if c == '\r' || c == '\n' {
			l.cr = c == '\r'
			l.line(to)
			i++
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
			i++
		case afterData:
			if c == ' ' {
				i++
			}
			l.field = inData
		case inData, ignored:
			if lf < i {
				lf = index(b, '\n', i)
			}
			end := i + index(b[i:lf], '\r', 0)
			if l.field == inData {
				to.write(b[i:end])
			}
			i = end
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
