package simulate

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Estimates determine the charges of requests before their end, if costs are tokens. The final cost is the actual
// usage. The zero value, "learned", charges epp's own estimate at the grant. The others are for comparison:
//
//   - "exact" is the cost itself: an oracle of lengths.
//   - "within-50%" is the prompt and a length of the answer that is drawn evenly between 50 % less and 50 % more.
//   - "streamed" is the prompt at the grant, and each token of the answer when it is generated (Sheng et al. 2024, VTC without
//     prediction).
//   - "late" is nothing at the grant, and everything at the end, as schedulers do that learn of usage when it is reported.
//
// With the second and the third, an answer longer than its estimate is charged further, token by token.
type Estimates struct {
	kind   estimatesKind
	within int // percent
}

type estimatesKind uint8

const (
	learned estimatesKind = iota
	around                // exact: within 0 %
	streamed
	late
)

var errEstimates = errors.New("must be learned, exact, within-50% (or another whole number up to 100), streamed or late")

// ParseEstimates parses the text of Estimates.
func ParseEstimates(text string) (Estimates, error) {
	switch text {
	case "learned":
		return Estimates{}, nil
	case "exact":
		return Estimates{kind: around}, nil
	case "streamed":
		return Estimates{kind: streamed}, nil
	case "late":
		return Estimates{kind: late}, nil
	}
	number, isWithin := strings.CutPrefix(text, "within-")
	number, isPercent := strings.CutSuffix(number, "%")
	if percent, err := strconv.Atoi(number); err == nil && isWithin && isPercent && percent >= 1 && percent <= 100 {
		return Estimates{kind: around, within: percent}, nil
	}
	return Estimates{}, errEstimates
}

// charging charges requests by Estimates other than learned ones.
type charging struct {
	of  Estimates
	rng *rand.Rand
}

// begin returns a request's charge at the grant, and the charged length of its answer.
func (c *charging) begin(r *Request, w *estimate.Weights) (cost fairqueue.Cost, output int) {
	switch c.of.kind {
	case around:
		output = r.Output
		if c.of.within > 0 {
			factor := 1 + (2*c.rng.Float64()-1)*float64(c.of.within)/100
			output = max(1, int(float64(r.Output)*factor+0.5))
		}
	case late:
		return 1, 0
	case streamed, learned:
	}
	return costOf(w, r.Prompt, output), output
}

// follows reports whether growing answers are charged further.
func (c *charging) follows() bool {
	return c.of.kind == around && c.of.within > 0 || c.of.kind == streamed
}

func costOf(w *estimate.Weights, prompt, output int) fairqueue.Cost {
	return fairqueue.Cost(w.Cost(estimate.Usage{Input: int64(prompt), Output: int64(output)}))
}
