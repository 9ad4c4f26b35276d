package extproc

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/weir-epp/weir/pkg/extproc/codec"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// refuse rejects a request that was not offered to the controller.
func (st *mainStream) refuse(err error) error { return st.reject(st.refusal(err)) }

// refusal makes the controller count a request that was not offered to it.
func (st *mainStream) refusal(err error) *flowcontrol.Rejection {
	model, target := st.request.Labels()
	return st.server.controller.Refuse(st.line.id, st.grant.flow(&st.request), model, target, refusalOf(err))
}

// rejectPreempted rejects a request that has lost its lease. err is the lease's error.
func (st *mainStream) rejectPreempted(err error) error {
	st.grant.preempted = nil
	return st.reject(preemption(err))
}

// reject sends the client a rejection, which is the last message. It always returns an error.
func (st *mainStream) reject(rej *flowcontrol.Rejection) error {
	st.link.reject() // before Envoy can take the rejection to the gate
	st.noteRejection(rej)
	if rej.Outcome == flowcontrol.OutcomeClientCancelled {
		st.state.enter(rejected)
		return errFinished // the client has gone
	}
	var headers []*corev3.HeaderValueOption
	if st.wantsQueueState() {
		waited, _ := st.grant.waited()
		headers = st.server.queueState(waited)
	}
	headers = append(headers, quotaState(rej.Quota)...)
	if rej.Limit != nil {
		headers = append(headers, setHeader(limitHeader, rej.Limit.Name))
	}
	headers = append(headers, st.record.header()...)
	last := st.cfg.rejections.reply(st.wordedForCaller(rej), st.request.ErrorShape(), headers...)
	if st.cfg.Responses.Metadata {
		var m codec.Metadata
		st.decision(&m, rej.Outcome)
		last = codec.WithMetadata(codec.Encoded(last), weirNamespace, &m)
	}
	st.state.enter(rejected)
	if err := st.wire.Send(last); err != nil {
		return err
	}
	return errFinished
}

// noteRejection records the rejection, and the facts of that moment for the log.
func (st *mainStream) noteRejection(rej *flowcontrol.Rejection) {
	st.rejection = rej
	st.record.reject(rej, &st.request, &st.grant)
	st.trace.reject()
	if !st.line.wanted {
		return
	}
	st.line.wait, _ = st.grant.waited()
	if rej.Outcome == flowcontrol.OutcomePreempted {
		_, came := st.link.status()
		st.line.held = came || st.state == holding
	}
}

// flowFull are the messages for a full flow that is not the caller's own: most of its waiting requests are other
// callers'.
var flowFull = map[request.Sharing]string{
	request.OfModel:     "Too many requests without a tenant are waiting for this model. Please retry later.",
	request.OfModelAll:  "Too many requests are waiting for this model. Please retry later.",
	request.OfAnonymous: "Too many requests without a tenant are waiting. Please retry later.",
}

const (
	onlyFlowFull = "Too many requests from all callers are waiting. Please retry later."
	noneReady    = "The request waited too long in the queue, and no model server is ready. Please retry later."
)

// wordedForCaller returns the rejection with a message for its special case, if any.
func (st *mainStream) wordedForCaller(rej *flowcontrol.Rejection) *flowcontrol.Rejection {
	text := ""
	switch rej.Outcome {
	case flowcontrol.OutcomeFlowFull: // a new caller has no requests waiting
		text = flowFull[st.request.Sharing()]
		if st.cfg.OneFlow {
			text = onlyFlowFull
		}
	case flowcontrol.OutcomeTTLExpired: // otherwise wrong addresses look like a full queue
		if st.server.controller.Ready() == 0 {
			text = noneReady
		}
	default:
	}
	if text == "" {
		return rej
	}
	told := *rej
	told.Err = &fieldError{sentinel: rej.Err, message: text}
	return &told
}
