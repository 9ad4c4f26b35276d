package estimate

// Cost is work in weighted tokens, from 1 to MaxCost.
type Cost int64

// MaxCost is the largest cost of one request.
const MaxCost Cost = 1 << 30

// MaxTokens caps numbers of tokens or bytes. A larger number counts as MaxTokens, a negative one as 0.
const MaxTokens int64 = 1 << 30

// Weight is the cost of a token in millionths. Its range is 0 to MaxWeight.
type Weight int64

// The weights: one, and the largest, a thousand.
const (
	WeightOne Weight = 1_000_000
	MaxWeight Weight = 1_000 * WeightOne
)

// Weights are the costs of the kinds of tokens.
type Weights struct {
	// Input is the weight of a prompt token, CachedInput of a cached prompt token, Output of an answer token.
	Input, CachedInput, Output Weight
}

// Usage is the usage of a request, in tokens.
type Usage struct {
	// Input is the length of the prompt, of which Cached were in the engine's cache. A Cached above Input counts as
	// Input.
	Input, Cached int64
	// Output is the length of all answers together.
	Output int64
}

// Tokens returns the length of the prompt and of all answers, at most 2 × MaxTokens.
func (u Usage) Tokens() int64 {
	u = u.bounded()
	return u.Input + u.Output
}

func (u Usage) bounded() Usage {
	u.Input, u.Output = bounded(u.Input), bounded(u.Output)
	u.Cached = min(bounded(u.Cached), u.Input)
	return u
}

// Cost returns the cost of a usage.
func (w Weights) Cost(u Usage) Cost {
	u = u.bounded()
	// Each product is below 2^30 · 2^30.
	sum := int64(w.Input)*(u.Input-u.Cached) + int64(w.CachedInput)*u.Cached + int64(w.Output)*u.Output
	return Cost(min(max(1, ceilDiv(sum, int64(WeightOne))), int64(MaxCost)))
}

// bounded clamps a number of tokens, bytes or answers.
func bounded(n int64) int64 { return min(max(n, 0), MaxTokens) }

// times multiplies two bounded numbers; the result is bounded.
func times(a, b int64) int64 { return min(a*b, MaxTokens) }

// ceilDiv returns n/d rounded up, for n >= 0 and d > 0.
func ceilDiv(n, d int64) int64 { return (n + d - 1) / d }
