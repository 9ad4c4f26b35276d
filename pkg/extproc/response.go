package extproc

import (
	"strconv"
	"strings"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/extproc/usage"
)

// responseHead is what matters of response headers.
type responseHead struct {
	status   int  // 0: none
	events   bool // server-sent events
	encoded  bool // the body cannot be read
	trailers bool // some are announced, or usual
	ours     bool // the answer is our own rejection
}

// headOf reads response headers. It runs before the answer goes on, so it is short.
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

// readResponse takes in the status and the kind of the answer.
func (st *stream) readResponse(h *extprocv3.HttpHeaders) {
	head := headOf(h)
	st.status, st.eventStream = head.status, head.events
	if st.tie == nil || st.tie.answered.Load() == 0 { // else the gate has counted it
		m := st.server.metrics
		m.headersSeconds.Observe(time.Since(st.begun).Seconds())
		m.upstream(st.status)
	}
	if st.cfg.ReadUsage && !head.encoded && st.modes.echoesResponse() {
		st.usage = usage.NewReader(st.eventStream)
	}
}

// early is what comes of an answer before its first token, in FULL_DUPLEX_STREAMED, where it lies here.
type early struct {
	tokenWatch
	bytes []byte
}

// maxEarlyBytes is the most of it that is kept for one request.
const maxEarlyBytes = 16 << 10

// keep takes in a part, unless that were too much.
func (e *early) keep(b []byte) bool {
	if len(e.bytes)+len(b) > maxEarlyBytes {
		return false
	}
	e.bytes = append(e.bytes, b...)
	return true
}

// passEarly lets the headers that were held go on, and what came before the first token.
func (st *stream) passEarly() error {
	if err := st.firstByte(st.answerHeaders()); err != nil {
		return err
	}
	bytes := st.early.bytes
	st.early = nil
	if len(bytes) == 0 {
		return nil
	}
	return st.echoResponse(bytes, false)
}

// echoResponse sends a part of the response body on, and reads along.
func (st *stream) echoResponse(b []byte, end bool) error {
	if st.usage != nil {
		st.usage.Write(b)
	}
	for len(b) > maxChunk {
		if err := st.send(responseChunk(b[:maxChunk], false)); err != nil {
			return err
		}
		b = b[maxChunk:]
	}
	return st.send(responseChunk(b, end))
}

// reportUsage counts the tokens that the answer reported.
func (st *stream) reportUsage() {
	if st.usage == nil {
		return
	}
	if u, ok := st.usage.Tokens(); ok {
		m := st.server.metrics
		m.usageTokens.WithLabelValues("input").Add(float64(u.Input))
		m.usageTokens.WithLabelValues("output").Add(float64(u.Output))
		m.usageTokens.WithLabelValues("cached").Add(float64(u.Cached))
	}
}
