package fairqueue

import "time"

// FlowShare is the part of a flow in its class, and that of the class in its tier.
type FlowShare struct {
	// Tier is the name of the flow's tier, and Class that of its class within the tier. ClassDeficit and Quantum are those of the class if classes share the tier, in
	// units of cost; else 0.
	Tier, Class           string
	ClassDeficit, Quantum int64
	Weight                Weight
	// Queued is the number of the flow's waiting requests.
	Queued int
	// Fair is set with the discipline FairShare. Deficit, Recent, BurstCredits and Factor are as in UserShare.
	Fair                          bool
	Deficit, Recent, BurstCredits int64
	Factor                        int64
}

// ShareOf returns the share of the class's own flow of r, which may wait, be in flight or not have come yet. It looks at one
// flow and one class.
func (q *FairRequestQueue) ShareOf(now time.Time, r *Request) FlowShare {
	c := q.classAt(r)
	s := FlowShare{Tier: c.tier.config.Name, Class: c.config.Name, Factor: millionth}
	if c.ring.shared() {
		s.ClassDeficit, s.Quantum = c.deficit+c.credit, int64(c.config.Quantum)
	}
	f := c.known(r)
	if f != nil && (f.tracked || f.resting) {
		s.Weight = f.weight
	} else { // it is known by its key, at most
		s.Weight = q.config.weightWith(0, c.flowKey(r), r)
	}
	if s.Fair = c.fair != nil; f == nil {
		return s
	}
	if s.Queued = f.queued; s.Fair {
		before := q.now
		q.now = now
		v := c.fair.view(f)
		q.now = before // as if nobody had looked
		s.Deficit, s.Recent, s.BurstCredits, s.Factor = v.Deficit, v.Recent, v.BurstCredits, v.Factor
	}
	return s
}
