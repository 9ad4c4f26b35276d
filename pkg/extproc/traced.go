package extproc

import "time"

// Tracer makes the spans of requests (package tracing).
type Tracer interface {
	// Ended takes an ended request. It must not block or keep anything of t.
	Ended(t *Traced)
}

// Parent is the trace context of a request, in the form of W3C's Trace Context headers. Envoy or a client wrote it; it
// is not checked.
type Parent struct{ Traceparent, Tracestate string }

// Traced is a traced request that has ended.
type Traced struct {
	Ended
	Parent Parent
	// Begun is the begin of its stream, and Offered the time of its offer to the controller; zero if it was refused
	// before.
	Begun, Offered time.Time
	// Sent is when its destination was sent, and Rejected when its rejection was sent; zero if not.
	Sent, Rejected time.Time
	// Rank is the rank of its tier, if known.
	Rank int
	// Fallbacks is the number of endpoints that Envoy may try after the picked one.
	Fallbacks int
	// Limit is the name of the limit that rejected it, or "".
	Limit string
}
