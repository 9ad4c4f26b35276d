package extproc

import (
	"context"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// gate is the machine of a first-token gate: a second ext_proc filter between the main one and the router. It sees the
// response before the main filter, and holds its headers until the first token, so the main filter gets them only then.
type gate struct {
	connection
	state gateState
	link  *link // nil if the response belongs to no known request; it is then not held
	watch tokenWatch
	ok    bool // the status is 2xx

	// held is the number of body messages that wait for their replies, and heldBytes their size. Envoy keeps the
	// bodies.
	held      int
	heldBytes int
}

// gateState is the state of a gate. There are no other states, because a stream ends when it releases the response.
type gateState uint8

const (
	gateOpening gateState = iota // the response headers are the next message
	gateHolding                  // the response headers wait for their reply
)

// String is the value of the label "state" in metrics.
func (gateState) String() string { return "gate" }

// The most that is held before the first token. Beyond it the response is released.
const (
	maxHeld      = 1024
	maxHeldBytes = 1 << 20
)

// lostPatience is the time for which the gate of a preempted request waits for the main stream's rejection to end it.
const lostPatience = 2 * time.Second

func newGate(c connection) *gate {
	c.server.metrics.gateStreams.Inc()
	return &gate{connection: c}
}

// next returns the next message.
func (g *gate) next() (*extprocv3.ProcessingRequest, error) { return g.wire.Recv() }

// on replies to one message. A held message gets its reply later.
func (g *gate) on(m *extprocv3.ProcessingRequest) error {
	switch kindOf(m) {
	case responseHeadersKind:
		if g.state == gateHolding {
			g.unexpected("response headers", g.state.String())
			return g.wire.Send(emptyResponseHeaders)
		}
		return g.readResponse(m)
	case responseBodyKind:
		b := m.GetResponseBody()
		g.held++
		g.heldBytes += len(b.GetBody())
		token := g.watch.token(b.GetBody())
		if token || ends(b) || g.held >= maxHeld || g.heldBytes >= maxHeldBytes {
			return g.release(token, false)
		}
	case responseTrailersKind:
		return g.release(false, true)
	default: // Envoy sends no others to a gate, and waits for no reply to them
	}
	return nil
}

// readResponse reads the response headers, and holds them if they belong to a known request.
func (g *gate) readResponse(m *extprocv3.ProcessingRequest) error {
	g.state = gateHolding
	s, h := g.server, m.GetResponseHeaders()
	if s.links.presence.appeared() {
		s.log.Info("first-token gate: seen")
	}
	head := headOf(h)
	g.watch.events = head.events
	l := g.findLink(linkID(m.GetMetadataContext()), head.ours)
	if l == nil || l.over.Load() {
		return g.release(false, false)
	}
	g.link = l
	g.watch.responses = l.responses
	g.ok = head.status/100 == 2
	l.answered.Store(int32(head.status) + 1)
	if address := s.elsewhere.move(m.GetMetadataContext(), l.picked, l.lease, head.status); address != "" {
		l.setServed(address)
	}
	s.metrics.headersSeconds.Observe(time.Since(l.begun).Seconds())
	s.metrics.countResponse(head.status)
	if h.GetEndOfStream() || head.trailers {
		// Envoy keeps trailers back while the headers wait, so a response that ends with trailers and without a token
		// would be held until the gate's timeout.
		return g.release(false, false)
	}
	return nil
}

// findLink returns the link with the given ID, or nil. An unknown ID is counted, unless the response is Weir's own
// rejection, whose main stream has ended.
func (g *gate) findLink(id string, ours bool) *link {
	if id == "" {
		return nil
	}
	l := g.server.links.find(id)
	if l == nil && !ours {
		g.server.metrics.gateUnknown.Inc()
	}
	return l
}

// release replies to all held messages and ends the stream, so that the rest of the response costs no message. If the
// request was preempted just before, it releases nothing.
func (g *gate) release(token, trailers bool) error {
	if l := g.link; l != nil {
		if err := l.firstByte(); err != nil {
			return g.lose(err)
		}
		if token {
			g.server.firstToken(l.lease, g.ok, l.begun)
		}
	}
	if err := g.wire.Send(emptyResponseHeaders); err != nil {
		return err
	}
	for range g.held {
		if err := g.wire.Send(emptyResponseBody); err != nil {
			return err
		}
	}
	if trailers {
		if err := g.wire.Send(emptyResponseTrailers); err != nil {
			return err
		}
	}
	return errFinished
}

// lose waits for the main stream's rejection, which makes Envoy end this stream. If the main stream was lost before it
// could send the rejection, the gate sends it: the client has got nothing of the response.
func (g *gate) lose(err error) error {
	g.receiveInBackground()
	patience := time.NewTimer(lostPatience)
	defer patience.Stop()
	for {
		select {
		case <-g.reader.inbox.ready:
			for g.reader.inbox.get() != nil { // they get no reply
			}
		case <-g.reader.gone:
			return context.Canceled
		case <-patience.C:
			_ = g.wire.Send(g.cfg.rejections.reply(preemption(err), g.link.shape))
			return errFinished
		}
	}
}

// panicked only reports the panic: when the stream ends, Envoy releases the response.
func (g *gate) panicked(p any) { g.reportPanic(p, "serving a gate", g.state.String()) }

// end implements machine.
func (g *gate) end() {
	defer g.server.metrics.gateStreams.Dec()
	g.reader.stop()
}
