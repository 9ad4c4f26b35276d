package extproc

import (
	"strings"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/extproc/body"
)

// answerHeadersEarly lets Envoy go on to the body, which is held instead of the headers. What must not reach the
// upstream is removed here already.
func (st *stream) answerHeadersEarly() error {
	st.headersAnswered = true
	if st.removals() == 0 && len(st.headers.own) == 0 {
		return st.send(emptyRequestHeaders)
	}
	return st.send(st.requestAnswer(answerKey{phase: headersPhase, remove: st.removals()}))
}

// removals has a bit for each control header that the request came with.
func (st *stream) removals() uint64 { return st.headers.present & st.cfg.names.control }

// destination is the ordered list of endpoints that the request may go to; "" when it was not placed.
func (st *stream) destination() string {
	if st.lease == nil {
		return ""
	}
	address, fallbacks := st.placement.Chosen()
	st.picked = address
	if address == "" || len(fallbacks) == 0 {
		return address
	}
	return address + "," + strings.Join(fallbacks, ",")
}

// answerRequest tells Envoy where a granted request goes, in the phase that it was held in.
func (st *stream) answerRequest() error {
	k := answerKey{destination: st.destination()}
	if st.headersAnswered {
		k.phase = bodyPhase
		if st.rewrites() {
			return st.answerRewritten(k)
		}
		return st.send(st.tied(st.requestAnswer(k)))
	}
	k.remove = st.removals()
	if k.destination != "" {
		k.remove &^= 1 << slotDestination // it is overwritten
	}
	if st.modes.request == modeFullDuplex {
		return st.answerFullDuplex(k)
	}
	st.skipsHeaders = st.needsNoHeaders()
	if st.skipsHeaders || !st.headers.end && st.modes.canSkipBody() {
		k.noBody, k.noHeaders, k.responseBody = true, st.skipsHeaders, st.modes.response
	}
	return st.send(st.tied(st.requestAnswer(k)))
}

// needsNoHeaders says that the response headers need not come to this stream: the request can never be preempted, and
// its status comes by the gate. It saves a message. Only where the mode can be overridden: in the answer to the request
// headers.
func (st *stream) needsNoHeaders() bool {
	return st.tie != nil && st.preempted == nil && st.server.presence.certain() && !st.wantsQueueState()
}

// requestAnswer is the answer for k, with the request's own headers removed.
func (st *stream) requestAnswer(k answerKey) *extprocv3.ProcessingResponse {
	if len(st.headers.own) == 0 || k.phase != headersPhase {
		return st.cfg.answer(k)
	}
	return st.cfg.newAnswer(k, &extprocv3.CommonResponse{HeaderMutation: st.mutation(k)})
}

// mutation is the mutation for k and the request's own headers. It is not shared.
func (st *stream) mutation(k answerKey) *extprocv3.HeaderMutation {
	m := st.cfg.mutation(k)
	if k.phase != headersPhase || len(st.headers.own) == 0 {
		return m
	}
	if m == nil {
		m = &extprocv3.HeaderMutation{}
	}
	m.RemoveHeaders = append(m.RemoveHeaders, st.headers.own...)
	return m
}

// answerRewritten answers the body with the model's name replaced. It is whole: in BUFFERED_PARTIAL a part is not rewritten.
func (st *stream) answerRewritten(k answerKey) error {
	b := &st.body
	replaced := body.Rewrite(b.bytes, &b.fields, st.target)
	length := int64(len(replaced))
	if st.modes.request == modePartial && st.headers.contentLength() < 0 {
		length = -1
	}
	common := &extprocv3.CommonResponse{HeaderMutation: st.mutation(k)}
	replaceBody(common, replaced, length)
	err := st.send(st.tied(st.cfg.newAnswer(k, common)))
	st.dropBody()
	return err
}

// answerFullDuplex answers the headers, and sends back the whole body if it was collected, in chunks.
func (st *stream) answerFullDuplex(k answerKey) error {
	b := &st.body
	rewritten := st.rewrites()
	if rewritten && st.headers.present>>slotContentLength&1 != 0 {
		// Envoy sends such a body chunked; a length that a client announced must not go with another body.
		k.remove |= 1 << slotContentLength
	}
	if err := st.send(st.tied(st.requestAnswer(k))); err != nil || !b.seen {
		if err == nil && b.trailers {
			err = st.send(emptyRequestTrailers)
		}
		return err
	}
	bytes := b.bytes
	if rewritten {
		bytes = body.Rewrite(bytes, &b.fields, st.target)
	}
	err := st.echoRequest(bytes, !b.trailers)
	st.dropBody()
	if err == nil && b.trailers {
		err = st.send(emptyRequestTrailers)
	}
	return err
}

// echoRequest sends a part of the request body on.
func (st *stream) echoRequest(b []byte, end bool) error {
	for len(b) > maxChunk {
		if err := st.send(requestChunk(b[:maxChunk], false)); err != nil {
			return err
		}
		b = b[maxChunk:]
	}
	return st.send(requestChunk(b, end))
}
