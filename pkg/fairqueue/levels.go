package fairqueue

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weir-epp/weir/pkg/invalid"
)

// levels returns the number of flows that a request names.
func (c *Config) levels() int { return max(1, c.Levels) }

// checkLevels checks the levels of flows.
func (c *Config) checkLevels(ps *invalid.Problems) {
	levels := invalid.At("Levels")
	if !invalid.Within(ps, levels, c.Levels, 0, MaxFlowLevels) {
		return
	}
	if n := len(c.ByLevel); n > 0 && n != c.levels() {
		ps.Add(invalid.At("ByLevel"), invalid.Shown(fmt.Sprintf("%d levels", n)), "must be none, or as many as %s (%d)", levels, c.levels())
	}
	for i, l := range c.ByLevel {
		at := invalid.At("ByLevel", i)
		for _, key := range slices.Sorted(maps.Keys(l.Weights)) {
			l.Weights[key].check(ps, at.At("Weights", invalid.Key(key)))
		}
		if l.Capacity != 0 {
			c.checkFlowCapacity(ps, at.At("Capacity"), l.Capacity)
		}
		for _, key := range slices.Sorted(maps.Keys(l.Capacities)) {
			c.checkFlowCapacity(ps, at.At("Capacities", invalid.Key(key)), l.Capacities[key])
		}
	}
}

// ownWeight returns the listed weight of a flow at a depth, with 0 the class's own; ok is false if none is listed.
func (c *Config) ownWeight(depth int, key string) (w Weight, ok bool) {
	switch {
	case depth < len(c.ByLevel):
		w, ok = c.ByLevel[depth].Weights[key]
	case depth == 0:
		w, ok = c.Weights[key]
	}
	return w, ok
}

// capacityAt returns the capacity that ByLevel has for a flow at a depth; 0 if it has none.
func (c *Config) capacityAt(depth int, key string) int {
	if depth >= len(c.ByLevel) {
		return 0
	}
	if n, ok := c.ByLevel[depth].Capacities[key]; ok {
		return n
	}
	return c.ByLevel[depth].Capacity
}

// fullUnder returns the capacity of the first full flow of r under f; 0 if none is full. f is a tracked flow of the
// class, or nil.
func (q *FairRequestQueue) fullUnder(c *class, f *flow, r *Request) int {
	for depth := 1; f != nil && f.under != nil; depth++ {
		key := c.keyAt(r, depth)
		f = f.under.flows.find(key)
		if most := q.config.capacityAt(depth, key); f != nil && most > 0 && f.queued >= most {
			return most
		}
	}
	return 0
}
