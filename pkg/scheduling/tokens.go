package scheduling

// tokens is what the requests at an endpoint take of its engine's memory: Weir's own, those of others, and the bound of
// both.
type tokens struct {
	own     int64
	foreign int64 // 0 unless the endpoint is ready
	bound   int64 // 0: none
}

// held returns the tokens of all that is there.
func (t *tokens) held() int64 { return t.own + t.foreign }

// full reports whether the endpoint takes no more requests because of the tokens of those there. One without any is never
// full, so that a request of any size can go somewhere.
func (t *tokens) full() bool { return t.bound > 0 && t.held() >= t.bound }

// SetTokenBound bounds the tokens of the requests at a ready endpoint, 0 for no bound: it takes another request, of any
// size, while those there have fewer. It reports whether the endpoint is in the pool.
func (b *Board) SetTokenBound(id EndpointID, bound int64) bool {
	p, ok := b.ring.position(id)
	if !ok {
		return false
	}
	if s := &b.spots[p]; s.tokens.bound != bound {
		s.tokens.bound = max(0, bound)
		b.changed(p)
	}
	return true
}

// TakesTokens reports whether an endpoint of the pool would take another request if there were so many more tokens, or
// fewer.
func (b *Board) TakesTokens(id EndpointID, change int64) bool {
	p, ok := b.ring.position(id)
	if !ok {
		return false
	}
	t := b.spots[p].tokens
	t.own += change
	return !t.full()
}

// AddTokens changes the tokens of Weir's own requests at an endpoint, which may have left the pool: one was reserved there,
// will be released, or turned out to take more or less.
func (b *Board) AddTokens(id EndpointID, by int64) {
	p, ok := b.ring.position(id)
	if !ok {
		if g, known := b.gone[id]; known {
			g.tokens += by
			b.gone[id] = g
		}
		return
	}
	b.spots[p].tokens.own += by
	b.changed(p)
}
