package estimate

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

// naive knows all that has happened, and estimates from that with floats and lists, as the package comment says it.
// It forgets nobody, so it is told of few flows.
type naive struct {
	cfg   Config
	flows []string
	seen  map[[2]string]*history
}

// history is what is known of a flow with a model.
type history struct {
	bytes, tokens float64
	overhead      float64
	answers       []answer
	cold          float64 // weight of the cold start
}

type answer struct{ tokens, weight float64 }

func (n *naive) ratio(flow, model string) float64 {
	h := n.seen[[2]string{flow, model}]
	if h == nil {
		return n.prior(model)
	}
	return (h.bytes + 512*n.prior(model)) / (h.tokens + 512)
}

// prior asks for every number of changed minds what the nearest median to the cold ratio is, and takes the nearest
// result.
func (n *naive) prior(model string) float64 {
	cold := math.Log(float64(n.cfg.ColdRatio) / 1e6)
	votes := []float64{cold}
	for _, f := range n.flows {
		if h := n.seen[[2]string{f, model}]; h != nil && h.tokens > 0 {
			votes = append(votes, math.Log(min(max(h.bytes/h.tokens, 1), 8)))
		}
	}
	if len(votes)%2 == 0 {
		votes = append(votes, cold)
	}
	slices.Sort(votes)
	middle := len(votes) / 2
	side := 1.0
	if votes[middle] < cold {
		side = -1
	}
	best := math.Inf(1)
	for k := 0; k <= middle; k++ {
		m := votes[middle-k*int(side)]
		best = min(best, max(0, side*(m-cold))+float64(k)*math.Log(1.09))
	}
	return math.Exp(cold + side*best)
}

func (n *naive) input(r *Request) float64 {
	if r.Tokens >= 0 {
		return float64(r.Tokens)
	}
	text := float64(r.Text)
	if r.Text < 0 {
		overhead := 256.0
		if h := n.seen[[2]string{r.Flow, r.Model}]; h != nil && h.overhead >= 0 {
			overhead = h.overhead
		}
		if text = max(0, float64(r.Length)-overhead); r.Length > 0 {
			text = max(1, text)
		}
	}
	return float64(r.Numbers) + text/n.ratio(r.Flow, r.Model)
}

// untaught returns the tokens of a prompt whose flow is not believed: of its bytes without an overhead, at the model's
// ratio, and of each part that is not measured.
func (n *naive) untaught(r *Request, overhead float64) float64 {
	if r.Tokens >= 0 {
		return float64(r.Tokens)
	}
	media := float64(r.Media)
	text := float64(r.Text + r.Rest)
	if r.Text < 0 {
		text = max(0, float64(r.Length)-overhead)
		if r.Length < 0 {
			media = max(1, media)
		}
	}
	return float64(r.Numbers) + 2000*media + text/n.prior(r.Model)
}

// withoutRest is r as the stock counts it: fields that perhaps no engine knows take no room from others.
func withoutRest(r *Request) *Request {
	without := *r
	without.Rest = 0
	return &without
}

// answer returns the bounds of the prediction of one answer: the lists do not know buckets, and a weight that is just
// at the quantile may be on either side.
func (n *naive) answer(r *Request) (least, most float64) {
	h := n.seen[[2]string{r.Flow, r.Model}]
	if h == nil {
		return float64(max(n.cfg.ColdOutput, n.cfg.Floor)), float64(max(n.cfg.ColdOutput, n.cfg.Floor))
	}
	all := append(slices.Clone(h.answers), answer{float64(n.cfg.ColdOutput), h.cold})
	slices.SortFunc(all, func(a, b answer) int { return int(a.tokens - b.tokens) })
	total := 0.0
	for _, a := range all {
		total += a.weight
	}
	quantile := func(part float64) float64 {
		sum := 0.0
		for _, a := range all {
			if sum += a.weight; sum >= part*total-1e-9 {
				return a.tokens
			}
		}
		return all[len(all)-1].tokens
	}
	part := float64(n.cfg.Quantile) / 1e6
	slack := 0.12 // of weights that are rounded down when they are halved
	floor := float64(n.cfg.Floor)
	return max(floor, quantile(part-slack)), max(floor, quantile(part+slack)*9/8)
}

