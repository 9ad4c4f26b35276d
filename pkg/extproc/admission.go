package extproc

import (
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
	s, q := st.server, &st.request
	placement, err := s.picker.Prepare(q.Target, q.Subset)
	if err != nil {
		return st.refuse(unplaceable(err, q.Model, st.cfg.rules.Names(q.Model) || st.cfg.rules.Names(q.Target)))
	}
	st.placement, st.offered = placement, true
	st.countTier()
	model, target := q.Labels()
	cost, tokens := st.cost()
	r := &flowcontrol.Request{
		ID:          st.id,
		Flow:        q.Flow,
		Model:       model,
		TargetModel: target,
		Tier:        q.Tier,
		TierName:    st.tierName(),
		Cost:        cost,
		Tokens:      tokens,
		Path:        q.Class,
		Deadline:    q.Deadline,
		Placement:   placement,
	}
	if d, ok := st.reader.Deadline(); ok && (r.Deadline.IsZero() || d.Before(r.Deadline)) {
		r.Deadline = d
	}
	if q.PassesOn {
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
// buffer filter before Weir there is no body to answer yet, and Envoy takes onQueued's instead
// (TestOneOverrideForTheBodyPhase, TestOverrideBeforeTheBodyIsWhole).
func (st *mainStream) extendForBody() error {
	if st.request.ContentLength < slowBody {
		return nil
	}
	return st.extend(time.Until(st.body.arrival.deadline.at()) + st.cfg.LongestWait)
}

// countTier counts a tier that the request asked for and was not given.
func (st *mainStream) countTier() {
	q, m, tiers := &st.request, st.server.metrics, st.cfg.Tiers
	if q.UnknownTier {
		m.unknownPriority.Inc()
	}
	if q.AskedTier != q.Tier {
		m.clamps.WithLabelValues(tiers[q.AskedTier].Name, tiers[q.Tier].Name).Inc()
	}
}
