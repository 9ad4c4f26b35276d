package extproc

import (
	"strings"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// Tracer makes the spans of requests (package tracing).
type Tracer interface {
	// Ended tells of a request that has ended. It must not block, and keeps nothing of t.
	Ended(t *Traced)
}

// Parent is the context of the trace that a request belongs to, as in the headers of W3C's Trace Context. Envoy wrote it, or a
// client; it is not checked.
type Parent struct{ Traceparent, Tracestate string }

// Traced is a traced request that has ended.
type Traced struct {
	Ended
	Parent Parent
	// Begun is when its stream began, and Offered when the controller was asked to admit it; zero if it was refused before.
	Begun, Offered time.Time
	// Sent is when its destination was sent, and Rejected when its rejection was; zero if that did not happen.
	Sent, Rejected time.Time
	// Rank is the rank of its tier, if that is known.
	Rank int
	// Fallbacks is the number of endpoints that Envoy may try after the picked one.
	Fallbacks int
	// Limit is the name of the limit by which it was rejected, or "".
	Limit string
}

// The keys of a Parent in the metadata of the stream and in request headers.
const (
	traceparentKey = "traceparent"
	tracestateKey  = "tracestate"
)

// The longest parts of a Parent that are kept, in bytes. A traceparent has 55 of them; a later version may have more. A longer
// tracestate is left out, which is allowed from 512 bytes on.
const (
	mostTraceparent = 128
	mostTracestate  = 512
)

// trace is the part of a request that only its spans need.
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

// parentOf returns a parent of its own memory, the zero value unless there is one traceparent, of a possible length.
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
