package extproc

import (
	"context"
	"time"

	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// gate is the stream of a first-token gate: a second ext_proc filter between the main one and the router. It sees the
// answer before the main filter does, and holds its headers, and with them the main filter's, until the first token.
type gate struct {
	*stream
	tie   *tie // nil: the answer belongs to no request that is known, so it is never held
	watch tokenWatch
	ok    bool // the status is 2xx

	// held counts the body messages that wait for their answers, and heldBytes their size. They lie in Envoy.
	held      int
	heldBytes int
}

// The most that is held of what comes before the first token. Beyond it the answer goes on, whatever it is.
const (
	maxHeld      = 1024
	maxHeldBytes = 1 << 20
)

// lostPatience is how long the gate of a preempted request waits for the main stream's rejection to arrive.
const lostPatience = 2 * time.Second

// isGate says whether a stream that begins with this message is a gate's. A main filter's stream may begin with
// response headers as well, when Envoy answers by itself; only the gate lets bodies come while its headers wait.
func isGate(first *extprocv3.ProcessingRequest) bool {
	p := first.GetProtocolConfig()
	return first.GetResponseHeaders() != nil && !first.GetObservabilityMode() && p.GetSendBodyWithoutWaitingForHeaderResponse() &&
		p.GetRequestBodyMode() == modev3.ProcessingMode_NONE && p.GetResponseBodyMode() == modev3.ProcessingMode_STREAMED
}

// onGate deals with one message of a gate's stream.
func (st *stream) onGate(m *extprocv3.ProcessingRequest) error {
	g := st.gate
	switch r := m.GetRequest().(type) {
	case *extprocv3.ProcessingRequest_ResponseHeaders:
		if g != nil {
			st.unexpected("response headers")
			return st.send(emptyResponseHeaders)
		}
		return st.arriveAtGate(m)
	case *extprocv3.ProcessingRequest_ResponseBody:
		b := r.ResponseBody
		g.held++
		g.heldBytes += len(b.GetBody())
		token := g.watch.token(b.GetBody())
		if token || ends(b) || g.held >= maxHeld || g.heldBytes >= maxHeldBytes {
			return g.open(token, false)
		}
	case *extprocv3.ProcessingRequest_ResponseTrailers:
		return g.open(false, true)
	}
	return nil
}

// arriveAtGate takes in the answer's headers, and holds them if they belong to a request that is known.
func (st *stream) arriveAtGate(m *extprocv3.ProcessingRequest) error {
	s, h := st.server, m.GetResponseHeaders()
	if s.presence.appeared() {
		s.log.Info("first-token gate: seen")
	}
	g := &gate{stream: st}
	st.gate = g
	id := tieID(m.GetMetadataContext())
	head := headOf(h)
	st.status, g.watch.events = head.status, head.events
	if id != "" {
		g.tie = s.ties.find(id)
		if g.tie == nil && !head.ours {
			s.metrics.gateUnknown.Inc()
		}
	}
	t := g.tie
	if t == nil || t.over.Load() {
		g.tie = nil
		return g.open(false, false)
	}
	g.watch.responses = t.responses
	g.ok = st.status/100 == 2
	t.answered.Store(int32(st.status) + 1)
	if address := s.served(m.GetMetadataContext(), t.picked, t.lease); address != "" {
		t.servedAt(address)
	}
	s.metrics.headersSeconds.Observe(time.Since(t.begun).Seconds())
	s.metrics.upstream(st.status)
	if h.GetEndOfStream() || head.trailers {
		// Envoy keeps trailers back while the headers wait: an answer that ends with some and has no token would be
		// held to the gate's timeout.
		return g.open(false, false)
	}
	return nil
}

// open lets the answer through with everything that was held, and ends the stream, so that the rest costs no message.
// When the request was preempted just before, nothing goes through.
func (g *gate) open(token, trailers bool) error {
	if t := g.tie; t != nil {
		if err := t.lease.OnFirstByte(); err != nil {
			return g.lose(err)
		}
		if token && g.ok {
			g.server.metrics.firstToken.Observe(time.Since(t.begun).Seconds())
		}
	}
	if err := g.send(emptyResponseHeaders); err != nil {
		return err
	}
	for range g.held {
		if err := g.send(emptyResponseBody); err != nil {
			return err
		}
	}
	if trailers {
		if err := g.send(emptyResponseTrailers); err != nil {
			return err
		}
	}
	return errFinished
}

// lose waits for the end that the main stream's rejection makes of this stream. Should the main stream have ended
// without it, the client still gets its rejection, from here: nothing of the answer has gone on.
func (g *gate) lose(err error) error {
	g.startReader()
	patience := time.NewTimer(lostPatience)
	defer patience.Stop()
	for {
		select {
		case <-g.reader.inbox.ready:
			for g.reader.inbox.get() != nil { // never answered
			}
		case <-g.reader.gone:
			return context.Canceled
		case <-patience.C:
			_ = g.send(g.cfg.rejections.answer(preemption(err), g.tie.shape))
			return errFinished
		}
	}
}
