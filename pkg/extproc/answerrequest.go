package extproc

import (
	"slices"
	"time"

	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/extproc/codec"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// answerHeadersEarly replies to the request headers before the body is read, since Envoy sends the body only after
// that. It removes the headers that must not reach the model server. Only this reply can request response trailers if
// the filter's own mode skips them, as in gateways without a setting for them.
func (st *mainStream) answerHeadersEarly() error {
	k := replyKey{phase: headersPhase, remove: st.request.Control}
	if st.modes.canOverride() && !st.modes.echoesResponse {
		k.override, k.requestBody, k.responseBody = true, st.modes.requestSent, st.modes.response
	}
	if !k.override && k.remove == 0 && len(st.request.Own) == 0 {
		return st.wire.Send(emptyRequestHeaders)
	}
	return st.wire.Send(st.cfg.replies.reply(k, ownPart{remove: st.request.Own}))
}

// answerRequest sends Envoy the destination of a granted request. From then on the stream watches the response.
func (st *mainStream) answerRequest() error {
	next, err := st.sendDestination()
	if err != nil {
		return err
	}
	st.state.enter(next)
	st.grant.sent = time.Now()
	if st.grant.preempted != nil {
		st.receiveInBackground()
	}
	return nil
}

// sendDestination replies to the headers, the body or both, whichever Envoy waits for, and returns the next state.
func (st *mainStream) sendDestination() (next state, err error) {
	k := replyKey{destination: st.grant.destination}
	own := st.ownPart()
	if st.grant.prefill != "" {
		own.set = append(own.set, setHeader(request.PrefillHeader, st.grant.prefill))
	}
	if st.body.arrival != nil && st.modes.request != request.FullDuplex { // answerHeadersEarly has answered the headers
		k.phase = bodyPhase
		edited := len(st.request.Edits) > 0
		if edited {
			own.body = st.edit(&own)
			if st.modes.request != request.Partial || st.request.ContentLength >= 0 {
				own.setContentLength(len(own.body))
			}
		}
		err = st.wire.Send(st.cfg.replies.reply(k, own))
		if edited {
			st.body.drop()
		}
		return placed, err
	}
	own.remove = st.request.Own
	if st.grant.prefill != "" && slices.Contains(own.remove, request.PrefillHeader) { // it is overwritten
		own.remove = slices.DeleteFunc(slices.Clone(own.remove), func(name string) bool { return name == request.PrefillHeader })
	}
	k.remove = st.request.Control
	if k.destination != "" {
		k.remove &^= request.DestinationSlot // it is overwritten
	}
	if st.modes.request == request.FullDuplex {
		return placed, st.answerFullDuplex(k, own)
	}
	next = placed
	if st.needsNoHeaders() {
		next = placedNoHeaders
	}
	if next == placedNoHeaders || st.modes.canOverride() {
		// The decision did not need the body, so Envoy need not send it.
		k.override, k.requestBody = true, modev3.ProcessingMode_NONE
		k.noHeaders, k.responseBody = next == placedNoHeaders, st.modes.response
	}
	return next, st.wire.Send(st.cfg.replies.reply(k, own))
}

// needsNoHeaders reports whether this stream can skip the response headers, which saves a message: the request can
// never be preempted and has no prefill engine, its status comes through the gate, and its response body is not read
// (the headers describe it). Only the reply to the request headers can override the mode.
func (st *mainStream) needsNoHeaders() bool {
	return st.link != nil && st.grant.prefill == "" && st.grant.preempted == nil && st.server.links.presence.certain() && !st.wantsQueueState() && !st.record.tells() && st.grant.quota == nil && !st.readsUsage()
}

// ownPart returns the reply's part with the request's metadata in the namespace weir: its ID for the gate, and the
// decision for the access log.
func (st *mainStream) ownPart() (own ownPart) {
	if st.cfg.Responses.Metadata {
		st.decision(&own.metadata, flowcontrol.OutcomeDispatched)
	}
	if st.link != nil {
		own.metadata.String(linkKey, st.link.id)
	}
	return own
}

// answerFullDuplex replies to the headers, and sends the whole body back in chunks if it was collected.
func (st *mainStream) answerFullDuplex(k replyKey, own ownPart) error {
	b := &st.body
	bytes := b.bytes
	if len(st.request.Edits) > 0 {
		bytes = st.edit(&own)
		if st.request.Has&request.ContentLengthSlot != 0 {
			// Envoy sends such a body chunked. The client's content-length must not be sent with another body.
			k.remove |= request.ContentLengthSlot
		}
	}
	if err := st.wire.Send(st.cfg.replies.reply(k, own)); err != nil {
		return err
	}
	if b.seen {
		err := st.sendChunks(bytes, !b.trailers, codec.RequestChunk)
		st.body.drop()
		if err != nil {
			return err
		}
	}
	if b.trailers {
		return st.wire.Send(emptyRequestTrailers)
	}
	return nil
}
