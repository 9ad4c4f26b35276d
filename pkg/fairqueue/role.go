package fairqueue

import "cmp"

// A flow has the weight that Config.Weights or Config.ByLevel lists for it, or else that of its role, which its requests
// name. The role is that of the innermost flow: of a user, not of the tenant. A flow
// whose requests come with several roles has the least of their weights, from the first that waits until none waits any
// more: a request never lends its weight to others, so no request gains by another's role. A request that does not wait
// is charged by its own role while nothing of its flow waits.

// weightWith returns the weight with which r comes to its flow at a depth, which has this key.
func (c *Config) weightWith(depth int, key string, r *Request) Weight {
	if own, ok := c.ownWeight(depth, key); ok {
		return own
	}
	if len(c.Roles) > 0 && depth == c.levels()-1 && r.Path != nil {
		return cmp.Or(c.Roles[r.Path.Role].Weight, WeightOne)
	}
	return WeightOne
}

// weigh gives f, the innermost flow of r, the weight that it has with r.
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

// leastWeight returns the least weight of the requests that wait in f, which is tracked. It looks at all of them.
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

// idleWeight gives f, in which nothing waits, its weight after a change of the configuration: its next request has its role.
func (c *Config) idleWeight(f *flow) {
	if _, own := c.ownWeight(int(f.depth), f.key); own || len(c.Roles) == 0 || int(f.depth) < c.levels()-1 {
		f.weight = c.weightWith(int(f.depth), f.key, &Request{})
	}
}
