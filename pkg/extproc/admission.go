package extproc

import (
	"errors"
	"fmt"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// LongestHold is the longest that Envoy holds a request for an external processor (max_message_timeout).
const LongestHold = time.Hour

// waitMargin is added to the longest wait of a request for the message timeout that Envoy is asked for.
const waitMargin = 5 * time.Second

// slowBody is the announced length, in bytes, from which Weir asks Envoy for the time that a body takes. Shorter bodies
// are covered by Envoy's own message timeout, and spared the message.
const slowBody = 64 << 10

// offer offers the request to the controller, waits for its verdict, and answers Envoy. An error ends the stream.
func (st *mainStream) offer() error {
	s, c := st.server, st.cfg
	placement, err := s.picker.Prepare(st.target, st.subset)
	switch {
	case errors.Is(err, flowcontrol.ErrUnknownModel) && !c.named[st.model] && !c.named[st.target]:
		return st.refuse(unknownModel(st.model))
	case errors.Is(err, flowcontrol.ErrUnknownModel): // the operator knows it: an endpoint for it may come
		return st.refuse(fmt.Errorf("%w: %s", flowcontrol.ErrNoEndpoint, err.Error()))
	case err != nil:
		return st.refuse(fmt.Errorf("%w: %w", flowcontrol.ErrNoEndpoint, err))
	}
	st.placement = placement
	st.resolveTier()
	model, target := st.labels()
	st.flow = st.identity.flowKey(st.model, st.target)
	cost, tokens := st.cost()
	r := &flowcontrol.Request{
		ID:          st.id,
		Flow:        st.flow,
		Model:       model,
		TargetModel: target,
		Tier:        st.rank,
		TierName:    c.Tiers[st.rank].Name,
		Cost:        cost,
		Tokens:      tokens,
		Path:        c.path(&st.headers),
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
	st.enter(granted)
	if st.lease != nil {
		st.preempted = st.lease.Preempted()
		st.completion.Unsent = true
	}
	st.linkToGate()
	st.nameInLog()
	return st.answerRequest()
}

// onQueued is called in the stream's goroutine just before the request waits.
func (st *mainStream) onQueued(maxWait time.Duration) {
	st.queued = time.Now()
	// An error needs no reaction here: the reader sees the end of the stream.
	_ = st.extend(maxWait)
	st.receiveInBackground()
}

// extend asks Envoy to wait at least that long for the answer to its last message.
func (st *mainStream) extend(wait time.Duration) error {
	return st.send(&extprocv3.ProcessingResponse{
		OverrideMessageTimeout: durationpb.New(min(wait+waitMargin, LongestHold)),
	})
}

// extendForBody asks Envoy to wait for the answer to a large body, which is awaited, until the body is late and then as
// long as any request may stand in the queue. Envoy's message timeout runs while it writes the body, and many large
// bodies at once take long. Of one phase Envoy takes one such message, so this one has to cover all of it; without a
// buffer filter before Weir there is no body to answer yet, and Envoy takes onQueued's instead (TestOneOverrideForTheBodyPhase,
// TestOverrideBeforeTheBodyIsWhole).
func (st *mainStream) extendForBody() error {
	if st.headers.contentLength() < slowBody {
		return nil
	}
	return st.extend(time.Until(st.arrival.deadline.at()) + st.cfg.LongestWait)
}

// resolveTier determines the request's tier and counts what it was not given.
func (st *mainStream) resolveTier() {
	c, m := st.cfg, st.server.metrics
	requested, effective, unknown := c.tier(&st.headers, st.class, st.model, st.identity.tenant)
	if unknown {
		m.unknownPriority.Inc()
	}
	if requested != effective {
		m.clamps.WithLabelValues(c.Tiers[requested].Name, c.Tiers[effective].Name).Inc()
	}
	st.rank = effective
}

// waited returns how long the request has stood in the queue, up to now or to its grant, and reports whether it bypassed
// the queue.
func (st *mainStream) waited() (wait time.Duration, bypass bool) {
	switch {
	case st.lease != nil:
		wait, queued := st.lease.Queued()
		return wait, !queued
	case !st.queued.IsZero():
		return time.Since(st.queued), false
	default:
		return 0, false
	}
}
