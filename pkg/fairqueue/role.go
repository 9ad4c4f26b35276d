package fairqueue

import "cmp"

// A flow has the weight listed in Config.Weights or Config.ByLevel, or else the weight of its role, named by its
// requests. The role belongs to the innermost flow: to a user, not to the tenant. If a flow's waiting requests have
// several roles, it has the least of their weights as long as any request waits, so no request gains by another's role.
// A request that does not wait is charged by its own role while its flow has no waiters.

// weightWith returns the weight that r gives its flow at a depth, with this key.
func (c *Config) weightWith(depth int, key string, r *Request) Weight {
	if own, ok := c.ownWeight(depth, key); ok {
		return own
	}
	if len(c.Roles) > 0 && depth == c.levels()-1 && r.Path != nil {
		return cmp.Or(c.Roles[r.Path.Role].Weight, WeightOne)
	}
	return WeightOne
}

// weigh gives f, the innermost flow of r, its weight with r.
func (q *FairRequestQueue) weigh(f *flow, r *Request) {
	if len(q.config.Roles) == 0 {
		return
	}
	if w := q.config.weightWith(int(f.depth), f.key, r); !f.tracked || w < f.weight {
		f.reweigh(w)
	}
}

// reweigh changes the weight of an active flow.
func (f *flow) reweigh(w Weight) {
	if w == f.weight {
		return
	}
	if f.tracked {
		f.siblings.weights += w - f.weight
		f.siblings.shed.reweigh(f, w)
		f.retag(nil)
	} else {
		f.weight = w
	}
	if f.siblings.fair != nil {
		f.siblings.fair.enter(&f.share)
	}
}

// leastWeight returns the least weight of the requests waiting in the tracked f. It visits all of them.
func (c *Config) leastWeight(f *flow) Weight {
	if len(c.Roles) == 0 || f.under != nil {
		return c.weightWith(int(f.depth), f.key, &Request{})
	}
	least := MaxWeight
	for _, l := range f.lanes {
		for r := range l.line.all() {
			least = min(least, c.weightWith(int(f.depth), f.key, r))
		}
	}
	return least
}

// idleWeight gives the idle f its weight after a change of the configuration. Its next request brings its role.
func (c *Config) idleWeight(f *flow) {
	if _, own := c.ownWeight(int(f.depth), f.key); own || len(c.Roles) == 0 || int(f.depth) < c.levels()-1 {
		f.weight = c.weightWith(int(f.depth), f.key, &Request{})
	}
}
