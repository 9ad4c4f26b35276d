package extproc

import (
	"fmt"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-epp/weir/pkg/extproc/body"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// The message timeout that Envoy is asked for while a request waits: its longest wait and a margin, up to the most
// that Envoy's max_message_timeout can be.
const (
	waitMargin = 5 * time.Second
	longest    = time.Hour
)

// maxModelBytes is the longest name of a model. The name outlives the body that it came in: in the lane, the flow's key
// and the metrics.
const maxModelBytes = 1024

func modelTooLong() error {
	return badRequest("model", fmt.Sprintf("The field \"model\" is longer than %d bytes.", maxModelBytes))
}

// classHint keeps the dynamic metadata until the tier is resolved, which takes the model.
type classHint struct{ metadata *corev3.Metadata }

// read takes in the request headers, and says whether the body is wanted.
func (st *stream) read(m *extprocv3.ProcessingRequest) error {
	c, h := st.cfg, m.GetRequestHeaders()
	st.headers.read(&c.names, h.GetHeaders().GetHeaders())
	st.headers.end = h.GetEndOfStream()
	st.asked = true
	st.beginLine(h)
	st.api = apiOf(&st.headers)
	st.passes = c.PassOn == PassOnPick && c.cheap(&st.headers)
	model := st.headers.values[c.modelHeader]
	if model != "" && len(model) <= maxModelBytes { // a longer one is nothing to label a metric with
		st.named(model)
	}
	if st.headers.bytes > c.Limits.MaxHeaderBytes {
		return tooLarge(fmt.Sprintf("The request headers are larger than %d bytes.", c.Limits.MaxHeaderBytes))
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
		st.class.metadata = metadata
	}
	st.wantsBody = st.bodyWanted()
	if st.wantsBody && st.modes.request != modePartial && st.headers.contentLength() > c.Limits.MaxBodyBytes {
		return bodyTooLarge(c.Limits.MaxBodyBytes) // before it is transferred; of a partial one only a part comes
	}
	if st.headers.end && st.api != noAPI && st.modelNeeded() && st.model == "" {
		return badRequest("model", "The request has no body, so the field \"model\" is missing.")
	}
	return nil
}

// modelNeeded says that a model's name is wanted for the flow, the tier, the placement or a rewrite.
func (st *stream) modelNeeded() bool {
	c := st.cfg
	return c.RoutesByModel || len(c.models) > 0 || st.identity.byModel
}

// bodyWanted says whether to wait for the body before the request is offered to the controller.
func (st *stream) bodyWanted() bool {
	c := st.cfg
	if st.passes || st.headers.end || st.headers.upgrades() {
		return false
	}
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
		// In FULL_DUPLEX_STREAMED the body comes anyway: then it is also looked at.
		return lacking || st.modes.request == modeFullDuplex
	}
}

// readBody scans the collected body and completes what the headers said.
func (st *stream) readBody() error {
	b := &st.body
	if !b.whole {
		return st.readPart()
	}
	if err := b.scan(st.headers.values[slotContentType]); err != nil {
		if st.api != noAPI || st.model == "" && st.modelNeeded() && b.mayNameModel(st.headers.values[slotContentType]) {
			return err
		}
		b.fields = body.Fields{} // who knows what this path takes
	}
	f := &b.fields
	if len(f.Model) > maxModelBytes { // also where the header names another: the fields are kept
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
		st.named(f.Model)
	}
	if !st.rewrites() && st.modes.request != modeFullDuplex {
		st.dropBody() // Envoy holds it
	}
	return nil
}

// readPart is for the first part of a body whose rest is not seen here (BUFFERED_PARTIAL). An engine reads the last of
// duplicate fields, which may come after the part: so that names no model, and none is replaced in it.
func (st *stream) readPart() error {
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

// rewrites says that the model's value in the collected body is to be replaced.
func (st *stream) rewrites() bool {
	f := &st.body.fields
	return f.ModelEnd > 0 && f.Model != st.target && st.target != ""
}

// admit offers the request to the controller and answers Envoy. It returns when the request was granted and answered,
// or with an error when the stream is over.
func (st *stream) admit() error {
	s, c := st.server, st.cfg
	placement, err := s.picker.Prepare(st.target, st.subset)
	if err != nil {
		return st.refuse(fmt.Errorf("%w: %w", flowcontrol.ErrNoEndpoint, err))
	}
	st.placement = placement
	requested, effective, unknown := c.tier(&st.headers, st.class.metadata, st.model, st.identity.tenant)
	if unknown {
		s.metrics.unknownPriority.Inc()
	}
	if requested != effective {
		s.metrics.clamps.WithLabelValues(c.Tiers[requested].Name, c.Tiers[effective].Name).Inc()
	}
	st.rank, st.tierKnown = effective, true
	st.flow = st.identity.flowKey(st.model, st.target)
	model, target := st.labels()
	r := &flowcontrol.Request{
		Flow:        st.flow,
		Model:       model,
		TargetModel: target,
		Tier:        effective,
		TierName:    c.Tiers[effective].Name,
		Cost:        st.cost(),
		Deadline:    c.deadline(&st.headers, st.begun),
		Placement:   placement,
	}
	if d, ok := st.reader.Deadline(); ok && (r.Deadline.IsZero() || d.Before(r.Deadline)) {
		r.Deadline = d
	}
	if st.passes {
		st.lease, err = s.controller.PassOn(r)
	} else {
		r.OnQueued = st.onQueued
		st.lease, err = s.controller.TryEnqueue(&st.reader, r)
	}
	if err != nil {
		return st.reject(rejectionOf(err))
	}
	st.decided = true
	if st.lease != nil {
		st.preempted = st.lease.Preempted()
	}
	st.tieUp()
	if err := st.answerRequest(); err != nil {
		return err
	}
	st.state = placed
	st.lastAnswered = time.Now()
	if st.preempted != nil {
		st.startReader()
	}
	return nil
}

// onQueued is called in this goroutine just before it waits.
func (st *stream) onQueued(maxWait time.Duration) {
	st.queued = time.Now()
	// An error needs no answer: the reader sees the end of the stream.
	_ = st.send(&extprocv3.ProcessingResponse{
		OverrideMessageTimeout: durationpb.New(min(maxWait+waitMargin, longest)),
	})
	st.startReader()
}

// cost is the request's cost in the queue: 1, unless the gateway says otherwise.
func (st *stream) cost() fairqueue.Cost {
	if v := st.headers.values[st.cfg.costHeader]; v != "" {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && n > 0 {
			return fairqueue.Cost(min(n, int64(fairqueue.MaxCost)))
		}
	}
	return 1
}
