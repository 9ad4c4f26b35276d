package extproc

import (
	"strconv"
	"strings"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// readResponse reads the response headers and lets them go on to the client. Where the main stream sees the response
// body as well (FULL_DUPLEX_STREAMED), it is its own first-token gate and holds the headers until the first token.
func readResponse(st *mainStream, m *extprocv3.ProcessingRequest) error {
	h := m.GetResponseHeaders()
	head := headOf(h)
	st.completion.Status, st.events = head.status, head.events
	if st.link == nil || st.link.answered.Load() == 0 { // otherwise the gate has counted it
		m := st.server.metrics
		m.headersSeconds.Observe(time.Since(st.begun).Seconds())
		m.countResponse(head.status)
	}
	if st.readsUsage() && !head.encoded {
		st.reading.ReadBody(head.events)
	}
	st.beginStrip(head)
	st.crowded = st.wantsQueueState() && crowded(h.GetHeaders().GetHeaders())
	st.elsewhere = st.server.moveToServing(m.GetMetadataContext(), st.picked, st.lease)
	if st.modes.echoesResponse() && !h.GetEndOfStream() {
		st.enter(holding)
		st.early = &early{tokenWatch: tokenWatch{
			events: head.events, responses: st.request.IsResponses(),
		}}
		return nil
	}
	return st.releaseHeaders()
}

// holdBody looks for the first token in a part of the response body, and keeps the part if it comes before it.
func holdBody(st *mainStream, m *extprocv3.ProcessingRequest) error {
	b := m.GetResponseBody()
	token := st.early.token(b.GetBody())
	if !token && !ends(b) && st.early.keep(b.GetBody()) {
		return nil
	}
	if token && st.completion.Status/100 == 2 {
		st.server.metrics.firstToken.Observe(time.Since(st.begun).Seconds())
	}
	if err := st.releaseEarly(); err != nil {
		return err
	}
	return ackResponseBody(st, m)
}

// releaseTrailers lets the held headers go on, since the response ends without a token.
func releaseTrailers(st *mainStream, m *extprocv3.ProcessingRequest) error {
	if err := st.releaseEarly(); err != nil {
		return err
	}
	return ackResponseTrailers(st, m)
}

// beginBody deals with a response body without headers before it (response_header_mode: SKIP).
func beginBody(st *mainStream, m *extprocv3.ProcessingRequest) error {
	if err := st.firstByte(); err != nil {
		return err
	}
	return ackResponseBody(st, m)
}

// beginTrailers deals with response trailers without headers before them (response_header_mode: SKIP).
func beginTrailers(st *mainStream, m *extprocv3.ProcessingRequest) error {
	if err := st.firstByte(); err != nil {
		return err
	}
	return ackResponseTrailers(st, m)
}

// firstByte marks the first byte of the response: from here on it is never cut. If the request was preempted just before,
// firstByte rejects it and returns an error.
func (st *mainStream) firstByte() error {
	if st.lease != nil {
		if err := st.lease.OnFirstByte(); err != nil {
			return st.rejectPreempted(err)
		}
	}
	st.preempted = nil
	st.enter(responding)
	return nil
}

// releaseHeaders lets the response headers go on to the client, unless the request was preempted.
func (st *mainStream) releaseHeaders() error {
	if err := st.firstByte(); err != nil {
		return err
	}
	err := st.send(st.responseHeadersReply())
	st.lastAnswered = time.Now()
	return err
}

// early is what came of a response before its first token, while the headers are held.
type early struct {
	tokenWatch
	bytes []byte
}

// maxEarlyBytes is how many bytes are kept of one response.
const maxEarlyBytes = 16 << 10

// keep keeps the next part and reports whether there was room for it.
func (e *early) keep(b []byte) bool {
	if len(e.bytes)+len(b) > maxEarlyBytes {
		return false
	}
	e.bytes = append(e.bytes, b...)
	return true
}

// releaseEarly lets the held headers go on, and what came before the first token.
func (st *mainStream) releaseEarly() error {
	if err := st.releaseHeaders(); err != nil {
		return err
	}
	bytes := st.early.bytes
	st.early = nil
	if len(bytes) == 0 {
		return nil
	}
	return st.echoResponse(bytes, false)
}

// countUsage counts the tokens that the response reported. A response that was cut short has reported only a part.
func (st *mainStream) countUsage() {
	if r := st.reading.Report(st.request.PromptOnly); r.Known && r.Whole {
		st.server.metrics.countUsage(r.Tokens)
	}
}

// responseHead is what the main stream and the gate need to know of response headers.
type responseHead struct {
	status   int  // 0 if there is none
	events   bool // the body is server-sent events
	encoded  bool // the body cannot be read
	trailers bool // trailers are announced, or usual
	ours     bool // the response is a rejection of Weir's
}

// headOf reads response headers. The response waits meanwhile, so it reads no more than it must.
func headOf(h *extprocv3.HttpHeaders) (r responseHead) {
	for _, hv := range h.GetHeaders().GetHeaders() {
		switch hv.GetKey() {
		case ":status":
			r.status, _ = strconv.Atoi(headerValue(hv))
		case "content-type":
			kind := strings.ToLower(headerValue(hv))
			r.events = strings.HasPrefix(kind, "text/event-stream")
			r.trailers = r.trailers || strings.HasPrefix(kind, "application/grpc")
		case "content-encoding":
			r.encoded = headerValue(hv) != "identity"
		case "trailer":
			r.trailers = true
		case reasonHeader:
			r.ours = true
		}
	}
	return r
}
