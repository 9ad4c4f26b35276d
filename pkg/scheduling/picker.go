package scheduling

import "math/rand/v2"

// best picks the endpoint of a field with the request's least cost, and returns its position, or -1. It changes nothing
// except the random source, which is nil unless ties are broken at random. For an unknown request that is the endpoint
// with the highest standing: among equals the first in the field's order, or a random one. Endpoints with more than the
// floor of the prompt cached are compared with this one.
func best(f *field, by comparison, random *rand.Rand) int32 {
	if bonus, points := by.bonus(); points {
		return f.bestPointed(bonus, random)
	}
	at, top := f.first()
	switch {
	case at < 0:
		return at
	case f.adapter != "":
		return f.bestLoaded(by, random)
	case f.reading:
		at = f.cheapest(by, random)
	}
	if r := f.ratings; r != nil && r.Prompt > 0 {
		plain := f.candidate(by, at, r.Floor)
		if p := f.bestAbove(by, plain, random); p >= 0 {
			return p
		}
		if p := f.near(by, plain); p >= 0 {
			return p
		}
	}
	if random == nil || f.reading {
		return at
	}
	return f.draw(random, top)
}

// candidate is an endpoint with the request's cost there. Endpoints with room come first, then those full by requests,
// then those full by tokens.
type candidate struct {
	full int8 // 0 to 2
	cost Cost
}

func (f *field) candidate(by comparison, p int32, cached int64) candidate {
	s := &f.spots[p]
	return candidate{fullness(f.pool.of(int(p))), by.cost(s, f.ratings.uncached(cached)+f.loading(p)) + by.wait(s.prompts)}
}

// fullness returns the first part of a candidate's order.
func fullness(total Standing) int8 {
	switch {
	case total < fullByRequests:
		return 2
	case total < notFull:
		return 1
	}
	return 0
}

// compare returns less than 0 if c is better than d, and 0 if they are equal.
func (c candidate) compare(d candidate) int {
	switch {
	case c.full != d.full:
		return int(c.full - d.full)
	case c.cost < d.cost:
		return -1
	case c.cost > d.cost:
		return 1
	}
	return 0
}

// bestAbove returns the best endpoint with more cached than the floor, or -1 if plain, without more, is better than all
// of them.
func (f *field) bestAbove(by comparison, plain candidate, random *rand.Rand) int32 {
	at, best, tied := int32(-1), plain, 0
	for _, x := range f.ratings.Above {
		p, ok := f.ring.position(x.ID)
		if !ok || !f.has(p) {
			continue
		}
		c := f.candidate(by, p, x.Tokens)
		switch order := c.compare(best); {
		case order < 0 || order == 0 && at < 0:
			at, best, tied = p, c, 1
		case order > 0:
		case random == nil:
			if f.before(p, at) {
				at = p
			}
		default:
			if tied++; random.IntN(tied) == 0 {
				at = p
			}
		}
	}
	return at
}

// near returns the first endpoint of the request's ranking whose cost is at most a quarter more than plain's, the best
// of all; -1 if there is none.
func (f *field) near(by comparison, plain candidate) int32 {
	for _, id := range f.ratings.Near {
		p, ok := f.ring.position(id)
		if !ok || !f.has(p) {
			continue
		}
		if c := f.candidate(by, p, f.ratings.Floor); c.full == plain.full && c.cost <= plain.cost+plain.cost/4 {
			return p
		}
	}
	return -1
}

// before reports whether p comes before q in the field's order.
func (f *field) before(p, q int32) bool {
	if (p >= f.start) != (q >= f.start) {
		return p >= f.start
	}
	return p < q
}

// draw picks one of the endpoints with the total, which must be the best. It uses the random source only if there are two
// or more.
func (f *field) draw(random *rand.Rand, top Standing) int32 {
	k := 0
	if tied := f.tied(top); tied > 1 {
		k = random.IntN(tied)
	}
	return f.nth(top, k)
}
