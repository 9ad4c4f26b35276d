package usage

// Tokens is a response's reported usage, in tokens.
type Tokens struct {
	// Input is the whole prompt.
	Input, Output int64
	// Cached is the cached part of Input; 0 if the engine does not report it.
	Cached int64
}

// Reader finds the usage in one response. If a number is reported several times, the last one counts.
type Reader struct {
	events bool
	lines  eventLines
	scan   scan
}

// NewReader returns a Reader of server-sent events, or of one JSON document.
func NewReader(events bool) *Reader { return &Reader{events: events} }

// Write reads the next part of the response.
func (r *Reader) Write(b []byte) {
	if !r.events {
		r.scan.write(b)
		return
	}
	r.lines.write(b, &r.scan)
}

// Events returns the number of server-sent events with data so far. With one answer that is about the number of tokens,
// and not more unless the engine sends events without tokens.
func (r *Reader) Events() int64 { return r.lines.events }

// Ended reports whether the response's content is complete: the JSON document, or the stream's last event. Some clients
// leave then, before the connection ends.
func (r *Reader) Ended() bool {
	if r.events {
		return r.lines.last || r.scan.last
	}
	return r.scan.whole
}

// Counts returns the numbers found so far.
func (r *Reader) Counts() Counts { return r.scan.counts }
