package extproc

import (
	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

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

// expects lowers the charge of a granted request if its engine is expected to have some of the prompt cached.
func (g *grant) expects() {
	if g.affinity == nil || g.lease == nil {
		return
	}
	cached := g.affinity.Granted()
	if g.charge == nil || cached <= 0 {
		return
	}
	if cost, less := g.charge.Expect(cached); less {
		g.lease.OnExpected(fairqueue.Cost(cost))
	}
}

// tellAffinity passes on the result for the prompt. An engine that refused the request, or that Envoy skipped, has not
// read it.
func (g *grant) tellAffinity(c *flowcontrol.Completion, skipped, reported bool) {
	switch {
	case g.affinity == nil:
	case c.Unsent || c.Status >= 400 || skipped:
		g.affinity.Failed()
	case reported:
		g.affinity.Reported(c.Usage.Cached)
	}
}
