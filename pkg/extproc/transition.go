package extproc

import (
	"math/rand/v2"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// on deals with one message in whatever state the stream is. An error ends the stream. Each function below is total:
// it has an answer in every state, and an empty one where the message makes no sense.
func (st *stream) on(m *extprocv3.ProcessingRequest) error {
	if st.state == fresh {
		st.begin(m)
	}
	switch st.state {
	case observed:
		return nil
	case atGate:
		return st.onGate(m)
	case fresh, collecting, placed, gated, responding, foreign:
	}
	switch r := m.GetRequest().(type) {
	case *extprocv3.ProcessingRequest_RequestHeaders:
		return st.onRequestHeaders(m)
	case *extprocv3.ProcessingRequest_RequestBody:
		return st.onRequestBody(r.RequestBody)
	case *extprocv3.ProcessingRequest_RequestTrailers:
		return st.onRequestTrailers()
	case *extprocv3.ProcessingRequest_ResponseHeaders:
		return st.onResponseHeaders(r.ResponseHeaders, m.GetMetadataContext())
	case *extprocv3.ProcessingRequest_ResponseBody:
		return st.onResponseBody(r.ResponseBody)
	case *extprocv3.ProcessingRequest_ResponseTrailers:
		return st.onResponseTrailers()
	default: // window updates and what later Envoys may say: they wait for no answer
		return nil
	}
}

// begin reads what only the first message says.
func (st *stream) begin(m *extprocv3.ProcessingRequest) {
	s := st.server
	if isGate(m) {
		st.state = atGate
		s.metrics.gateStreams.Inc()
		return
	}
	var known bool
	st.modes, known = modesOf(m)
	s.metrics.streamsByMode[st.modes.request].Inc()
	if !known {
		s.once.warn(s.log, "protocol_config", "Envoy does not tell its body modes (too old a version); request bodies are not read")
	}
	switch {
	case m.GetObservabilityMode():
		st.state = observed
		s.once.warn(s.log, "observability", "the filter is in observability mode: nothing is queued or picked")
	case m.GetRequestHeaders() != nil && placedBefore(m.GetMetadataContext()):
		st.state, st.placedBefore = foreign, true
		s.notePlacedBefore()
	case m.GetRequestHeaders() == nil:
		st.state = foreign
		if m.GetResponseHeaders() == nil {
			s.once.warn(s.log, "no headers", "a stream does not begin with headers: set request_header_mode: SEND")
		}
	}
}

func (st *stream) onRequestHeaders(m *extprocv3.ProcessingRequest) error {
	if st.placedBefore {
		return st.passPlacedBefore()
	}
	if st.state != fresh {
		st.unexpected("request headers")
		return st.send(emptyRequestHeaders)
	}
	st.state = collecting
	if err := st.read(m); err != nil {
		return st.refuse(err)
	}
	if !st.wantsBody {
		return st.admit()
	}
	st.awaitBody()
	if st.modes.request == modeFullDuplex {
		return nil // headers and body are answered together
	}
	return st.answerHeadersEarly()
}

func (st *stream) onRequestBody(b *extprocv3.HttpBody) error {
	if st.state == collecting {
		// The other modes send one message, which is all that comes before an answer.
		last := st.modes.request != modeFullDuplex || ends(b)
		if err := st.collect(b.GetBody(), last); err != nil {
			return st.refuse(err)
		}
		if !last {
			return nil
		}
		// BUFFERED sends one message, which is the whole body also when trailers follow.
		st.body.whole = st.modes.request != modePartial || b.GetEndOfStream()
		return st.offerBody()
	}
	if st.modes.request == modeFullDuplex {
		return st.echoRequest(b.GetBody(), ends(b))
	}
	if st.state == foreign && !st.placedBefore {
		st.unexpected("request body")
	}
	return st.send(emptyRequestBody)
}

func (st *stream) onRequestTrailers() error {
	if st.state == collecting {
		if err := st.collect(nil, true); err != nil {
			return st.refuse(err)
		}
		st.body.whole, st.body.trailers = true, true
		return st.offerBody()
	}
	if st.state == foreign && !st.placedBefore {
		st.unexpected("request trailers")
	}
	return st.send(emptyRequestTrailers)
}

// offerBody reads the collected body and offers the request.
func (st *stream) offerBody() error {
	if err := st.readBody(); err != nil {
		return st.refuse(err)
	}
	return st.admit()
}

func (st *stream) onResponseHeaders(h *extprocv3.HttpHeaders, metadata *corev3.Metadata) error {
	switch st.state {
	case collecting:
		st.endedByEnvoy(h)
		st.state = responding
		return st.send(emptyResponseHeaders)
	case placed:
		st.readResponse(h)
		st.elsewhere = st.server.served(metadata, st.picked, st.lease)
		if st.modes.echoesResponse() && !h.GetEndOfStream() {
			st.state = gated
			st.early = &early{tokenWatch: tokenWatch{
				events: st.eventStream, responses: isResponses(st.headers.values[slotPath]),
			}}
			return nil
		}
		return st.firstByte(st.answerHeaders())
	case gated, responding:
		st.unexpected("response headers")
	case fresh, foreign, observed, atGate:
	}
	return st.send(emptyResponseHeaders)
}

func (st *stream) onResponseBody(b *extprocv3.HttpBody) error {
	switch st.state {
	case gated:
		token := st.early.token(b.GetBody())
		if !token && !ends(b) && st.early.keep(b.GetBody()) {
			return nil
		}
		if token && st.status/100 == 2 {
			st.server.metrics.firstToken.Observe(time.Since(st.begun).Seconds())
		}
		if err := st.passEarly(); err != nil {
			return err
		}
	case placed: // response_header_mode SKIP
		if err := st.firstByte(nil); err != nil {
			return err
		}
	case collecting:
		st.endedByEnvoy(nil)
		st.state = responding
	case fresh, responding, foreign, observed, atGate:
	}
	if st.modes.echoesResponse() {
		return st.echoResponse(b.GetBody(), ends(b))
	}
	return st.send(emptyResponseBody)
}

func (st *stream) onResponseTrailers() error {
	switch st.state {
	case gated:
		if err := st.passEarly(); err != nil {
			return err
		}
	case placed:
		if err := st.firstByte(nil); err != nil {
			return err
		}
	case collecting:
		st.endedByEnvoy(nil)
		st.state = responding
	case fresh, responding, foreign, observed, atGate:
	}
	return st.send(emptyResponseTrailers)
}

// firstByte lets the answer through to the client with the given message (nil: another one follows), unless it was
// preempted just before. From here on it is never cut.
func (st *stream) firstByte(answer *extprocv3.ProcessingResponse) error {
	if st.lease != nil {
		if err := st.lease.OnFirstByte(); err != nil {
			return st.rejectPreempted(err)
		}
	}
	st.preempted = nil
	st.state = responding
	if answer == nil {
		return nil
	}
	err := st.send(answer)
	st.lastAnswered = time.Now()
	return err
}

// rejectPreempted is the end of a preempted request. err is what the lease says of it.
func (st *stream) rejectPreempted(err error) error {
	st.preempted = nil
	return st.reject(preemption(err))
}

// preemption is what the lease says of its preemption, as a rejection that says when to come back. nil is one too: the
// channel was closed, so it was preempted whatever the lease says now.
func preemption(err error) *flowcontrol.Rejection {
	if err == nil {
		err = flowcontrol.ErrPreempted
	}
	rej := *rejectionOf(err)
	if rej.RetryAfter <= 0 {
		rej.RetryAfter = time.Duration(1+rand.IntN(1000)) * time.Millisecond
	}
	return &rej
}

// endedByEnvoy is the end of a request that Envoy answered itself while its body was still arriving: a 413 for a body
// over the buffer's limit, a 408, or whatever comes when the client is gone.
func (st *stream) endedByEnvoy(h *extprocv3.HttpHeaders) {
	st.decided = true
	st.stopAwaiting()
	st.dropBody()
	err := st.goneError()
	if headOf(h).status == 413 {
		err = tooLarge("The request body is larger than Envoy's buffer limit.")
	}
	st.turnedAway(st.refusal(err))
}

// unexpected counts a message that makes no sense in the state that the stream is in.
func (st *stream) unexpected(message string) {
	st.server.metrics.unexpected.WithLabelValues(message, st.state.String()).Inc()
}

// ends says that a body message is the last one.
func ends(b *extprocv3.HttpBody) bool { return b.GetEndOfStream() || b.GetEndOfStreamWithoutMessage() }
