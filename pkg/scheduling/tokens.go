package scheduling

// tokens is the memory of an engine taken by requests, of this and other Weirs, with the bounds on both together.
type tokens struct {
	own          int64
	foreign      int64 // 0 unless the endpoint is ready
	lower, upper int64 // 0: none
}

// held returns the tokens of all requests there.
func (t *tokens) held() int64 { return t.own + t.foreign }

// ends has the numbers of ready endpoints below their own lower and upper bound in tokens.
type ends struct{ lower, upper int }

// count adds a ready endpoint to the counts, or removes it.
func (x *ends) count(s *spot, by int) {
	t := &s.tokens
	if !s.ready {
		return
	}
	if t.lower == 0 || t.held() < t.lower {
		x.lower += by
	}
	if !t.full() {
		x.upper += by
	}
}

// BelowTokens reports whether a ready endpoint of the pool is below its own bound in tokens. Tokens have no sum over the
// pool: one request may take more than all endpoints together may hold, and takes them at one endpoint.
func (b *Board) BelowTokens(bound Bound) bool {
	if bound == BelowLower {
		return b.below.lower > 0
	}
	return b.below.upper > 0
}

// SetTokenBounds bounds the tokens of the requests at a ready endpoint, 0 for no bound: it takes another request, of any
// size, while those there have fewer than the upper bound. It reports whether the endpoint is in the pool.
func (b *Board) SetTokenBounds(id EndpointID, lower, upper int64) bool {
	p, ok := b.ring.position(id)
	if !ok {
		return false
	}
	lower, upper = max(0, lower), max(0, upper)
	if t := &b.spots[p].tokens; t.lower != lower || t.upper != upper {
		b.changeTokens(p, func(t *tokens) { t.lower, t.upper = lower, upper })
	}
	return true
}

// TakesTokens reports whether an endpoint of the pool would take another request after this change of its tokens.
func (b *Board) TakesTokens(id EndpointID, change int64) bool {
	p, ok := b.ring.position(id)
	if !ok {
		return false
	}
	t := b.spots[p].tokens
	t.own += change
	return !t.full()
}

// AddTokens changes the tokens of Weir's own requests at an endpoint, which may have left the pool: for a new
// reservation, a release, or a corrected estimate.
func (b *Board) AddTokens(id EndpointID, by int64) {
	p, ok := b.ring.position(id)
	if !ok {
		if g, known := b.gone[id]; known {
			g.tokens += by
			b.gone[id] = g
		}
		return
	}
	if t := &b.spots[p].tokens; t.lower == 0 && t.upper == 0 {
		t.own += by // no choice depends on it
		return
	}
	b.changeTokens(p, func(t *tokens) { t.own += by })
}

// changeTokens changes the tokens at an endpoint, and whatever is derived from them.
func (b *Board) changeTokens(p int32, change func(*tokens)) {
	s := &b.spots[p]
	b.below.count(s, -1)
	change(&s.tokens)
	b.below.count(s, 1)
	b.changed(p)
}
