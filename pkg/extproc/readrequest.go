package extproc

import (
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// readRequest reads the request headers. It offers the request if they say enough, and awaits the body otherwise.
func readRequest(st *mainStream, m *extprocv3.ProcessingRequest) error {
	st.enter(deciding)
	needsBody, err := st.readHeaders(m)
	if err != nil {
		return st.refuse(err)
	}
	if !needsBody {
		return st.offer()
	}
	st.awaitBody()
	if st.modes.request == request.FullDuplex {
		return nil // headers and body are answered together
	}
	if err := st.answerHeadersEarly(); err != nil {
		return err
	}
	return st.extendForBody()
}

// readHeaders reads what the request headers say. The request is to be refused with the error.
func (st *mainStream) readHeaders(m *extprocv3.ProcessingRequest) (needsBody bool, err error) {
	h, metadata := m.GetRequestHeaders(), m.GetMetadataContext()
	st.beginLine(h)
	var headers request.Headers
	addHeaders(&headers, st.cfg.rules, h.GetHeaders().GetHeaders())
	needsBody, err = st.request.ReadHeaders(st.cfg.rules, &headers, &request.Input{
		End:       h.GetEndOfStream(),
		Mode:      st.modes.request,
		AskUsage:  st.cfg.IncludeUsage && st.modes.showsResponse(),
		Context:   requestContext{m},
		Subset:    subsetOf(metadata),
		EnvoyRead: envoyReadOf(metadata),
		Now:       st.begun,
		Models:    st.server.picker,
		Draw:      &st.server.draw,
	})
	st.warnOfRequest()
	return needsBody, err
}

// collectBody collects a part of the body, and offers the request with the last one.
func collectBody(st *mainStream, m *extprocv3.ProcessingRequest) error {
	b := m.GetRequestBody()
	// The other modes send one message, and nothing more before it is answered.
	last := st.modes.request != request.FullDuplex || ends(b)
	if err := st.collect(b.GetBody(), last); err != nil {
		return st.refuse(err)
	}
	if !last {
		return nil
	}
	// In BUFFERED the one message is the whole body, even if trailers follow.
	st.body.whole = st.modes.request != request.Partial || b.GetEndOfStream()
	return st.offerWithBody()
}

// collectTrailers offers the request, whose body the trailers end.
func collectTrailers(st *mainStream, _ *extprocv3.ProcessingRequest) error {
	if err := st.collect(nil, true); err != nil {
		return st.refuse(err)
	}
	st.body.whole, st.body.trailers = true, true
	return st.offerWithBody()
}

// abandon gives up a request whose body was still arriving when Envoy responded to the client itself: with 413 for a body
// over the buffer's limit, with 408, or with anything else if the client is gone.
func abandon(st *mainStream, m *extprocv3.ProcessingRequest) error {
	st.turn.end()
	st.dropBody()
	err := st.goneError()
	if headOf(m.GetResponseHeaders()).status == 413 {
		err = &fieldError{sentinel: flowcontrol.ErrTooLarge, message: "The request body is larger than Envoy's buffer limit."}
	}
	st.noteRejection(st.refusal(err))
	st.enter(abandoned)
	switch kindOf(m) {
	case responseBodyKind:
		return ackResponseBody(st, m)
	case responseTrailersKind:
		return ackResponseTrailers(st, m)
	default:
		return ackResponseHeaders(st, m)
	}
}

// forward passes on a request that an earlier filter has placed, without any further message if Envoy allows that.
func forward(st *mainStream, _ *extprocv3.ProcessingRequest) error {
	st.enter(forwarded)
	if st.modes.request == request.FullDuplex || st.modes.echoesResponse() {
		return st.send(emptyRequestHeaders) // these modes cannot be overridden
	}
	return st.send(forwardReply)
}

// offerWithBody reads the collected body and offers the request.
func (st *mainStream) offerWithBody() error {
	st.enter(deciding)
	if err := st.request.ReadBody(st.body.bytes, st.body.whole); err != nil {
		return st.refuse(err)
	}
	if len(st.request.Edits) == 0 && st.modes.request != request.FullDuplex || !st.body.whole {
		st.dropBody() // Envoy holds it
	}
	if st.request.PartNotRewritten {
		st.server.once.warn(st.server.log, "part", "a body is longer than what Envoy shows of it (BUFFERED_PARTIAL), so the "+
			"model in it is not replaced by its target: use BUFFERED", "model", st.request.Model, "target", st.request.Target)
	}
	return st.offer()
}
