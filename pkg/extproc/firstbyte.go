package extproc

import (
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// beginBody handles a response body without headers before it (response_header_mode: SKIP).
func beginBody(st *mainStream, m *extprocv3.ProcessingRequest) error {
	if err := st.firstByte(); err != nil {
		return err
	}
	return ackResponseBody(st, m)
}

// beginTrailers handles response trailers without headers before them (response_header_mode: SKIP).
func beginTrailers(st *mainStream, m *extprocv3.ProcessingRequest) error {
	if err := st.firstByte(); err != nil {
		return err
	}
	return ackResponseTrailers(st, m)
}

// firstByte marks the first byte of the response: from here on it is never cut. If the request was preempted just before,
// firstByte rejects it and returns an error.
func (st *mainStream) firstByte() error {
	if err := st.grant.firstByte(); err != nil {
		return st.rejectPreempted(err)
	}
	st.state.enter(responding)
	return nil
}

// releaseHeaders releases the response headers to the client, unless the request was preempted.
func (st *mainStream) releaseHeaders() error {
	if err := st.firstByte(); err != nil {
		return err
	}
	var own ownPart
	if st.response.tells {
		waited, _ := st.grant.waited()
		own.set = st.server.queueState(waited)
	}
	if st.response.tellsQuota {
		own.set = append(own.set, quotaState(st.grant.quota)...)
	}
	if st.response.tellsDecision {
		own.set = append(own.set, st.record.header()...)
	}
	if st.response.strip != nil { // its length changes
		own.remove = []string{"content-length"}
	}
	err := st.wire.Send(own.addTo(emptyResponseHeaders, responsePhase))
	st.response.released = time.Now()
	return err
}

// firstByte ends preemption. The error means that the request was preempted just before.
func (g *grant) firstByte() error {
	if g.lease != nil {
		if err := g.lease.OnFirstByte(); err != nil {
			return err
		}
	}
	g.preempted = nil
	g.prefilled()
	return nil
}

// firstByte ends preemption at the gate, as grant.firstByte does in the main stream: both get the same verdict.
func (l *link) firstByte() error { return l.lease.OnFirstByte() }

// prefilled releases the prefill place, since the model server has begun to answer.
func (g *grant) prefilled() {
	if g.prefill != "" {
		g.prefill = ""
		g.lease.OnPrefilled()
	}
}
