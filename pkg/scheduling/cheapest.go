package scheduling

import (
	"math/bits"
	"math/rand/v2"
)

// cheapest replaces first while prompts are being read: it finds the endpoint with the request's least cost if none has
// more of its prompt than the floor. It skips endpoints whose standing alone makes them dearer than the best so far,
// and blocks of 64 whose best standing and fewest tokens to read together do.
type cheapest struct {
	*field
	by     comparison
	random *rand.Rand
	tokens int64 // tokens of the request's prompt that each of them has to read

	at   int32 // -1: none yet
	best candidate
	tied int           // with a random source
	memo [memos]priced // by total
}

// priced is the request's cost at an endpoint with the total, excluding the prompts there.
type priced struct {
	total Standing
	cost  Cost // 0: not known
}

// Endpoints with equal numbers of requests have equal standings, so few costs suffice for many endpoints.
const (
	memos    = 1 << memoBits
	memoBits = 4
)

func (f *field) cheapest(by comparison, random *rand.Rand) int32 {
	var floor int64
	if f.ratings != nil {
		floor = f.ratings.Floor
	}
	s := cheapest{field: f, by: by, random: random, tokens: f.ratings.uncached(floor), at: -1}
	if f.reach.large() {
		s.lookAtBlocks()
		return s.at
	}
	ready := f.reach.ready
	i, _ := f.reach.index(f.start)
	for range ready {
		if i == len(ready) {
			i = 0
		}
		if p := ready[i]; !in(f.without, p) {
			s.consider(p, f.pool.of(int(p)), f.spots[p].prompts)
		}
		i++
	}
	return s.at
}

// lookAtBlocks searches many endpoints: first the most promising block, then the others in ring order.
func (s *cheapest) lookAtBlocks() {
	first, most := -1, candidate{}
	for w := range s.reach.words {
		if s.pool.blockTop(w) < s.least || s.left(w) == 0 {
			continue
		}
		if c := s.promise(w); first < 0 || c.compare(most) < 0 {
			first, most = w, c
		}
	}
	if first < 0 {
		return
	}
	s.lookAt(first)
	for w := range s.reach.words {
		if w != first && s.pool.blockTop(w) >= s.least && s.left(w) != 0 && !s.loses(s.promise(w), int32(64*w), int32(64*w+63)) {
			s.lookAt(w)
		}
	}
}

// left returns the positions of a block that are permitted to the request.
func (s *cheapest) left(w int) uint64 {
	if s.without != nil {
		return s.reach.words[w] &^ s.without[w]
	}
	return s.reach.words[w]
}

// promise returns a candidate that is at least as good as any of a block.
func (s *cheapest) promise(w int) candidate {
	top := s.pool.blockTop(w)
	cost, known := s.known(top)
	if !known {
		p := int32(64 * w)
		for s.pool.of(int(p)) != top {
			p++
		}
		cost = s.priceOf(p, top)
	}
	return candidate{fullness(top), cost + s.by.wait(mostUnread-int64(s.unread.blockTop(w)))}
}

// lookAt searches a block.
func (s *cheapest) lookAt(w int) {
	totals, unread := s.pool.totals(), s.unread.totals()
	for left := s.left(w); left != 0; left &= left - 1 {
		p := 64*w + bits.TrailingZeros64(left)
		s.consider(int32(p), totals[p], mostUnread-int64(unread[p]))
	}
}

// loses reports whether a candidate between two positions is not better than the best so far.
func (s *cheapest) loses(c candidate, from, to int32) bool {
	if s.at < 0 {
		return false
	}
	order := c.compare(s.best)
	return order > 0 || order == 0 && s.random == nil && from > s.at && (s.at >= s.start || to < s.start)
}

// known returns the memorised cost at endpoints with the total, excluding the prompts there.
func (s *cheapest) known(total Standing) (Cost, bool) {
	m := &s.memo[uint64(total)*0x9e3779b97f4a7c15>>(64-memoBits)]
	return m.cost, m.total == total && m.cost > 0
}

// priceOf returns the cost at an endpoint with the total, excluding the prompts there.
func (s *cheapest) priceOf(p int32, total Standing) Cost {
	cost, known := s.known(total)
	if !known {
		cost = s.by.cost(&s.spots[p], s.tokens)
		s.memo[uint64(total)*0x9e3779b97f4a7c15>>(64-memoBits)] = priced{total, cost}
	}
	return cost
}

// consider compares one endpoint, with unread tokens to read, with the best so far.
func (s *cheapest) consider(p int32, total Standing, unread int64) {
	if total < s.least {
		return
	}
	c := candidate{fullness(total), s.priceOf(p, total)}
	if s.at >= 0 && c.compare(s.best) > 0 {
		return
	}
	c.cost += s.by.wait(unread)
	order := -1
	if s.at >= 0 {
		order = c.compare(s.best)
	}
	switch {
	case order > 0:
		return
	case order < 0:
		s.tied = 1
	case s.random == nil:
		if !s.before(p, s.at) {
			return
		}
	default:
		if s.tied++; s.random.IntN(s.tied) > 0 {
			return
		}
	}
	s.at, s.best = p, c
}
