package extproc

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// end settles everything, whatever ended the stream. Each part is done also when another one panics, and the panic goes
// no further: gRPC recovers none, so it would end the process.
func (st *stream) end() {
	s := st.server
	defer func() {
		if p := recover(); p != nil {
			st.reportPanic(p, "ending a stream")
		}
	}()
	defer s.plateau.leave()
	if st.state == atGate {
		defer s.metrics.gateStreams.Dec()
	}
	defer st.dropBody()
	defer st.reader.stop()
	defer st.reportUsage()
	defer st.logRequest()
	defer st.settle()
	st.stopAwaiting()
	st.untie() // first: it may know the answer's status
}

// settle gives the request its outcome, if it has none yet.
func (st *stream) settle() {
	if st.lease != nil {
		st.lease.OnRequestComplete(flowcontrol.Completion{Status: st.status, Unsent: st.state == collecting})
		st.notice()
	}
	if st.asked && !st.decided {
		// The stream ended while the request was still arriving.
		st.turnedAway(st.refusal(st.goneError()))
	}
}

// goneError is why a stream ended before its request was offered.
func (st *stream) goneError() error {
	if errors.Is(st.conn.Context().Err(), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return context.Canceled
}

// notice looks for streams that end too early to show the end of the answer.
func (st *stream) notice() {
	if st.lastAnswered.IsZero() || st.state != placed && st.state != responding {
		return
	}
	s := st.server
	if t := st.tie; t != nil && t.answered.Load() != 0 {
		// It lived to see the answer. When that ended says nothing: the gate held it until there was something to send.
		s.unobserved.seen()
		return
	}
	if st.skipsHeaders {
		return
	}
	if s.unobserved.ended(time.Since(st.lastAnswered), st.state == responding, st.eventStream) {
		s.log.Info("WARNING: Envoy ends the streams before the answers have ended, so the stock reads low and the " +
			"backends get more than they should: set response_trailer_mode: SEND in the filter's processing_mode " +
			"(response_body_mode may stay NONE)")
	}
}

// panicked answers 500 where that is still possible. A request that has a lease gets its one outcome from settle, and
// no other for the 500: its destination was sent, so it was dispatched, or it was not, and it counts as unsent.
func (st *stream) panicked(p any) {
	defer func() { _ = recover() }() // the fakes and the wire alike: a second panic must not end the process
	st.reportPanic(p, "serving a stream")
	rej := &flowcontrol.Rejection{Err: errors.New("extproc: panic"), Outcome: flowcontrol.OutcomeInternal}
	if st.asked && !st.decided {
		st.decided = true
		if r := st.refusal(rej.Err); r != nil {
			rej = r
		}
	}
	if st.state == fresh || st.state == collecting || st.state == placed || st.state == gated {
		_ = st.reject(rej) // the answer has not begun, so that it can still be replaced
	}
}

// reportPanic counts a panic and logs it with the stack that it came from.
func (st *stream) reportPanic(p any, doing string) {
	st.server.metrics.panics.Inc()
	st.server.log.Error(fmt.Errorf("extproc: panic: %v", p), doing, "state", st.state.String(), "stack", string(debug.Stack()))
}
