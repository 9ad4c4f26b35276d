package extproc

import (
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// mainStream is the machine of one HTTP request (reactions.go). It belongs to its handler's goroutine, except while it
// awaits the rest of a body (turn.go).
type mainStream struct {
	connection
	state state
	modes modes
	// request is first read from its headers (readrequest.go) and its body (collectbody.go).
	request request.Request
	body    requestBody
	// grant is the verdict of a granted request (admission.go); rejection is nil unless it was rejected (refuse.go).
	grant     grant
	rejection *flowcontrol.Rejection
	// link connects the request to its first-token gate; nil if it has none.
	link *link
	// response is the state of the watched response (watchresponse.go).
	response response
	line     requestLine
	// record is the decision record, or nil (record.go).
	record *record
	// trace has the times for the request's spans, or is nil (spans.go).
	trace *trace
}

// newMainStream returns the machine of a stream that begins with the given message.
func newMainStream(c connection, first *extprocv3.ProcessingRequest) *mainStream {
	s := c.server
	st := &mainStream{connection: c, state: s.firstState(first), body: requestBody{memory: &s.memory, limits: &c.cfg.Limits}}
	var known bool
	st.modes, known = modesOf(first, c.cfg.AssumeFullDuplex)
	s.metrics.streamsByMode[st.modes.request].Inc()
	if !known && !c.cfg.AssumeFullDuplex {
		s.once.warn(s.log, "protocol_config", "Envoy does not tell its body modes (too old a version, or "+
			"GKE's, which has assumeFullDuplex); request bodies are not read")
	}
	return st
}

// tierName returns the name of the request's tier, or "" while unknown.
func (st *mainStream) tierName() string {
	if st.grant.placement == nil {
		return ""
	}
	return st.cfg.Tiers[st.request.Tier].Name
}

// readsUsage reports whether the usage is read from this response's body, if that is readable.
func (st *mainStream) readsUsage() bool { return st.cfg.readsBody && st.modes.showsResponse }

// wantsQueueState reports whether the client has requested the queue's state and may get it.
func (st *mainStream) wantsQueueState() bool {
	return st.cfg.Responses.QueueState && st.request.QueueState
}

// lastAnswered returns the time of Weir's last reply, except to parts of bodies: to the response headers, or to the
// request.
func (st *mainStream) lastAnswered() time.Time {
	if !st.response.released.IsZero() {
		return st.response.released
	}
	return st.grant.sent
}
