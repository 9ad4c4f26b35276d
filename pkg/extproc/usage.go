package extproc

// Usage is what an answer says it cost, in tokens.
type Usage struct {
	Input, Output int64
	// Cached is the part of Input that came from the engine's cache; 0 when it does not say.
	Cached int64
}

// UsageReader finds the usage in an answer that passes by in parts.
type UsageReader struct{}

// NewUsageReader reads server-sent events, or else one JSON document.
func NewUsageReader(eventStream bool) *UsageReader { return &UsageReader{} }

// Write takes in the next part.
func (u *UsageReader) Write(b []byte) {}

// Usage is what was found; ok is false when there was none.
func (u *UsageReader) Usage() (usage Usage, ok bool) { return Usage{}, false }
