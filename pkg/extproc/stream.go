package extproc

import (
	"context"
	"errors"
	"io"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/metering"
	"github.com/weir-epp/weir/pkg/request"
)

// mainStream is the machine of one HTTP request. It belongs to its handler's goroutine, except while it awaits the rest
// of a body (turn.go).
type mainStream struct {
	connection
	state state
	modes modes

	// The request (readrequest.go).
	request request.Request
	body    requestBody

	// The decision about it (admission.go, answerrequest.go).
	verdict
	link *link        // to its first-token gate; nil if it has none
	id   string       // its x-request-id, which a client may have chosen; empty unless somebody wants it
	line *requestLine // its line in the log; nil if there is none

	// The response (watchresponse.go), and the request's charge (cost.go).
	response
	charge     *metering.Charge       // nil if the request was not charged in tokens
	completion flowcontrol.Completion // what the lease is told at the end

	// Times, and the end of the stream.
	sent         time.Time // when the destination was sent
	lastAnswered time.Time // when the request headers or the response headers were answered
	closed       bool      // Envoy has closed the stream before it cancelled it (unobserved)
}

// newMainStream returns the machine of a stream that begins with the given message.
func newMainStream(c connection, first *extprocv3.ProcessingRequest) *mainStream {
	s := c.server
	st := &mainStream{connection: c, state: s.firstState(first), body: requestBody{memory: &s.memory, limits: &c.cfg.Limits}}
	var known bool
	st.modes, known = modesOf(first)
	s.metrics.streamsByMode[st.modes.request].Inc()
	if !known {
		s.once.warn(s.log, "protocol_config", "Envoy does not tell its body modes (too old a version); request bodies are not read")
	}
	return st
}

// next returns the next message. It returns errFinished after it has answered a preemption.
func (st *mainStream) next() (*extprocv3.ProcessingRequest, error) {
	if !st.reader.running() {
		if st.state == arriving {
			return st.nextOfBody()
		}
		m, err := st.wire.Recv()
		st.closed = errors.Is(err, io.EOF)
		return m, err
	}
	for {
		if m := st.reader.inbox.get(); m != nil {
			return m, nil
		}
		select {
		case <-st.reader.inbox.ready:
		case <-st.preempted:
			return nil, st.rejectPreempted(st.lease.OnFirstByte())
		case <-st.reader.gone:
			if m := st.reader.inbox.get(); m != nil { // it came before the end
				return m, nil
			}
			st.closed = st.reader.closed
			return nil, context.Canceled
		}
	}
}

// refuse rejects a request that was not offered to the controller.
func (st *mainStream) refuse(err error) error { return st.reject(st.refusal(err)) }

// refusal has the controller count a request that was not offered to it.
func (st *mainStream) refusal(err error) *flowcontrol.Rejection {
	model, target := st.request.Labels()
	return st.server.controller.Refuse(st.flowKey(), model, target, refusalOf(err))
}

// reject sends the client a rejection, which is the last message. It returns an error in any case.
func (st *mainStream) reject(rej *flowcontrol.Rejection) error {
	if st.link != nil {
		st.link.over.Store(true) // before Envoy can take the rejection to the gate
	}
	st.noteRejection(rej)
	if rej.Outcome == flowcontrol.OutcomeClientCancelled {
		st.enter(rejected)
		return errFinished // nobody is there to read it
	}
	var headers []*corev3.HeaderValueOption
	if st.wantsQueueState() {
		waited, _ := st.waited()
		headers = st.queueState(waited)
	}
	last := st.cfg.rejections.reply(st.wordedForCaller(rej), st.request.ErrorShape(), headers...)
	if st.cfg.Responses.Metadata {
		last.DynamicMetadata = weirMetadata(st.decision(rej.Outcome))
	}
	st.enter(rejected)
	if err := st.send(last); err != nil {
		return err
	}
	return errFinished
}

// rejectPreempted rejects a request that lost its lease. err is what the lease returned.
func (st *mainStream) rejectPreempted(err error) error {
	st.preempted = nil
	return st.reject(preemption(err))
}

// pending reports whether the request still lacks its outcome.
func (st *mainStream) pending() bool { return st.state.undecided() && st.rejection == nil }

// end gives the request its outcome and releases what the stream holds, whatever ended it. A panic in one part does not
// keep the others from being done, and goes no further: gRPC recovers none, so it would end the process.
func (st *mainStream) end() {
	defer func() {
		if p := recover(); p != nil {
			st.reportPanic(p, "ending a stream", st.state.String())
		}
	}()
	defer st.body.drop()
	defer st.reader.stop()
	defer st.countUsage()
	defer st.logRequest()
	defer st.settle()
	st.body.turn.end()
	st.unlink() // first, since the link may have the response's status
}

// settle gives the request its outcome, if it has none yet.
func (st *mainStream) settle() {
	if st.lease != nil {
		st.complete()
		st.noticeUnobserved()
	}
	if st.pending() { // the stream ended while the request was arriving
		st.noteRejection(st.refusal(st.goneError()))
	}
}

// complete settles the lease, even if the cost of the request cannot be told.
func (st *mainStream) complete() {
	defer func() { st.lease.OnRequestComplete(st.completion) }()
	st.completion.Cost = st.actualCost()
}

// goneError returns why a stream ended before its request was offered.
func (st *mainStream) goneError() error {
	if errors.Is(st.wire.Context().Err(), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return context.Canceled
}

// noticeUnobserved looks for streams that end too early to show the end of the response, and warns of them.
func (st *mainStream) noticeUnobserved() {
	if st.lastAnswered.IsZero() || st.state != placed && st.state != responding || st.modes.showsResponse() {
		return
	}
	s, envoy, now := st.server, envoyOf(st.wire.Context()), time.Now()
	if l := st.link; l != nil && l.answered.Load() != 0 {
		// The stream lived until the response. How long after its answer that ended says nothing, because the gate held
		// the response until there was something to send.
		s.unobserved.reset(envoy, now)
		return
	}
	if s.unobserved.ended(envoy, now, st.lastAnswered, st.closed, st.state == responding, st.events) {
		s.log.Info("WARNING: an Envoy ends the streams before the answers have ended, so the stock reads low and the "+
			"backends get more than they should: set response_trailer_mode: SEND in the filter's processing_mode "+
			"(response_body_mode may stay NONE)", "envoy", envoy)
	}
}

// panicked sends the client a 500 where that is still possible. A request that has a lease gets no second outcome for
// it: its one outcome is that the lease was settled, as unsent if its destination was not sent.
func (st *mainStream) panicked(p any) {
	defer func() { _ = recover() }() // a second panic must not end the process
	st.reportPanic(p, "serving a stream", st.state.String())
	if !st.state.replaceable() {
		return
	}
	rej := &flowcontrol.Rejection{Err: errors.New("extproc: panic"), Outcome: flowcontrol.OutcomeInternal}
	if st.pending() {
		if r := st.refusal(rej.Err); r != nil {
			rej = r
		}
	}
	_ = st.reject(rej) // an error means that the stream has ended
}
