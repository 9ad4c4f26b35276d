package extproc

import (
	"cmp"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// offer offers the request to the controller, waits for the verdict, and replies to Envoy. An error ends the stream.
func (st *mainStream) offer() error {
	s, q := st.server, &st.request
	q.Subset = s.picker.Require(q.Subset, &q.Requirements)
	placement, err := s.picker.Prepare(q.Target, q.Subset, q.Needs)
	if err != nil {
		return st.refuse(unplaceable(err, q.Model, st.cfg.rules.Names(q.Model) || st.cfg.rules.Names(q.Target)))
	}
	if placement, err = confine(placement, q, s.picker); err != nil {
		return st.refuse(err)
	}
	st.grant.placement = placement
	s.metrics.countTier(q, st.cfg.Tiers)
	model, target := q.Labels()
	cost, tokens := st.cost()
	st.grant.affinity = st.rate(placement)
	st.classify()
	path := q.Class
	if prompt, known := st.grant.prompt(st.cfg.Cost); known {
		cost, path = fairqueue.Cost(st.grant.charge.Fix(int64(prompt.Cached))), withPrompt(path, prompt)
	}
	r := &flowcontrol.Request{
		ID:          st.line.id,
		Flow:        q.Flow,
		Model:       model,
		TargetModel: target,
		Tier:        q.Tier,
		TierName:    st.cfg.Tiers[q.Tier].Name,
		Cost:        cost,
		Tokens:      tokens,
		Path:        path,
		Deadline:    q.Deadline,
		Placement:   placement,
	}
	if st.cfg.Quotas && !q.PassesOn {
		r.Tenant, r.Uses = cmp.Or(q.Tenant, request.Anonymous), st.grant.uses()
	}
	if d, ok := st.reader.Deadline(); ok && (r.Deadline.IsZero() || d.Before(r.Deadline)) {
		r.Deadline = d
	}
	st.record.offer(r, q.Target, placement)
	st.trace.offer()
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
	st.record.grant(&st.grant)
	st.grant.expects()
	if !st.modes.echoesResponse { // otherwise the main stream is its own gate
		st.link = s.links.open(&st.grant, q, st.begun)
	}
	return st.answerRequest()
}

// withPrompt returns a copy of the path, which may be nil, with a prompt.
func withPrompt(path *fairqueue.Path, p fairqueue.Prompt) *fairqueue.Path {
	var with fairqueue.Path
	if path != nil {
		with = *path
	}
	with.Prompt = p
	return &with
}

// confine confines the placement to the engines whose context length suffices for the request.
func confine(placement Placement, q *request.Request, picker Picker) (Placement, error) {
	length := lengthOf(q)
	if length.Likely == 0 {
		return placement, nil
	}
	subset, err := picker.Confine(q.Target, q.Subset, length)
	if err != nil {
		return nil, &fieldError{sentinel: flowcontrol.ErrBadRequest, message: err.Error()}
	}
	if subset == nil {
		return placement, nil
	}
	if placement, err = picker.Prepare(q.Target, *subset, q.Needs); err != nil {
		return nil, unplaceable(err, q.Model, true) // the endpoint left meanwhile
	}
	return placement, nil
}

// onQueued is called in the stream's goroutine just before the request waits.
func (st *mainStream) onQueued(maxWait time.Duration) {
	st.grant.queued = time.Now()
	// An error needs no reaction here: the reader sees the end of the stream.
	_ = st.extend(maxWait)
	st.receiveInBackground()
}
