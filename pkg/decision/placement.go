package decision

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// MostNamed is the largest number of requests, reasons or endpoints listed one by one.
const MostNamed = 20

// placement describes the request's endpoint, unless it is "", and the comparison of the endpoints.
func (p *printer) placement(endpoint string, d *scheduling.Decision) {
	switch {
	case endpoint == "":
		p.say("It went nowhere. The endpoints of its pool, when it was last tried:")
	case d.Prefill != "":
		p.say("It went to %s, and its prompt to the prefill engine %s. The endpoints of its pool, before it was counted:", endpoint, d.Prefill)
	default:
		p.say("It went to %s. The endpoints of its pool, before it was counted:", endpoint)
	}
	shown, chosen := d.Candidates, false
	if len(shown) > MostNamed {
		shown = shown[:MostNamed]
	}
	for i := range shown {
		p.say("  %s", candidate(&shown[i], shown[i].Address == endpoint))
		chosen = chosen || shown[i].Address == endpoint
	}
	rest := d.Candidates[len(shown):]
	for i := range rest {
		if rest[i].Address == endpoint && !chosen {
			p.say("  %s", candidate(&rest[i], true))
			rest = rest[:len(rest)-1]
			break
		}
	}
	if more := len(rest) + d.More; more > 0 {
		p.say("  and %d more", more)
	}
	if endpoint != "" {
		p.rule(d)
	}
}

// rule describes the rule that chose the endpoint.
func (p *printer) rule(d *scheduling.Decision) {
	switch {
	case d.Policy == scheduling.PolicyMindRouter:
		p.say("Among the endpoints that it may use the most points go first, and among equals the next in turn.")
	case d.Prompt > 0:
		p.say("Among the endpoints that it may use the least cost goes first, which is its %d tokens less those cached, times the "+
			"load of the endpoint, and twice the tokens to read before; and among equals the next in turn.", d.Prompt)
		if d.Similar {
			p.say("No endpoint had cached more of it than all have, so an endpoint that gets similar prompts may cost a quarter more.")
		}
	case d.Adapter:
		p.say("Among the endpoints that it may use the least cost goes first: the tokens for its adapter, times the load of the endpoint.")
	default:
		p.say("Among the endpoints that it may use the highest score goes first, and among equals the next in turn.")
	}
}

// points describes a score by MindRouter's points.
func points(s *scheduling.Score) string {
	of := func(n int64) string { return strconv.FormatFloat(float64(n)/scheduling.Millionths, 'f', 2, 64) }
	return fmt.Sprintf("%s points (loaded %s, utilisation %s, queue %s, throughput %s, latency %s, priority %s)", of(s.Total()),
		of(s.Loaded), of(s.Utilisation), of(s.Queue), of(s.Throughput), of(s.Latency), of(s.Priority))
}

// candidate describes an eligible endpoint.
func candidate(c *scheduling.Candidate, chosen bool) string {
	text := fmt.Sprintf("%s: %d in flight", c.Address, c.Stock)
	if c.Foreign > 0 {
		text += fmt.Sprintf(", %d of others", c.Foreign)
	}
	switch {
	case len(c.Failed) > 0:
		var reasons []string
		for _, f := range c.Failed {
			reasons = append(reasons, f.Reason)
		}
		text += ", ruled out: " + strings.Join(reasons, ", ")
	case c.Score != nil:
		text += ", " + points(c.Score)
	case c.Cost > 0:
		text += fmt.Sprintf(", %d tokens cached", c.Cached)
		if c.Loading > 0 {
			text += fmt.Sprintf(", %d for loading the adapter", c.Loading)
		}
		if c.Prompts > 0 {
			text += fmt.Sprintf(", %d tokens to read before", c.Prompts)
		}
		text += fmt.Sprintf(", cost %d", c.Cost)
	default:
		text += fmt.Sprintf(", score %d", c.Total)
	}
	if chosen {
		text += " (chosen)"
	}
	return text
}
