package extproc

import (
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// offer offers the request to the controller, waits for its verdict, and answers Envoy. An error ends the stream.
func (st *mainStream) offer() error {
	s, q := st.server, &st.request
	placement, err := s.picker.Prepare(q.Target, q.Subset)
	if err != nil {
		return st.refuse(unplaceable(err, q.Model, st.cfg.rules.Names(q.Model) || st.cfg.rules.Names(q.Target)))
	}
	st.grant.placement = placement
	s.metrics.countTier(q, st.cfg.Tiers)
	model, target := q.Labels()
	cost, tokens := st.cost()
	r := &flowcontrol.Request{
		ID:          st.line.id,
		Flow:        q.Flow,
		Model:       model,
		TargetModel: target,
		Tier:        q.Tier,
		TierName:    st.cfg.Tiers[q.Tier].Name,
		Cost:        cost,
		Tokens:      tokens,
		Path:        q.Class,
		Deadline:    q.Deadline,
		Placement:   placement,
	}
	if d, ok := st.reader.Deadline(); ok && (r.Deadline.IsZero() || d.Before(r.Deadline)) {
		r.Deadline = d
	}
	var lease Lease
	if q.PassesOn {
		lease, err = s.controller.PassOn(r)
	} else {
		r.OnQueued = st.onQueued
		lease, err = s.controller.TryEnqueue(&st.reader, r)
	}
	if err != nil {
		return st.reject(rejectionOf(err))
	}
	st.state.enter(granted)
	st.grant.take(lease)
	if !st.modes.echoesResponse { // otherwise the main stream is its own gate
		st.link = s.links.open(&st.grant, q, st.begun)
	}
	return st.answerRequest()
}

// onQueued is called in the stream's goroutine just before the request waits.
func (st *mainStream) onQueued(maxWait time.Duration) {
	st.grant.queued = time.Now()
	// An error needs no reaction here: the reader sees the end of the stream.
	_ = st.extend(maxWait)
	st.receiveInBackground()
}
