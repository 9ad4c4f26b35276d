package scheduling

import (
	"cmp"
	"slices"
)

// MaxAbove is the most endpoints in Ratings.Above, and MaxNear the most in Ratings.Near.
const (
	MaxAbove = 64
	MaxNear  = 8
)

// MaxPrompt is the most tokens of a prompt that count.
const MaxPrompt = 1 << 22

// Ratings describe a prompt before it is placed: the parts of it cached at the engines. It is an input of the decision,
// by endpoint, and valid on any snapshot. The zero value is an unknown prompt, for which all endpoints are equal.
type Ratings struct {
	// Prompt is its length in tokens; 0 means unknown.
	Prompt int64
	// Floor is the number of its tokens cached at every endpoint that is not in Above.
	Floor int64
	// Above are the endpoints that have more, ascending by ID; at most MaxAbove.
	Above []Cached
	// Near ranks endpoints for a prompt of which none has more than the floor: the first one that costs at most 25 %
	// more than the best endpoint is taken. At most MaxNear.
	Near []EndpointID
	// Watched is true if the first token of the answer will be seen. Until then the tokens to read count at the
	// endpoint (Board.Read).
	Watched bool
}

// Cached is the number of a prompt's tokens cached at an endpoint.
type Cached struct {
	ID     EndpointID
	Tokens int64
}

// Cached returns the number of the prompt's tokens that the endpoint is expected to have.
func (r *Ratings) Cached(id EndpointID) int64 {
	if r == nil {
		return 0
	}
	if i, ok := slices.BinarySearchFunc(r.Above, id, func(c Cached, id EndpointID) int { return cmp.Compare(c.ID, id) }); ok {
		return r.Above[i].Tokens
	}
	return r.Floor
}

// Best returns the most tokens that any endpoint has cached.
func (r *Ratings) Best() int64 {
	best := r.Floor
	for _, c := range r.Above {
		best = max(best, c.Tokens)
	}
	return best
}

// uncached returns the number of tokens to read at an engine with cached of them cached. An engine always reads the
// last token.
func (r *Ratings) uncached(cached int64) int64 {
	if r == nil || r.Prompt <= 0 {
		return unratedPrompt
	}
	return max(1, min(r.Prompt, MaxPrompt)-max(0, cached))
}
