package metering

import "github.com/weir-epp/weir/pkg/usage"

// Way is the source of an answer's usage.
type Way string

// The ways.
const (
	Trailers Way = "trailers" // read by Envoy, and sent in trailers
	Body     Way = "body"     // read by Weir in the response body
)

// Reading has the usage of one response so far. The zero value has none, and reads no body.
type Reading struct {
	reader *usage.Reader // nil if the body is not read
	told   usage.Tokens  // by Envoy
	isTold bool
	ended  bool
}

// ReadBody begins to read the usage in the body: of server-sent events, or of one JSON document.
func (r *Reading) ReadBody(events bool) { r.reader = usage.NewReader(events) }

// Write reads a part of the body, the last one if end is set, and returns the number of its events with data so far.
func (r *Reading) Write(b []byte, end bool) (events int64) {
	r.ended = r.ended || end
	if r.reader == nil {
		return 0
	}
	r.reader.Write(b)
	r.ended = r.ended || r.reader.Ended()
	return r.reader.Events()
}

// End notes that the response was seen to its end.
func (r *Reading) End() { r.ended = true }

// Tell notes the whole usage, as Envoy has read it.
func (r *Reading) Tell(t usage.Tokens) { r.told, r.isTold = t, true }

// Report is the usage reported in a response.
type Report struct {
	usage.Tokens
	// Known is set if the report is the whole usage, and Whole if the response was seen to its end.
	Known, Whole bool
	// By is the source of the usage, if known.
	By Way
}

// Report returns the usage so far. With promptOnly the answer has no output. Usage from Envoy takes precedence over
// usage read here.
func (r *Reading) Report(promptOnly bool) Report {
	p := Report{Whole: r.ended, By: Body}
	switch {
	case r.isTold:
		p.Tokens, p.Known, p.By = r.told, true, Trailers
	case r.reader != nil:
		c := r.reader.Counts()
		p.Tokens, p.Known = c.Tokens(promptOnly)
	}
	return p
}
