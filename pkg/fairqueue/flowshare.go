package fairqueue

import "time"

// FlowShare is a flow's share of its class, and its class's share of the tier.
type FlowShare struct {
	// Tier and Class are the names of the flow's tier and of its class within the tier. ClassDeficit and Quantum are
	// the class's, in units of cost, if classes share the tier; otherwise 0.
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

// ShareOf returns the share of the class's own flow of r, which may wait, be in flight or not have arrived. It visits
// one flow and one class.
func (q *FairRequestQueue) ShareOf(now time.Time, r *Request) FlowShare {
	c := q.classAt(r)
	s := FlowShare{Tier: c.tier.config.Name, Class: c.config.Name, Factor: millionth}
	if c.ring.shared() {
		s.ClassDeficit, s.Quantum = c.deficit+c.credit, int64(c.config.Quantum)
	}
	f := c.known(r)
	if f != nil && (f.tracked || f.resting) {
		s.Weight = f.weight
	} else { // it may be known by its key
		s.Weight = q.config.weightWith(0, c.flowKey(r), r)
	}
	if s.Fair = c.fair != nil; f == nil {
		return s
	}
	if s.Queued = f.queued; s.Fair {
		before := q.now
		q.now = now
		v := c.fair.view(f)
		q.now = before // looking must change nothing
		s.Deficit, s.Recent, s.BurstCredits, s.Factor = v.Deficit, v.Recent, v.BurstCredits, v.Factor
	}
	return s
}
