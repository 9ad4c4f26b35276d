package scheduling

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// loading returns the cost in tokens of loading the request's adapter at a position; 0 if it needs none or the adapter
// is there.
func (f *field) loading(p int32) int64 {
	if f.adapter == "" {
		return 0
	}
	if _, has := slices.BinarySearch(f.holders, f.ring.ids[p]); has {
		return 0
	}
	return f.spots[p].adapters.loading()
}

// bestLoaded is best for a request that needs an adapter: the cost of loading it is added to the tokens that an engine
// has to read. It visits each endpoint of the field.
func (f *field) bestLoaded(by comparison, random *rand.Rand) int32 {
	var floor int64
	if f.ratings != nil {
		floor = f.ratings.Floor
	}
	at, best := int32(-1), candidate{}
	for _, alike := range f.byLoading(by, floor, random) {
		if alike.at < 0 {
			continue
		}
		c := f.candidate(by, alike.at, floor)
		if order := c.compare(best); at < 0 || order < 0 || order == 0 && f.before(alike.at, at) {
			at, best = alike.at, c
		}
	}
	if f.ratings == nil {
		return at
	}
	if p := f.bestAbove(by, best, random); p >= 0 {
		return p
	}
	if f.loading(at) > 0 {
		if p := f.near(by, best); p >= 0 {
			return p
		}
	}
	return at
}

// contender is the first endpoint with the best standing of a group; at is -1 in an empty group.
type contender struct {
	at   int32
	top  Standing
	cost candidate // where prompts are being read
	tied int       // in a random pick
}

// compare returns less than 0 if c is better than d.
func (c *contender) compare(d *contender) int {
	if order := c.cost.compare(d.cost); order != 0 {
		return order
	}
	return cmp.Compare(d.top, c.top)
}

// byLoading returns the best endpoint with the adapter, and the best one for each cost of loading it. None has more
// than the floor of the prompt.
func (f *field) byLoading(by comparison, floor int64, random *rand.Rand) (best [1 + loadings]contender) {
	for i := range best {
		best[i].at = -1
	}
	holders := f.holders
	f.each(func(p int32, total Standing) bool {
		id, class := f.ring.ids[p], 0
		for len(holders) > 0 && holders[0] < id {
			holders = holders[1:]
		}
		if len(holders) == 0 || holders[0] != id {
			class = 1 + f.spots[p].adapters.class()
		}
		c, x := &best[class], contender{at: p, top: total, tied: 1}
		if f.reading {
			x.cost, x.top = f.candidate(by, p, floor), 0
		}
		order := -1
		if c.at >= 0 {
			order = x.compare(c)
		}
		switch {
		case order < 0:
			*c = x
		case order > 0:
		case random == nil:
			if f.before(p, c.at) {
				c.at = p
			}
		default:
			if c.tied++; random.IntN(c.tied) == 0 {
				c.at = p
			}
		}
		return true
	})
	return best
}

// adapterRegret is Regret for a request that needs an adapter. It assumes that some engine has a slot for the adapter.
func (b *Board) adapterRegret(q *Query, bound Bound, except *EndpointSet) (tokens int64, ok bool) {
	b.refresh(q)
	if !b.laneHasRoomFor(q, bound, 0) {
		return 0, false
	}
	f := b.fieldOf(q, bound, b.exceptions(q, bound, except), b.start())
	p := best(f, b.scheduler.by, nil)
	if p < 0 {
		return 0, false
	}
	r := q.ratings
	here := r.uncached(r.Cached(b.ring.ids[p])) + f.loading(p)
	return max(0, here-b.leastAnywhere(q, f)), true
}

// leastAnywhere returns the fewest tokens of the prompt and for loading the adapter at a ready endpoint of the lane.
func (b *Board) leastAnywhere(q *Query, f *field) int64 {
	r := q.ratings
	least := int64(AdapterTokens)
	for _, id := range f.holders {
		if p, ok := b.ring.position(id); ok && q.reach.has(p) {
			least = 0
			break
		}
	}
	if r == nil {
		return least + r.uncached(0)
	}
	least += r.uncached(r.Floor)
	for _, c := range r.Above {
		if p, ok := b.ring.position(c.ID); ok && q.reach.has(p) {
			least = min(least, r.uncached(c.Tokens)+f.loading(p))
		}
	}
	return least
}

// ReleaseFor is Release of a request's reservation.
func (b *Board) ReleaseFor(q *Query, r *Reservation) {
	if id := r.Endpoint(); q.adapter && id != NoEndpoint {
		b.adapters.leave(q.model, id)
		if _, known := b.ring.position(id); !known {
			b.adapters.restart(id, false)
		}
	}
	b.Release(r)
}

// forgetAdapters forgets the adapters of engines that are not ready.
func (b *Board) forgetAdapters() {
	for id := range b.adapters.engines { // each by itself, so in any order
		if p, known := b.ring.position(id); !known || !b.spots[p].ready {
			b.adapters.restart(id, known)
		}
	}
}

// AdapterTotals returns the counts of requests for adapters.
func (b *Board) AdapterTotals() AdapterTotals { return b.adapters.totals }

// AdaptersAt returns the number of adapters that an endpoint's engine is expected to have, and the number of places
// that the engine states; 0: none stated.
func (b *Board) AdaptersAt(id EndpointID) (adapters, places int) {
	if l := b.adapters.engines[id]; l != nil {
		return len(l.list), l.places
	}
	return 0, 0
}
