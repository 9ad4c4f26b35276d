package extproc

import (
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/request"
)

// collectBody collects a part of the body, and offers the request with the last one.
func collectBody(st *mainStream, m *extprocv3.ProcessingRequest) error {
	b := m.GetRequestBody()
	// The other modes send one message, and no more before its reply.
	last := st.modes.request != request.FullDuplex || ends(b)
	if err := st.body.add(b.GetBody(), last); err != nil {
		return st.refuse(err)
	}
	if !last {
		return nil
	}
	// In BUFFERED the one message is the whole body, even if trailers follow.
	st.body.whole = st.modes.request != request.Partial || b.GetEndOfStream()
	return st.offerWithBody()
}

// collectTrailers offers the request, since trailers end its body.
func collectTrailers(st *mainStream, _ *extprocv3.ProcessingRequest) error {
	if err := st.body.add(nil, true); err != nil {
		return st.refuse(err)
	}
	st.body.whole, st.body.trailers = true, true
	return st.offerWithBody()
}

// offerWithBody reads the collected body and offers the request.
func (st *mainStream) offerWithBody() error {
	st.state.enter(deciding)
	if err := st.request.ReadBody(st.body.bytes, st.body.whole); err != nil {
		return st.refuse(err)
	}
	if len(st.request.Edits) == 0 && st.modes.request != request.FullDuplex || !st.body.whole {
		st.body.drop() // Envoy holds it
	}
	if st.request.PartNotRewritten {
		st.server.once.warn(st.server.log, "part", "Envoy shows only a part of a body (BUFFERED_PARTIAL), so the "+
			"model in it is not replaced by its target: use BUFFERED", "model", st.request.Model, "target", st.request.Target)
	}
	return st.offer()
}

// expel rejects the request because of its body, unless the handler no longer awaits it: the error of bodyMemory reaches it
// there.
func (st *mainStream) expel(err error) {
	if !st.body.turn.take() {
		return
	}
	defer st.body.turn.give()
	defer func() {
		if p := recover(); p != nil {
			st.reportPanic(p, "expelling a request", st.state.String())
		}
	}()
	st.body.bytes = nil
	_ = st.refuse(err) // an error means that the stream has ended
}
