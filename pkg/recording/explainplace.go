package recording

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// sayPlace says to which endpoint the request went, and why.
func (e *explanation) sayPlace(id dispatch.Endpoint) {
	chosen, ok := e.board.Snapshot().ByID(id)
	if !ok {
		e.say("It went to endpoint %d.", id)
		return
	}
	if e.request.query == nil {
		e.say("It went to %s.", chosen.Address)
		return
	}
	d := e.board.Explain(e.request.query)
	if d.Prefill != "" {
		e.say("It went to %s, and its prompt to the prefill engine %s. The endpoints of its pool, with it counted:", chosen.Address, d.Prefill)
	} else {
		e.say("It went to %s. The endpoints of its pool, with it counted:", chosen.Address)
	}
	for i, c := range d.Candidates {
		if i == mostNamed {
			e.say("  and %d more", len(d.Candidates)-i)
			break
		}
		e.say("  %s", candidate(c, c.ID == id))
	}
	if e.board.Scheduler().Config().Policy == scheduling.PolicyMindRouter {
		e.say("Among the endpoints that it may use the most points go first, and among equals the next in turn.")
		return
	}
	if r := e.request.query.Ratings(); r != nil && r.Prompt > 0 {
		e.say("Among the endpoints that it may use the least cost goes first, which is its %d tokens less those cached, times the "+
			"load of the endpoint, and twice the tokens to read before; and among equals the next in turn.", r.Prompt)
		if len(r.Near) > 0 {
			e.say("No endpoint had cached more of it than all have, so an endpoint that gets similar prompts may cost a quarter more.")
		}
		return
	}
	if e.request.query.Recalled().Adapter {
		e.say("Among the endpoints that it may use the least cost goes first: the tokens for its adapter, times the load of the endpoint.")
		return
	}
	e.say("Among the endpoints that it may use the highest score goes first, and among equals the next in turn.")
}

// points describes a score by MindRouter's points.
func points(s *scheduling.Score) string {
	of := func(n int64) string { return strconv.FormatFloat(float64(n)/scheduling.Millionths, 'f', 2, 64) }
	return fmt.Sprintf("%s points (loaded %s, utilisation %s, queue %s, throughput %s, latency %s, priority %s)", of(s.Total()),
		of(s.Loaded), of(s.Utilisation), of(s.Queue), of(s.Throughput), of(s.Latency), of(s.Priority))
}

// candidate describes an endpoint that could have been chosen.
func candidate(c scheduling.Candidate, chosen bool) string {
	text := fmt.Sprintf("%s: %d in flight", c.Address, c.Stock)
	if c.Foreign > 0 {
		text += fmt.Sprintf(", %d of other replicas", c.Foreign)
	}
	if len(c.Failed) > 0 {
		var reasons []string
		for _, f := range c.Failed {
			reasons = append(reasons, f.Reason)
		}
		text += ", ruled out: " + strings.Join(reasons, ", ")
	} else {
		if c.Score != nil {
			text += ", " + points(c.Score)
		} else if c.Cost > 0 {
			text += fmt.Sprintf(", %d tokens cached", c.Cached)
			if c.Loading > 0 {
				text += fmt.Sprintf(", %d for loading the adapter", c.Loading)
			}
			if c.Prompts > 0 {
				text += fmt.Sprintf(", %d tokens to read before", c.Prompts)
			}
			text += fmt.Sprintf(", cost %d", c.Cost)
		} else {
			text += fmt.Sprintf(", score %d", c.Total)
		}
	}
	if chosen {
		text += " (chosen)"
	}
	return text
}
