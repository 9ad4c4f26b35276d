package scheduling

// costs is what the requests at an endpoint cost: Weir's own, those of others, and the bound of both.
type costs struct {
	own     int64
	foreign int64 // 0 unless the endpoint is ready
	bound   int64 // 0: none
}

// held returns the cost of all that is there.
func (c *costs) held() int64 { return c.own + c.foreign }

// full reports whether the endpoint takes no more requests because of what those there cost. One with nothing that costs
// is never full, so that a request of any cost can go somewhere.
func (c *costs) full() bool { return c.bound > 0 && c.held() >= c.bound }

// SetCostBound bounds the cost of the requests at a ready endpoint, 0 for no bound: it takes another request, of any cost,
// while what is there costs less. It reports whether the endpoint is in the pool.
func (b *Board) SetCostBound(id EndpointID, bound int64) bool {
	p, ok := b.ring.position(id)
	if !ok {
		return false
	}
	if s := &b.spots[p]; s.cost.bound != bound {
		s.cost.bound = max(0, bound)
		b.changed(p)
	}
	return true
}

// TakesCost reports whether an endpoint of the pool would take another request if what is there cost so much more, or
// less.
func (b *Board) TakesCost(id EndpointID, change int64) bool {
	p, ok := b.ring.position(id)
	if !ok {
		return false
	}
	c := b.spots[p].cost
	c.own += change
	return !c.full()
}

// AddCost changes the cost of Weir's own requests at an endpoint, which may have left the pool: one was reserved there,
// will be released, or turned out to cost more or less.
func (b *Board) AddCost(id EndpointID, by int64) {
	p, ok := b.ring.position(id)
	if !ok {
		if g, known := b.gone[id]; known {
			g.cost += by
			b.gone[id] = g
		}
		return
	}
	b.spots[p].cost.own += by
	b.changed(p)
}
