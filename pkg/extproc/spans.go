package extproc

import (
	"strings"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/metadata"
)

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

// trace is the part of a request for its spans only. Its methods do nothing for a nil trace.
type trace struct {
	parent            Parent
	offered, rejected time.Time
}

// newTrace returns the trace of a request, or nil without a tracer. Envoy's span is in the metadata of the stream. The
// request's headers have the client's span, since Envoy writes its own there later.
func (c *connection) newTrace(h *extprocv3.HttpHeaders) *trace {
	if c.server.tracer == nil {
		return nil
	}
	md, _ := metadata.FromIncomingContext(c.wire.Context())
	t := &trace{parent: parentOf(md[traceparentKey], md[tracestateKey])}
	if t.parent.Traceparent == "" {
		t.parent = parentInHeaders(h)
	}
	return t
}

// offer notes that the request is offered now.
func (t *trace) offer() {
	if t != nil {
		t.offered = time.Now()
	}
}

// reject notes that the request is rejected now.
func (t *trace) reject() {
	if t != nil {
		t.rejected = time.Now()
	}
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
