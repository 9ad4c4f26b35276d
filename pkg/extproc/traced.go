package extproc

import (
	"strings"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

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

// The keys of a Parent in the metadata of the stream and in request headers.
const (
	traceparentKey = "traceparent"
	tracestateKey  = "tracestate"
)

// The longest kept parts of a Parent, in bytes. A traceparent has 55 bytes; a later version may have more. A longer
// tracestate is left out, which the standard permits above 512 bytes.
const (
	mostTraceparent = 128
	mostTracestate  = 512
)

// trace is the part of a request for its spans only.
type trace struct {
	parent            Parent
	offered, rejected time.Time
}

// parentInHeaders returns the parent in request headers, the zero value if there is none.
func parentInHeaders(h *extprocv3.HttpHeaders) Parent {
	var parents, states []string
	for _, hv := range h.GetHeaders().GetHeaders() {
		switch hv.GetKey() {
		case traceparentKey:
			parents = append(parents, headerValue(hv))
		case tracestateKey:
			states = append(states, headerValue(hv))
		}
	}
	return parentOf(parents, states)
}

// parentOf returns a copy of the parent, or the zero value unless there is exactly one traceparent of a valid length.
func parentOf(traceparents, tracestates []string) (p Parent) {
	if len(traceparents) != 1 || len(traceparents[0]) > mostTraceparent {
		return p
	}
	p.Traceparent = strings.Clone(traceparents[0])
	if states := strings.Join(tracestates, ","); len(states) <= mostTracestate {
		p.Tracestate = strings.Clone(states)
	}
	return p
}
