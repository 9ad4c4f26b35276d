package extproc

// Usage is what an answer says it cost, in tokens.
type Usage struct {
	Input, Output int64
	// Cached is the part of Input that came from the engine's cache; 0 when it does not say.
	Cached int64
}

// UsageReader finds the usage in an answer that passes by in parts, cut anywhere: in the JSON document, or in the
// server-sent events, of chat completions, completions, messages and responses. Where several parts report it, each
// number is the last one reported. It keeps nothing of the answer.
type UsageReader struct {
	events bool
	lines  eventLines
	scan   usageScan
}

// NewUsageReader reads server-sent events, or else one JSON document.
func NewUsageReader(eventStream bool) *UsageReader { return &UsageReader{events: eventStream} }

// Write takes in the next part.
func (u *UsageReader) Write(b []byte) {
	if !u.events {
		u.scan.write(b)
		return
	}
	u.lines.write(b, &u.scan)
}

// Usage is what was found so far; ok is false when nothing was.
func (u *UsageReader) Usage() (usage Usage, ok bool) { return u.scan.usage, u.scan.found }
