package fairqueue

// fairProblem checks the invariants of FairShare at the level of a class's own flows: sums are sums, the deficits of the
// active flows add up to nothing, and the flow above the threshold is the only one and active.
func fairProblem(c *class, name string, fail failf) {
	f := c.fair
	if (f == nil) != (c.tier.queue.config.Discipline != FairShare) {
		fail("%s: with or without what FairShare knows", name)
	}
	if f == nil {
		return
	}
	var weights Weight
	var deficits, recent int64
	active, flows := map[*userUse]bool{}, 0
	for u := f.first; u != nil; u = u.newer {
		active[u] = true
		if u.newer != nil && u.newer.older != u || u.newer == nil && f.last != u || u.flow.elsewhere.mine != u {
			fail("%s: flow %q is out of the list of the active", name, u.flow.key)
		}
	}
	now := f.period()
	for _, g := range c.flows.known {
		s := &g.share
		recent += s.usedRecently(now)
		used := s.elsewhere != nil && s.elsewhere.mine != nil
		if is := used && s.elsewhere.mine.weight != 0; is != (g.queued+g.inflight32() > 0) || is != (used && active[s.elsewhere.mine]) {
			fail("%s: flow %q with %d queued and %d in flight counts as active: %t", name, g.key, g.queued, g.inflight, is)
		}
		if g.queued+g.inflight32() > 0 {
			flows++
			weights += s.elsewhere.mine.weight
			deficits += f.deficit(s)
		}
	}
	if f.weights != weights || len(active) != flows {
		fail("%s: %d active flows of weight %d, want %d of %d", name, len(active), f.weights, flows, weights)
	}
	if slack := int64(flows) + int64(weights/WeightOne) + 1; deficits > slack || deficits < -slack {
		fail("%s: the deficits of the active flows add up to %d", name, deficits)
	}
	if all := f.recent.at(now); recent > all {
		fail("%s: %d was used recently, by the known flows %d", name, all, recent)
	}
	if s := f.of; s != nil && (s.flow.class != c || s.flow.queued+s.flow.inflight32() == 0) {
		fail("%s: the flow above the threshold, %q, is not active", name, s.flow.key)
	}
}

func (f *flow) inflight32() int { return int(f.inflight) }
