package prefix

import (
	"cmp"
	"slices"
	"sort"

	"github.com/weir-epp/weir/internal/splitmix"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// leastSaved is the least number of cached tokens that counts: an engine's block, the unit of its cache.
const leastSaved = 16

// first is the number of blocks, beyond those at all endpoints, that rank endpoints for a cold prompt.
const first = 4

// Match returns the part of the prompt at each of the endpoints, which must be ascending by ID. Of a part at more than
// scheduling.MaxAbove endpoints, but not all, it names MaxAbove of them, varying by prompt; the rest get the floor.
func (x *Index) Match(p *Prefix, endpoints []scheduling.EndpointID) scheduling.Ratings {
	r := scheduling.Ratings{Prompt: p.Tokens}
	x.mu.Lock()
	defer x.mu.Unlock()
	deepest := x.depth(p, 1)
	base, wide := 0, 0
	if len(endpoints) > scheduling.MaxAbove {
		wide = x.depth(p, scheduling.MaxAbove+1)
		base = x.floor(p, endpoints)
	}
	r.Floor = counted(p.TokensIn(base))
	if base < deepest {
		r.Above = x.above(p, endpoints, base, wide, deepest)
	}
	if len(r.Above) == 0 && base < len(p.Keys) {
		r.Near = x.near(p.Keys[min(base+first, len(p.Keys))-1], endpoints)
	}
	return r
}

// depth returns the number of leading blocks held by at least this number of endpoints.
func (x *Index) depth(p *Prefix, endpoints int) int {
	return sort.Search(len(p.Keys), func(i int) bool { return x.holders.of(p.Keys[i]) < endpoints })
}

// floor returns the number of leading blocks held by all of these endpoints.
func (x *Index) floor(p *Prefix, endpoints []scheduling.EndpointID) int {
	base := x.depth(p, len(endpoints))
	if len(endpoints) == len(x.order) {
		return base
	}
	for _, id := range endpoints { // the holders may be other endpoints of the pool
		if base == 0 {
			break
		}
		base = x.has(p, id, 0, base)
	}
	return base
}

// has returns the number of blocks of an endpoint, if that is at least least and at most most.
func (x *Index) has(p *Prefix, id scheduling.EndpointID, least, most int) int {
	if least == most || x.find(p.Keys[most-1], id) != 0 {
		return most
	}
	return least + sort.Search(most-1-least, func(i int) bool { return x.find(p.Keys[least+i], id) == 0 })
}

// above returns the endpoints with more than base leading blocks, and the tokens of each. None has more than deepest
// blocks, and at most scheduling.MaxAbove have more than wide.
func (x *Index) above(p *Prefix, endpoints []scheduling.EndpointID, base, wide, deepest int) (above []scheduling.Cached) {
	add := func(id scheduling.EndpointID, blocks int) {
		if tokens := counted(p.TokensIn(blocks)); tokens > 0 && len(above) < scheduling.MaxAbove {
			above = append(above, scheduling.Cached{ID: id, Tokens: tokens})
		}
	}
	if wide < deepest {
		for _, id := range x.holding(p.Keys[wide], endpoints) {
			add(id, x.has(p, id, wide+1, deepest))
		}
	}
	if base == wide {
		return above
	}
	start := int(p.Keys[len(p.Keys)-1] % uint64(len(endpoints)))
	for i := range endpoints {
		if len(above) == scheduling.MaxAbove {
			break
		}
		id := endpoints[(start+i)%len(endpoints)]
		if x.find(p.Keys[wide-1], id) != 0 && (wide == deepest || x.find(p.Keys[wide], id) == 0) {
			add(id, wide)
		}
	}
	slices.SortFunc(above, func(a, b scheduling.Cached) int { return cmp.Compare(a.ID, b.ID) })
	return above
}

// probe is a look-up in progress: the next node to compare.
type probe struct {
	id   scheduling.EndpointID
	node uint32
}

// holding returns the endpoints with a block, ascending. Most look-ups find nothing, after at most two nodes. With one
// look-up after the other, a processor mispredicts the end of each; so all take their first step, then the remaining
// ones their second.
func (x *Index) holding(key uint64, endpoints []scheduling.EndpointID) []scheduling.EndpointID {
	x.probes = slices.Grow(x.probes[:0], len(endpoints))
	probes, left := x.probes[:len(endpoints)], 0
	for _, id := range endpoints {
		node := *x.table.row(key, id)
		probes[left] = probe{id, node}
		if node != 0 {
			left++
		}
	}
	x.found = x.found[:0]
	for left > 0 {
		again := 0
		for _, p := range probes[:left] {
			n := x.nodes.at(p.node)
			if n.is(key, p.id) {
				x.found = append(x.found, p.id)
				continue
			}
			probes[again] = probe{p.id, n.row}
			if n.row != 0 {
				again++
			}
		}
		left = again
	}
	slices.Sort(x.found)
	return x.found
}

func counted(tokens int64) int64 {
	if tokens < leastSaved {
		return 0
	}
	return tokens
}

// near returns the best endpoints for a cold prompt, by highest random weight, the same in every replica.
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
		w := splitmix.Mix(key ^ order[0].name)
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