func (n *naive) learn(r *Request, u Usage) {
	key := [2]string{r.Flow, r.Model}
	h := n.seen[key]
	if h == nil {
		h = &history{overhead: -1, cold: 1}
		n.seen[key] = h
	}
	tokens := float64(u.Input - r.Numbers)
	if tokens > 0 && (r.Text >= 0 || r.Length >= 0) {
		overhead := 256.0
		if h.overhead >= 0 {
			overhead = h.overhead
		}
		text := float64(r.Text)
		if r.Text < 0 {
			text = max(0, float64(r.Length)-overhead)
		}
		if r.Length >= 0 {
			sample := float64(r.Length) - text
			if r.Text < 0 {
				sample = float64(r.Length) - tokens*n.ratio(r.Flow, r.Model)
			}
			h.overhead = overhead + (min(max(sample, 0), 4096)-overhead)/16
		}
		h.bytes += min(max(text, tokens), 8*tokens)
		h.tokens += tokens
		for h.tokens > 65_536 {
			h.bytes, h.tokens = h.bytes/2, h.tokens/2
		}
	}
	if r.MaxOutput == 0 { // it was not to have an answer
		return
	}
	h.answers = append(h.answers, answer{math.Ceil(float64(u.Output) / float64(r.Answers)), 1})
	total := h.cold
	for _, a := range h.answers {
		total += a.weight
	}
	if total > 2*float64(n.cfg.Window) {
		h.cold /= 2
		for i := range h.answers {
			h.answers[i].weight /= 2
		}
	}
}

// FuzzAgainstOracle: whatever requests and usage come, the estimates are those of the naive oracle, and bounded.
func FuzzAgainstOracle(f *testing.F) {
	f.Add([]byte("a few bytes of nothing in particular, which become requests and their usage"))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 4, 5, 6, 7, 8})
	for seed := range byte(20) {
		var b []byte
		for i := range 1500 {
			b = append(b, byte(i*i*7+i*int(seed)*13+i>>3))
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		cfg := DefaultConfig()
		n := &naive{cfg: cfg, seen: map[[2]string]*history{}}
		for i := range 7 {
			n.flows = append(n.flows, fmt.Sprint("f", i))
		}
		e := New(cfg)
		for step := 0; len(b) >= 8; step, b = step+1, b[8:] {
			number := func(i int) int64 { return int64(b[i]&15) << (b[i] >> 4) } // 0 to 15 · 2^15
			r := &Request{
				Flow: n.flows[b[0]%7], Model: fmt.Sprint("m", b[0]/7%2), Tokens: Unknown, Text: number(1), Length: number(1) + number(2),
				Answers: 1 + int64(b[3]%4), MaxOutput: Unknown,
			}
			switch b[3] >> 4 {
			case 0:
				r.Text = Unknown
			case 1:
				r.Length = Unknown
			case 2:
				r.Numbers = number(2)
			case 3:
				r.Tokens = number(2)
			case 4:
				r.MaxOutput = number(2)
			case 5:
				r.Text, r.Length = Unknown, Unknown
			case 6:
				r.Rest = number(2)
			case 7:
				r.Media = int64(b[2] & 3)
			}
			check(t, step, e, n, r)
			u := Usage{Input: number(4), Output: number(5)}
			if b[6]&1 == 0 {
				u.Input = r.Text/(1+int64(b[6]>>5)) + r.Numbers // as real ones are
			}
			e.Learn(r, u, time.Duration(b[7])*time.Second)
			n.learn(r, u)
			check(t, step, e, n, r)
		}
		checkTable(t, e)
	})
}

