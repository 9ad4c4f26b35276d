package extproc

import (
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// readResponse reads the response headers and releases them to the client. If the main stream also sees the response
// body (FULL_DUPLEX_STREAMED), it is its own first-token gate and holds the headers until the first token.
func readResponse(st *mainStream, m *extprocv3.ProcessingRequest) error {
	h, r := m.GetResponseHeaders(), &st.response
	head := headOf(h)
	st.grant.prefilled()
	r.status, r.events, r.again = head.status, head.events, head.again
	if _, came := st.link.status(); !came { // otherwise the gate has counted it
		m := st.server.metrics
		m.headersSeconds.Observe(time.Since(st.begun).Seconds())
		m.countResponse(head.status)
	}
	if st.readsUsage() && !head.encoded {
		r.reading.ReadBody(head.events)
	}
	r.beginStrip(head)
	st.choosesHeaders(h.GetHeaders().GetHeaders())
	r.elsewhere = st.server.elsewhere.move(m.GetMetadataContext(), st.grant.picked, st.grant.lease, head.status)
	if st.modes.echoesResponse && !h.GetEndOfStream() {
		st.state.enter(holding)
		r.early = &early{tokenWatch: tokenWatch{
			events: head.events, responses: st.request.IsResponses(),
		}}
		return nil
	}
	return st.releaseHeaders()
}

// choosesHeaders chooses the headers to add to the response, if there is room for them.
func (st *mainStream) choosesHeaders(own []*corev3.HeaderValue) {
	r, more := &st.response, 0
	if st.grant.quota != nil {
		more = len(quotaHeaders)
		r.tellsQuota = !crowded(own, more)
	}
	if st.grant.lease != nil && st.wantsQueueState() {
		r.tells = !crowded(own, more+2)
		more += 2
	}
	if st.record.tells() {
		r.tellsDecision = !crowded(own, more+1) && bytesOf(own) <= roomyHeaderBytes-mostDecision
	}
}

// holdBody looks for the first token in a part of the response body, and keeps the part if it comes before it.
func holdBody(st *mainStream, m *extprocv3.ProcessingRequest) error {
	b, r := m.GetResponseBody(), &st.response
	token := r.early.token(b.GetBody())
	if !token && !ends(b) && r.early.keep(b.GetBody()) {
		return nil
	}
	if token {
		st.server.firstToken(st.grant.lease, r.status/100 == 2, st.begun)
	}
	if err := st.releaseEarly(); err != nil {
		return err
	}
	return ackResponseBody(st, m)
}

// releaseTrailers releases the held headers, since the response ends without a token.
func releaseTrailers(st *mainStream, m *extprocv3.ProcessingRequest) error {
	if err := st.releaseEarly(); err != nil {
		return err
	}
	return ackResponseTrailers(st, m)
}

// releaseEarly releases the held headers, and the parts before the first token.
func (st *mainStream) releaseEarly() error {
	if err := st.releaseHeaders(); err != nil {
		return err
	}
	bytes := st.response.early.bytes
	st.response.early = nil
	if len(bytes) == 0 {
		return nil
	}
	return st.echoResponse(bytes, false)
}
