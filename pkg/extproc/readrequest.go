package extproc

import (
	"fmt"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weir-epp/weir/pkg/extproc/body"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// maxModelBytes is the longest name of a model. The name outlives its body: in the lane, the flow's key and the metrics.
const maxModelBytes = 1024

func modelTooLong() error {
	return badRequest("model", fmt.Sprintf("The field \"model\" is longer than %d bytes.", maxModelBytes))
}

// readRequest reads the request headers. It offers the request if they say enough, and awaits the body otherwise.
func readRequest(st *mainStream, m *extprocv3.ProcessingRequest) error {
	st.enter(deciding)
	if err := st.readHeaders(m); err != nil {
		return st.refuse(err)
	}
	if !st.bodyWanted() {
		return st.offer()
	}
	if err := st.checkAnnouncedLength(); err != nil {
		return st.refuse(err)
	}
	st.awaitBody()
	if st.modes.request == modeFullDuplex {
		return nil // headers and body are answered together
	}
	if err := st.answerHeadersEarly(); err != nil {
		return err
	}
	return st.extendForBody()
}

// collectBody collects a part of the body, and offers the request with the last one.
func collectBody(st *mainStream, m *extprocv3.ProcessingRequest) error {
	b := m.GetRequestBody()
	// The other modes send one message, and nothing more before it is answered.
	last := st.modes.request != modeFullDuplex || ends(b)
	if err := st.collect(b.GetBody(), last); err != nil {
		return st.refuse(err)
	}
	if !last {
		return nil
	}
	// In BUFFERED the one message is the whole body, even if trailers follow.
	st.body.whole = st.modes.request != modePartial || b.GetEndOfStream()
	return st.offerWithBody()
}

// collectTrailers offers the request, whose body the trailers end.
func collectTrailers(st *mainStream, _ *extprocv3.ProcessingRequest) error {
	if err := st.collect(nil, true); err != nil {
		return st.refuse(err)
	}
	st.body.whole, st.body.trailers = true, true
	return st.offerWithBody()
}

// abandon gives up a request whose body was still arriving when Envoy responded to the client itself: with 413 for a body
// over the buffer's limit, with 408, or with anything else if the client is gone.
func abandon(st *mainStream, m *extprocv3.ProcessingRequest) error {
	st.turn.end()
	st.dropBody()
	err := st.goneError()
	if headOf(m.GetResponseHeaders()).status == 413 {
		err = tooLarge("The request body is larger than Envoy's buffer limit.")
	}
	st.noteRejection(st.refusal(err))
	st.enter(abandoned)
	switch kindOf(m) {
	case responseBodyKind:
		return ackResponseBody(st, m)
	case responseTrailersKind:
		return ackResponseTrailers(st, m)
	default:
		return ackResponseHeaders(st, m)
	}
}

// forward passes on a request that an earlier filter has placed, without any further message if Envoy allows that.
func forward(st *mainStream, _ *extprocv3.ProcessingRequest) error {
	st.enter(forwarded)
	if st.modes.request == modeFullDuplex || st.modes.echoesResponse() {
		return st.send(emptyRequestHeaders) // these modes cannot be overridden
	}
	return st.send(forwardReply)
}

// readHeaders reads what the request headers say. The request is to be refused with the error.
func (st *mainStream) readHeaders(m *extprocv3.ProcessingRequest) error {
	c, h := st.cfg, m.GetRequestHeaders()
	st.headers.read(&c.names, h.GetHeaders().GetHeaders())
	st.headers.end = h.GetEndOfStream()
	st.beginLine(h)
	st.api = apiOf(&st.headers)
	st.passes = c.PassOn == PassOnPick && c.cheap(&st.headers)
	st.info = requestInfoOf(m.GetMetadataContext())
	model := st.headers.values[c.modelHeader]
	if model == "" && st.info != nil {
		model = st.info.model
	}
	if model != "" && len(model) <= maxModelBytes { // a longer one is not fit to label a metric
		st.setModel(model)
	}
	if st.headers.bytes > c.Limits.MaxHeaderBytes {
		return tooLarge(fmt.Sprintf("The request headers are larger than %d bytes.", c.Limits.MaxHeaderBytes))
	}
	if st.headers.total > c.Limits.MaxHeaders {
		return tooLarge(fmt.Sprintf("The request has more than %d headers.", c.Limits.MaxHeaders))
	}
	if err := c.ambiguous(&st.headers); err != nil {
		return err
	}
	if len(model) > maxModelBytes {
		return modelTooLong()
	}
	st.server.warnUnread(c, &st.headers)
	metadata := m.GetMetadataContext()
	st.subset = subsetOf(metadata)
	if st.subset.Set && len(st.subset.Members) == 0 {
		return fmt.Errorf("extproc: the subset hint is empty: %w", flowcontrol.ErrNoEndpoint)
	}
	c.identify(&st.identity, &st.headers, metadata, m.GetAttributes())
	if c.classMeta != nil {
		st.class = metadata
	}
	if st.headers.end && st.api != noAPI && st.modelNeeded() && st.model == "" {
		return badRequest("model", "The request has no body, so the field \"model\" is missing.")
	}
	return nil
}

// checkAnnouncedLength refuses a body that is announced to be too large before it is transferred. In BUFFERED_PARTIAL
// only a part of it will come.
func (st *mainStream) checkAnnouncedLength() error {
	limit := st.cfg.Limits.MaxBodyBytes
	if st.modes.request != modePartial && st.headers.contentLength() > limit {
		return bodyTooLarge(limit)
	}
	return nil
}

// modelNeeded reports whether the flow, the tier, the placement or a rewrite depends on the model's name.
func (st *mainStream) modelNeeded() bool {
	c := st.cfg
	return c.RoutesByModel || len(c.models) > 0 || c.otherModels != nil || st.identity.byModel
}

// bodyWanted reports whether to wait for the body before the request is offered to the controller.
func (st *mainStream) bodyWanted() bool {
	c := st.cfg
	if st.passes || st.headers.end || st.headers.upgrades() {
		return false
	}
	asks := st.mayAskForUsage()
	rewrite := st.target != st.model
	lacking := rewrite || st.model == "" && st.modelNeeded()
	if m := st.modes.request; m == modeNone || m == modeStreamed {
		if c.RequestBody == BodyAlways || c.RequestBody == BodyAuto && lacking {
			st.server.once.warn(st.server.log, "mode "+m.String(),
				"Envoy's request_body_mode does not let the body be read before the destination is named, so the model "+
					"is known from the trusted header only, and is not rewritten: use BUFFERED",
				"mode", m.String())
		}
		return false
	}
	switch c.RequestBody {
	case BodyNever:
		return false
	case BodyAlways:
		return true
	default:
		// In FULL_DUPLEX_STREAMED the body arrives anyway, so it is read.
		return lacking || st.modes.request == modeFullDuplex || asks
	}
}

// offerWithBody reads the collected body and offers the request.
func (st *mainStream) offerWithBody() error {
	st.enter(deciding)
	if err := st.readBody(); err != nil {
		return st.refuse(err)
	}
	return st.offer()
}

// readBody reads the collected body and completes what the headers said. The request is to be refused with the error.
func (st *mainStream) readBody() error {
	b := &st.body
	if !b.whole {
		return st.readPart()
	}
	if err := b.scan(st.headers.values[slotContentType]); err != nil {
		if st.api != noAPI || st.model == "" && st.modelNeeded() && b.mayNameModel(st.headers.values[slotContentType]) {
			return err
		}
		b.fields = body.Fields{} // nobody knows what this path takes
	}
	f := &b.fields
	if len(f.Model) > maxModelBytes { // even if the header names another model: the fields are kept
		return modelTooLong()
	}
	if st.model == "" && st.modelNeeded() && st.api != noAPI {
		switch {
		case f.Model != "":
		case f.ModelSeen && f.ModelEnd == 0:
			return badRequest("model", "The field \"model\" is not a string.")
		case f.ModelSeen:
			return badRequest("model", "The field \"model\" is empty.")
		default:
			return badRequest("model", "The field \"model\" is missing.")
		}
	}
	if st.model == "" && f.Model != "" {
		st.setModel(f.Model)
	}
	if len(st.edits()) == 0 && st.modes.request != modeFullDuplex {
		st.dropBody() // Envoy holds it
	}
	return nil
}

// readPart deals with the first part of a body whose rest does not come (BUFFERED_PARTIAL). Engines read the last of
// duplicate fields, which may come after the part. So the part names no model, and no model is replaced in it.
func (st *mainStream) readPart() error {
	if st.model == "" && st.modelNeeded() && st.api != noAPI {
		return badRequest("model", fmt.Sprintf("The body is too long for its field \"model\" to be known: only its first %d "+
			"bytes are read here, and the field may come again after them.", len(st.body.bytes)))
	}
	if st.target != st.model {
		st.server.once.warn(st.server.log, "part", "a body is longer than what Envoy shows of it (BUFFERED_PARTIAL), so the "+
			"model in it is not replaced by its target: use BUFFERED", "model", st.model, "target", st.target)
	}
	st.dropBody()
	return nil
}
