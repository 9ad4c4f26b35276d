package usage

// eventLines splits server-sent events into lines and passes on each event's data as one document: its data lines,
// joined by line ends. Lines end in CR, LF or CRLF. One space may follow "data:". An empty line ends the event.
type eventLines struct {
	// name is the line's field name so far, while it can still be "data".
	name []byte
	// field is the part of the line of the next byte.
	field eventField
	// cr is set if the last byte was a CR: an LF then belongs to the same line end.
	cr bool
	// data is set if the event has data. events counts the events with data.
	data   bool
	events int64
	// matched is the number of bytes of an event's data that equal lastData so far, or -1 after a difference. last is
	// set after that event.
	matched int
	last    bool
}

type eventField uint8

const (
	lineStart eventField = iota // in the field name
	afterData                   // just after "data:"
	inData
	ignored // in a line without data
)

const dataField = "data"

// lastData is the data of the last event of OpenAI's streams, except for responses.
const lastData = "[DONE]"

func (l *eventLines) write(b []byte, to *scan) {
	var lines lineEnds
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
			end := lines.next(b, i)
			if l.field == inData {
				to.write(b[i:end])
				l.match(b[i:end])
			}
			i = end
		}
	}
}

// match compares the next bytes of an event's data with lastData.
func (l *eventLines) match(b []byte) {
	if l.matched < 0 || len(b) > len(lastData)-l.matched || string(b) != lastData[l.matched:l.matched+len(b)] {
		l.matched = -1
		return
	}
	l.matched += len(b)
}

// line ends a line.
func (l *eventLines) line(to *scan) {
	switch {
	case l.field == lineStart && len(l.name) == 0:
		to.restart()
		if l.data {
			l.data = false
			l.events++
			l.last = l.last || l.matched == len(lastData)
			l.matched = 0
		}
	case l.field == inData || l.field == afterData:
		to.write([]byte{'\n'})
		l.data = true
		if l.matched != len(lastData) {
			l.matched = -1
		}
	}
	l.name, l.field = l.name[:0], lineStart
}

// lineEnds finds the ends of lines in one part, reading each byte at most twice.
type lineEnds struct {
	lf int // the last LF that was found
}

// next returns the index of the first CR or LF of b from i on, or its length.
func (l *lineEnds) next(b []byte, i int) int {
	if l.lf <= i {
		l.lf = index(b, '\n', i)
	}
	return i + index(b[i:l.lf], '\r', 0)
}
