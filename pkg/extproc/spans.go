package extproc

import (
	"strings"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/metadata"
)

// beginTrace begins the trace of a request, if there is a tracer. Envoy's span is in the metadata of the stream. The
// request's headers have the client's span, since Envoy writes its own there later.
func (st *mainStream) beginTrace(h *extprocv3.HttpHeaders) {
	if st.server.tracer == nil {
		return
	}
	st.trace = &trace{parent: st.parentInMetadata()}
	if st.trace.parent.Traceparent == "" {
		st.trace.parent = parentInHeaders(h)
	}
}

// parentInMetadata returns the parent in the metadata of the stream, the zero value if there is none.
func (st *mainStream) parentInMetadata() Parent {
	md, _ := metadata.FromIncomingContext(st.wire.Context())
	return parentOf(md[traceparentKey], md[tracestateKey])
}

// traceOffer notes that the request is offered now.
func (st *mainStream) traceOffer() {
	if st.trace != nil {
		st.trace.offered = time.Now()
	}
}

// traceRejection notes that the request is rejected now.
func (st *mainStream) traceRejection() {
	if st.trace != nil {
		st.trace.rejected = time.Now()
	}
}

// traced returns the request for its spans. It is called after settle.
func (st *mainStream) traced(e *Ended) Traced {
	t := Traced{
		Ended: *e, Parent: st.trace.parent, Begun: st.begun, Offered: st.trace.offered, Sent: st.grant.sent, Rejected: st.trace.rejected,
		Rank: st.request.Tier, Fallbacks: strings.Count(st.grant.destination, ","),
	}
	if st.rejection != nil && st.rejection.Limit != nil {
		t.Limit = st.rejection.Limit.Name
	}
	return t
}
