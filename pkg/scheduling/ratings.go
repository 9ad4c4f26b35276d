package scheduling

import (
	"cmp"
	"slices"
)

// MaxAbove is the most endpoints of which Ratings says something of their own, and MaxNear the most that it ranks for a
// prompt that none has.
const (
	MaxAbove = 64
	MaxNear  = 8
)

// MaxPrompt is the most tokens of a prompt that count.
const MaxPrompt = 1 << 22

// Ratings describe a prompt before it is placed: the parts of it that the engines have cached. It is an input of the
// decision, by endpoint, and holds on any snapshot. The zero value means that nothing is known, and all endpoints are
// alike.
type Ratings struct {
	// Prompt is its length in tokens; 0 means that nothing is known.
	Prompt int64
	// Floor is the number of its tokens cached at every endpoint that is not in Above.
	Floor int64
	// Above are the endpoints that have more, ascending by ID; at most MaxAbove.
	Above []Cached
	// Near ranks endpoints for a prompt of which none has more than the floor: at a cost of at most 25 % more than the best
	// endpoint's, the first of them is taken. At most MaxNear.
	Near []EndpointID
	// Watched is true where the first token of the answer will be seen. Until then the tokens that have to be read count at the
	// endpoint (Board.Read).
	Watched bool
}

// Cached is the number of a prompt's tokens that an endpoint has cached.
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

// Best returns the most that any endpoint has.
func (r *Ratings) Best() int64 {
	best := r.Floor
	for _, c := range r.Above {
		best = max(best, c.Tokens)
	}
	return best
}

// uncached returns the number of tokens to read for an engine that has so many cached. Its last token an engine always
// reads.
func (r *Ratings) uncached(cached int64) int64 {
	if r == nil || r.Prompt <= 0 {
		return unratedPrompt
	}
	return max(1, min(r.Prompt, MaxPrompt)-max(0, cached))
}
