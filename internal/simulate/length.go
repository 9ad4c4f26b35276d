package simulate

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
)

// MaxTokens is the largest length of a prompt or an answer.
const MaxTokens = 1 << 22

// Length is a distribution of numbers of tokens. As text it is a number, FROM..TO for an even distribution, or ~MEAN for
// an exponential one, with ~MEAN..MOST cut at a largest value.
type Length struct {
	from, to int // even, or from = to
	mean     int // exponential if above 0, at most to
}

var errLength = errors.New("must be a number of tokens such as 500, a range such as 100..900, or a mean such as ~300 or ~300..4000")

// UnmarshalText implements [encoding.TextUnmarshaler].
func (l *Length) UnmarshalText(text []byte) error {
	rest, exponential := strings.CutPrefix(string(text), "~")
	first, second, two := strings.Cut(rest, "..")
	n, err := strconv.Atoi(first)
	most := n
	if exponential {
		most = MaxTokens
	}
	if two && err == nil {
		most, err = strconv.Atoi(second)
	}
	if err != nil || n < 1 || most < n || most > MaxTokens {
		return errLength
	}
	if *l = (Length{from: n, to: most}); exponential {
		*l = Length{mean: n, to: most}
	}
	return nil
}

// given reports whether the length was stated.
func (l Length) given() bool { return l.to > 0 }

// mostMeans bounds an exponential length, in means. All but one in 1e19 are shorter.
const mostMeans = 45

// most returns an upper bound on draw; 0 if no length was stated.
func (l Length) most() int {
	if l.mean > 0 {
		return min(l.to, mostMeans*l.mean)
	}
	return l.to
}

// draw returns a length, at least 1.
func (l Length) draw(rng *rand.Rand) int {
	switch {
	case l.mean > 0:
		return min(1+int(min(rng.ExpFloat64(), mostMeans)*float64(l.mean-1)+0.5), l.to)
	case l.to > l.from:
		return l.from + rng.IntN(l.to-l.from+1)
	default:
		return l.from
	}
}
