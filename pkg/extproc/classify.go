package extproc

import (
	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/request"
)

// classify chooses the class of the request by its uncached tokens, as they are when it is offered.
func (st *mainStream) classify() {
	if q := &st.request; !q.PassesOn {
		q.Classify(st.grant.uncached(q, st.cfg.Cost))
		if q.UnknownClass {
			st.server.metrics.unknownClass.Inc()
		}
	}
}

// uncached returns the number of the request's prompt tokens that no engine is expected to have cached: by its charge,
// or else by the counted or estimated length, or the most that its body may have.
func (g *grant) uncached(q *request.Request, unit CostUnit) int64 {
	if prompt, known := g.prompt(unit); known {
		return prompt.Uncached()
	}
	switch c := g.charge; {
	case c != nil:
		return c.Estimated().Input
	case q.Size.Tokens > 0:
		return q.Size.Tokens
	default:
		return max(0, q.ContentLength) / body.BytesPerToken
	}
}
