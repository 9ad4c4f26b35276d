package simulate

import (
	"math"
	"time"

	"github.com/weir-epp/weir/internal/config"
)

// service is the flows' demanded and attained service, second by second, while requests arrive. A prompt token counts 1
// and an answer token 2, as in the VTC paper (Sheng et al. 2024). A request's service is spread evenly from its first
// token to its last, as in the authors' evaluation.
type service struct {
	seconds int
	weights map[string]config.Decimal
	index   map[string]int
	names   []string // flows by first arrival
	flows   []flowService
}

// flowService is one flow's service.
type flowService struct {
	weight      float64
	asked, done []int64 // in the second before each index
}

// The limits of a service.
const (
	mostServiceFlows   = 100
	mostServiceSeconds = 4 * 3600
	serviceWindow      = 60 // seconds
	serviceWarmUp      = 30 // seconds before the first window
)

func newService(length time.Duration, weights map[string]config.Decimal) *service {
	return &service{seconds: int(length / time.Second), weights: weights, index: map[string]int{}}
}

func (s *service) flow(name string) *flowService {
	i, known := s.index[name]
	if !known {
		i = len(s.flows)
		s.index[name] = i
		f := flowService{weight: 1, asked: make([]int64, s.seconds+1), done: make([]int64, s.seconds+1)}
		if w := s.weights[name]; w > 0 {
			f.weight = float64(w.Millionths()) / 1e6
		}
		s.flows, s.names = append(s.flows, f), append(s.names, name)
	}
	return &s.flows[i]
}

func workOf(prompt, output int) int64 { return int64(prompt) + 2*int64(output) }

func (s *service) arrived(r *Request) {
	f := s.flow(r.Flow)
	if at := int(r.At / time.Second); at < s.seconds {
		f.asked[at+1] += workOf(r.Prompt, r.Output)
	}
}

// finished spreads the service of a request from its first token to its last.
func (s *service) finished(r *Request, first, last time.Duration) {
	f, all := s.flow(r.Flow), workOf(r.Prompt, r.Output)
	spread := max(1, last-first)
	until := func(at time.Duration) int64 { // service done by then
		part := float64(min(max(at-first, 0), spread)) / float64(spread)
		return int64(math.Round(part * float64(all)))
	}
	before := int64(0)
	for at := int(first / time.Second); at < s.seconds && before < all; at++ {
		now := until(time.Duration(at+1) * time.Second)
		f.done[at+1] += now - before
		before = now
	}
}

// ServiceFigures are the evenness of service, in windows of a minute. A window begins at each second after the first
// half minute, if requests arrive until its end. Service is per second, divided by the flows' weights.
type ServiceFigures struct {
	// MaxDifference and MeanDifference are the largest and the mean difference of the windows. A window's difference is
	// the sum of the flows' shortfalls: a flow's shortfall is to the largest service of a flow or to its own demand,
	// whichever is less.
	MaxDifference  float64 `json:"maxDifference"`
	MeanDifference float64 `json:"meanDifference"`
	// WorstDifference is the largest MaxDifference of several runs.
	WorstDifference float64 `json:"worstDifference"`
	// Jain is the mean, over the windows, of Jain's index of the flows' service over their max-min fair share of all
	// service; LeastJain the least.
	Jain      float64 `json:"jain"`
	LeastJain float64 `json:"leastJain"`
	// TokensPerSecond counts the tokens of prompts and answers until the last answer has ended.
	TokensPerSecond float64 `json:"tokensPerSecond"`
	// Flows are the flows. Service is each flow's service by window, and Difference the difference by window.
	Flows      []string    `json:"flows"`
	Service    [][]float64 `json:"service"`
	Difference []float64   `json:"difference"`
}

// figures returns the figures. It is called once, at the end.
func (s *service) figures() *ServiceFigures {
	for i := range s.flows {
		f := &s.flows[i]
		for at := 1; at <= s.seconds; at++ { // from here on, sums from the beginning
			f.asked[at] += f.asked[at-1]
			f.done[at] += f.done[at-1]
		}
	}
	f := &ServiceFigures{LeastJain: 1, Flows: s.names}
	indexed := 0
	for from := serviceWarmUp; from+serviceWindow <= s.seconds; from++ {
		got, asked, wanted := s.window(from, from+serviceWindow)
		difference := differenceOf(got, asked)
		f.MaxDifference = max(f.MaxDifference, difference)
		f.MeanDifference += difference
		f.Service, f.Difference = append(f.Service, got), append(f.Difference, difference)
		if jain, ok := jainOf(got, s.fairShares(got, wanted)); ok {
			f.Jain += jain
			f.LeastJain = min(f.LeastJain, jain)
			indexed++
		}
	}
	f.MeanDifference /= float64(max(1, len(f.Difference)))
	f.Jain /= float64(max(1, indexed))
	f.WorstDifference = f.MaxDifference
	return f
}

// window returns each flow's service in a window, per second and divided by the weights: got, asked in the window, and
// wanted. wanted is asked plus the unserved demand at the window's begin.
func (s *service) window(from, to int) (got, asked, wanted []float64) {
	for i := range s.flows {
		f := &s.flows[i]
		done, arrived := f.done[to]-f.done[from], f.asked[to]-f.asked[from]
		left := f.asked[from] - f.done[from]
		per := f.weight * float64(to-from)
		got, asked, wanted = append(got, float64(done)/per), append(asked, float64(arrived)/per), append(wanted, float64(arrived+left)/per)
	}
	return got, asked, wanted
}

// differenceOf returns the difference in a window.
func differenceOf(got, asked []float64) float64 {
	most, sum := 0.0, 0.0
	for _, x := range got {
		most = max(most, x)
	}
	for i, x := range got {
		sum += min(most-x, math.Abs(asked[i]-x))
	}
	return sum
}

// fairShares returns the max-min fair shares, over the weights, of all service together.
func (s *service) fairShares(got, wanted []float64) []float64 {
	left := 0.0
	for i := range got {
		left += got[i] * s.flows[i].weight
	}
	shares, open := make([]float64, len(got)), len(got)
	for open > 0 {
		weights := 0.0
		for i := range shares {
			if shares[i] == 0 {
				weights += s.flows[i].weight
			}
		}
		level, closed := left/weights, false
		for i := range shares {
			if shares[i] == 0 && wanted[i] <= level { // it wants at most its share
				shares[i] = max(wanted[i], math.SmallestNonzeroFloat64)
				left -= shares[i] * s.flows[i].weight
				open--
				closed = true
			}
		}
		if closed {
			continue
		}
		for i := range shares {
			if shares[i] == 0 {
				shares[i] = level
			}
		}
		return shares
	}
	return shares
}

// jainOf returns Jain's index of the flows' service over their fair shares; ok is false if all fair shares are 0.
func jainOf(got, shares []float64) (index float64, ok bool) {
	sum, squares, n := 0.0, 0.0, 0
	for i, x := range got {
		if shares[i] > 1e-9 {
			x /= shares[i]
			sum += x
			squares += x * x
			n++
		}
	}
	if squares == 0 {
		return 0, false
	}
	return sum * sum / (float64(n) * squares), true
}
