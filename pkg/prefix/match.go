package prefix

import (
	"cmp"
	"slices"
	"sort"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// leastSaved is the least number of cached tokens that counts: a block of an engine's, of which part is never cached.
const leastSaved = 16

// first is how many blocks beyond those that all have decide where a cold prompt is best put.
const first = 4

// Match returns how much of the prompt each of the endpoints has, which are ascending by ID.
func (x *Index) Match(p *Prefix, endpoints []scheduling.EndpointID) scheduling.Ratings {
	r := scheduling.Ratings{Prompt: p.Tokens}
	x.mu.Lock()
	defer x.mu.Unlock()
	deepest := x.depth(p, 1)
	base := 0
	if len(endpoints) > scheduling.MaxAbove {
		base = x.depth(p, scheduling.MaxAbove+1)
	}
	r.Floor = counted(p.tokens(base))
	if base < deepest {
		r.Above = x.above(p, endpoints, base, deepest)
	}
	if len(r.Above) == 0 && base < len(p.Keys) {
		r.Near = x.near(p.Keys[min(base+first, len(p.Keys))-1], endpoints)
	}
	return r
}

// depth returns how many blocks from the first on at least so many endpoints have.
func (x *Index) depth(p *Prefix, endpoints int) int {
	return sort.Search(len(p.Keys), func(i int) bool { return x.holders.of(p.Keys[i]) < endpoints })
}

// above returns the endpoints that have more than the first base blocks, and how many tokens; none has more than deepest.
func (x *Index) above(p *Prefix, endpoints []scheduling.EndpointID, base, deepest int) (above []scheduling.Cached) {
	for _, id := range endpoints {
		if x.find(p.Keys[base], id) == 0 {
			continue
		}
		depth := deepest
		if x.find(p.Keys[deepest-1], id) == 0 {
			// It has the block at base, and not the one at deepest-1.
			depth = base + 1 + sort.Search(deepest-base-2, func(i int) bool { return x.find(p.Keys[base+1+i], id) == 0 })
		}
		if tokens := counted(p.tokens(depth)); tokens > 0 {
			above = append(above, scheduling.Cached{ID: id, Tokens: tokens})
		}
	}
	if len(above) > scheduling.MaxAbove { // a block sticks at more endpoints than have it, or they came meanwhile
		slices.SortStableFunc(above, func(a, b scheduling.Cached) int { return cmp.Compare(b.Tokens, a.Tokens) })
		above = above[:scheduling.MaxAbove]
		slices.SortFunc(above, func(a, b scheduling.Cached) int { return cmp.Compare(a.ID, b.ID) })
	}
	return above
}

func counted(tokens int64) int64 {
	if tokens < leastSaved {
		return 0
	}
	return tokens
}

// near returns the endpoints where a cold prompt is best put, by highest random weight: every replica names the same.
func (x *Index) near(key uint64, endpoints []scheduling.EndpointID) []scheduling.EndpointID {
	var weights [scheduling.MaxNear]uint64
	best := make([]scheduling.EndpointID, 0, scheduling.MaxNear)
	order := x.order
	for _, id := range endpoints {
		for len(order) > 0 && order[0].id < id {
			order = order[1:]
		}
		if len(order) == 0 {
			break
		}
		if order[0].id != id {
			continue
		}
		w := mixed(key ^ order[0].name)
		n := len(best)
		if n == cap(best) {
			if w <= weights[n-1] {
				continue
			}
			n--
		} else {
			best = best[:n+1]
		}
		for ; n > 0 && weights[n-1] < w; n-- {
			weights[n], best[n] = weights[n-1], best[n-1]
		}
		weights[n], best[n] = w, id
	}
	return best
}
