package extproc

import (
	"errors"
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// end gives the request its outcome and releases the stream's holdings, after any end. A panic in one part does not
// prevent the others, and is recovered here: gRPC recovers no panics, so it would end the process.
func (st *mainStream) end() {
	defer func() {
		if p := recover(); p != nil {
			st.reportPanic(p, "ending a stream", st.state.String())
		}
	}()
	defer st.body.drop()
	defer st.reader.stop()
	defer st.countUsage()
	defer st.tellRecord()
	defer st.tellEnd()
	defer st.settle()
	st.body.turn.end()
	status := st.server.links.end(st.link, st.state == responding || st.state == placedNoHeaders)
	if st.response.status == 0 {
		st.response.status = status
	}
	if st.response.elsewhere == "" {
		st.response.elsewhere = st.link.elsewhere()
	}
}

// settle settles the lease, and gives a request without an outcome one.
func (st *mainStream) settle() {
	if st.grant.lease != nil {
		st.complete()
		st.noticeUnobserved()
	}
	if st.pending() { // the stream ended while the request was arriving
		st.noteRejection(st.refusal(st.goneError()))
	}
}

// pending reports whether the request still lacks its outcome.
func (st *mainStream) pending() bool {
	return (st.state == arriving || st.state == deciding) && st.rejection == nil
}

// complete settles the lease, even if the cost of the request is unknown.
func (st *mainStream) complete() {
	c := flowcontrol.Completion{ID: st.line.id, Status: st.response.status, RetryAfter: st.response.again, Unsent: st.grant.sent.IsZero()}
	defer func() { st.grant.lease.OnRequestComplete(c) }()
	st.noteUnread()
	used, whole := st.response.usage(st.request.PromptOnly)
	if whole {
		c.Usage = flowcontrol.Usage{Input: used.Input, Output: used.Output, Cached: used.Cached}
	}
	c.Cost = st.actualCost()
	if charge := st.grant.charge; charge != nil {
		c.Used, c.Unserved = charge.Used(), charge.Used() == 0
	}
	st.grant.tellAffinity(&c, st.response.elsewhere != "", whole)
}

// noteUnread warns if Weir has not seen the first token of a streamed response although first tokens decide which
// endpoints are busy.
func (st *mainStream) noteUnread() {
	if r := &st.response; r.events && r.status/100 == 2 && st.grant.lease.AwaitsFirstToken() {
		st.server.once.warn(st.server.log, "unread", "the first tokens of streams are not seen, so for busyTokens and busyFraction a prompt "+
			"counts until its answer has ended: put the first-token gate behind the filter, or let it have the response body with "+
			"FULL_DUPLEX_STREAMED (docs/envoy.md)", "response_body_mode", st.modes.response.String())
	}
}

// countUsage counts the tokens reported in the response.
func (st *mainStream) countUsage() {
	if used, whole := st.response.usage(st.request.PromptOnly); whole {
		st.server.metrics.countUsage(used)
	}
}

// noticeUnobserved warns of streams that end too early to show the end of the response.
func (st *mainStream) noticeUnobserved() {
	if st.grant.sent.IsZero() || st.state != placed && st.state != responding || st.modes.showsResponse {
		return
	}
	s, envoy, now := st.server, envoyOf(st.wire.Context()), time.Now()
	if _, came := st.link.status(); came {
		// The stream lived until the response. Its end after the last reply is not meaningful, because the gate held
		// the response until its first token.
		s.unobserved.reset(envoy, now)
		return
	}
	if s.unobserved.ended(envoy, now, st.lastAnswered(), st.reader.closed(), st.state == responding, st.response.events) {
		s.log.Info("WARNING: an Envoy ends the streams before the answers have ended, so the stock reads low and the "+
			"backends get more than they should: set response_trailer_mode: SEND in the filter's processing_mode "+
			"(response_body_mode may stay NONE)", "envoy", envoy)
	}
}

// panicked sends the client a 500 if that is still possible. A request with a lease gets no second outcome: its lease
// is settled, as unsent if its destination was not sent.
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
