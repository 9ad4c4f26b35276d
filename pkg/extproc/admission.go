package extproc

import (
	"time"

	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// offer offers the request to the controller, waits for the verdict, and replies to Envoy. An error ends the stream.
func (st *mainStream) offer() error {
	s, q := st.server, &st.request
	q.Subset = s.picker.Require(q.Subset, &q.Requirements)
	placement, err := s.picker.Prepare(q.Target, q.Subset, q.Needs)
	if err != nil {
		return st.refuse(unplaceable(err, q.Model, st.cfg.rules.Names(q.Model) || st.cfg.rules.Names(q.Target)))
	}
	if placement, err = st.confine(placement); err != nil {
		return st.refuse(err)
	}
	st.grant.placement = placement
	s.metrics.countTier(q, st.cfg.Tiers)
	model, target := q.Labels()
	cost, tokens := st.cost()
	st.grant.affinity = st.rate(placement)
	st.classify()
	path := q.Class
	if prompt, known := st.prompt(); known {
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
		r.Tenant, r.Uses = st.quotaOf()
	}
	if d, ok := st.reader.Deadline(); ok && (r.Deadline.IsZero() || d.Before(r.Deadline)) {
		r.Deadline = d
	}
	st.recordOffer(r)
	st.traceOffer()
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
	st.recordGrant()
	if st.grant.affinity != nil && lease != nil {
		st.grant.expects(st.grant.affinity.Granted())
	}
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
func (st *mainStream) confine(placement Placement) (Placement, error) {
	q, picker := &st.request, st.server.picker
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

// leastSession is the assumed length of a session's unknown prompt, in tokens.
const leastSession = 1000

// rate finds the endpoints with the request's prompt cached. It returns nil if these are unknown.
func (st *mainStream) rate(placement Placement) Affinity {
	q := &st.request
	if q.PromptUnknown {
		st.server.metrics.promptsUnknown.Inc()
		st.server.once.warn(st.server.log, "affinity", "scheduling.affinity knows nothing of a request, because its body is not "+
			"read, or names no session: it goes where fewest are. Prefixes need a request_body_mode of BUFFERED or "+
			"FULL_DUPLEX_STREAMED, and requestBody other than never", "request_body_mode", st.modes.request.String())
	}
	unknown := len(q.Prompt.Keys) == 0 && q.Session == 0 && st.cfg.Cost != CostUncached // which also needs the length
	if unknown || q.PassesOn {
		return nil
	}
	switch c := st.grant.charge; {
	case c != nil && c.Estimated().Input > 0:
		q.Prompt.Tokens = c.Estimated().Input
	case q.Session != 0:
		q.Prompt.Tokens = max(leastSession, q.ContentLength/body.BytesPerToken)
	default:
		q.Prompt.Tokens = int64(q.Prompt.Bytes) / body.BytesPerToken
	}
	if q.Session != 0 {
		q.Prompt.FollowSession(q.Session)
	}
	return st.server.picker.Rate(placement, &q.Prompt, st.watches())
}

// watches reports whether the first token of the request's answer will be seen. A stream's headers come before it,
// other answers' headers long after it.
func (st *mainStream) watches() bool {
	return st.request.Streams && (st.modes.echoesResponse || st.server.links.presence.certain())
}

// onQueued is called in the stream's goroutine just before the request waits.
func (st *mainStream) onQueued(maxWait time.Duration) {
	st.grant.queued = time.Now()
	// An error needs no reaction here: the reader sees the end of the stream.
	_ = st.extend(maxWait)
	st.receiveInBackground()
}