func check(t *testing.T, step int, e *Estimator, n *naive, r *Request) {
	t.Helper()
	got := e.Estimate(r)
	// The prior's buckets are up to 1/64 of a byte wide, which is 1.6 %; overheads are whole bytes.
	want := n.input(r)
	if float64(got.Input) < want*0.97-18 || float64(got.Input) > want*1.03+19 {
		t.Fatalf("step %d, %+v: input %d, the oracle has %.1f", step, r, got.Input, want)
	}
	least, most := n.answer(r)
	a := float64(r.Answers)
	limit := math.Inf(1)
	if r.MaxOutput >= 0 {
		limit = a * float64(r.MaxOutput)
	}
	if o := float64(got.Output); o < min(limit, a*least) || o > min(limit, a*most) {
		t.Fatalf("step %d, %+v: output %d, the oracle has %g to %g for each answer", step, r, got.Output, least, most)
	}
	if want := Cost(max(1, got.Input+2*got.Output)); got.Cost != want {
		t.Fatalf("step %d: %+v", step, got)
	}
	if held := max(want, n.untaught(withoutRest(r), 256)); float64(got.Held) < held*0.97-18 || float64(got.Held) > held*1.03+19 || got.Held < got.Input {
		t.Fatalf("step %d, %+v: %+v, the oracle holds %.1f", step, r, got, held)
	}
	if want := Cost(max(1, got.Held+got.Output)); got.Stock != want {
		t.Fatalf("step %d: %+v", step, got)
	}
	last := got.Cost
	full := max(want, n.untaught(r, 0))
	if at := e.Unfinished(r, got, 0); float64(at) < full*0.97-18+2*float64(got.Output) {
		t.Fatalf("step %d, %+v: %d without usage, the oracle has %.1f for the prompt alone", step, r, at, full)
	}
	for _, after := range []time.Duration{0, time.Second, time.Minute, time.Hour} {
		if refused := e.Refused(r, got, after); refused > e.Unfinished(r, got, after) || after == 0 && refused > 1 {
			t.Fatalf("step %d: %d if refused after %v", step, refused, after)
		}
		next := e.Unfinished(r, got, after)
		if next < last || float64(next) > full*1.03+19+2*limit {
			t.Fatalf("step %d: %d after %v, and %d before", step, next, after, last)
		}
		last = next
	}
}

// FuzzBounds: no numbers, however absurd, lead out of the ranges.
func FuzzBounds(f *testing.F) {
	f.Add(int64(1), int64(1), int64(1), int64(1), int64(1), int64(1), int64(1), int64(1), int64(1), int64(1))
	f.Add(int64(-1), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64),
		int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64))
	f.Add(int64(math.MinInt64), int64(math.MinInt64), int64(math.MinInt64), int64(math.MinInt64), int64(math.MinInt64),
		int64(math.MinInt64), int64(math.MinInt64), int64(math.MinInt64), int64(math.MinInt64), int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, tokens, text, numbers, length, answers, maxOutput, in, cached, out, after int64) {
		e := New(DefaultConfig())
		r := &Request{Tokens: tokens, Text: text, Numbers: numbers, Length: length, Answers: answers, MaxOutput: maxOutput}
		for range 70 {
			est := e.Estimate(r)
			if est.Cost < 1 || est.Cost > MaxCost || est.Input < 0 || est.Input > MaxTokens || est.Output < 0 || est.Output > MaxTokens {
				t.Fatalf("%+v: %+v", r, est)
			}
			if text := bounded(r.Text); r.Tokens < 0 && r.Text >= 0 && r.Numbers <= 0 && (est.Input < text/8 || est.Input > text) {
				t.Fatalf("%d bytes: %d tokens", text, est.Input)
			}
			if c := e.Unfinished(r, est, time.Duration(after)); c < est.Cost || c > MaxCost {
				t.Fatalf("%+v: %d", r, c)
			}
			e.Learn(r, Usage{Input: in, Cached: cached, Output: out}, time.Duration(after))
		}
		checkTable(t, e)
	})
}
