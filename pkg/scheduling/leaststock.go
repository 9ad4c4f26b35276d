package scheduling

import "math/bits"

// leastStock is the standing of an endpoint by its projected load: the requests there after this pick, relative to its
// upper bound b (without a bound, to a single request):
//
//	MostStanding × b / (b + (held + 1) requests)
//
// and with a bound c in tokens, if that is less, by the tokens there:
//
//	MostStanding × c / (c + tokens)
//
// The projection, rather than the load now, prefers the larger of two idle endpoints, and one with room for a whole
// request to one with a fraction left. The quotient is rounded down, so that loads in order give standings in order.
func leastStock(l Load) Standing {
	b := uint64(l.UpperBound)
	if b == 0 {
		b = Millionths
	}
	hi, lo := bits.Mul64(uint64(MostStanding), b)
	score, _ := bits.Div64(hi, lo, b+(uint64(l.Held)+1)*Millionths)
	if c := uint64(l.TokenBound); c > 0 {
		hi, lo = bits.Mul64(uint64(MostStanding), c)
		byTokens, _ := bits.Div64(hi, lo, c+uint64(max(0, l.Tokens)))
		score = min(score, byTokens)
	}
	return Standing(score)
}
