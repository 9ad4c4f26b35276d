package fairqueue

import (
	"math"
	"slices"
)

// This file measures the service that flows have attained with their last ended requests, to compare it with the bound
// of vtc or fairshare. The flows of a class are compared in each lane, by the service that counts in that lane; only
// flows that have waited there throughout the window, below their caps, are compared. Service out of turn does not
// count, and excludes its flow for a window. A request is noted at its end, and a later correction of its cost is noted
// when it comes.

// attainedWindow is the number of the last notes that count.
const attainedWindow = 1024

// attained has the last notes, in a ring.
type attained struct {
	notes [attainedWindow]note
	n     uint64 // notes ever made
}

// note is the service that a request of one of a class's own flows has attained at its end, over the weight at its
// dispatch.
type note struct {
	flow     *flow
	lane     Lane
	also     []Lane      // as of Request.CountAlsoIn
	service  VirtualTime // below 0 for a correction after the end that lowers it
	error    VirtualTime // service minus the charge at dispatch, or before the correction
	inflight int32       // requests of the flow that were in flight
}

// add notes the service attained by r, of f; wrong is its surplus over the charge at dispatch.
func (a *attained) add(f *flow, r *Request, service, wrong VirtualTime) {
	a.notes[a.n%attainedWindow] = note{f, r.Lane, r.also(), service, wrong, f.inflight}
	a.n++
}

// CountsAttained reports whether Completed counts a flow's service in the request's lane, with VTC and FairShare.
// Otherwise it does not use the lane.
func (q *FairRequestQueue) CountsAttained() bool { return q.attained != nil }

// unsettle excludes fl from the comparison until a whole window has passed.
func (fl *flowLane) unsettle() {
	if a := fl.lane.class.tier.queue.attained; a != nil {
		fl.settled = uint32(a.n)
	}
}

// unsettleIn calls unsettle for f in the lanes in which r counts.
func (f *flow) unsettleIn(r *Request) {
	for _, fl := range f.lanes {
		if fl.lane.name == r.Lane || slices.Contains(r.also(), fl.lane.name) {
			fl.unsettle()
		}
	}
}

// Fairness compares the service of a tier's flows in the last window.
type Fairness struct {
	Tier int
	// Gap is the largest difference between two flows in cost served over weight. Bound is the bound on Gap, from the
	// two flows' largest costs, the errors of their estimates, and their requests in flight. With FairShare the longest
	// wait's bonus is added, and the former part is tripled if one of the two was above the threshold.
	Gap, Bound float64
}

// Fairness returns one element for each tier that accepts arrivals; none, unless the discipline is VTC or FairShare. It visits
// a bounded number of notes and flows.
func (q *FairRequestQueue) Fairness() (tiers []Fairness) {
	if q.attained == nil {
		return nil
	}
	lanes := q.attained.compare(q)
	for _, t := range q.tiers {
		worst := Fairness{Tier: t.id}
		for _, l := range lanes {
			if l.lane.class.tier != t {
				continue
			}
			if gap := l.most.service - l.least.service; gap > worst.Gap {
				worst.Gap, worst.Bound = gap, l.most.slack()+l.least.slack()+l.most.ahead(q)+l.least.ahead(q)
				if q.shares != nil {
					worst.Bound = q.shares.bound(t, worst.Bound, l.most.heavy || l.least.heavy)
				}
			}
		}
		if !t.removed {
			tiers = append(tiers, worst)
		}
	}
	return tiers
}

// attainment is the service of one flow in the window, in cost over weight.
type attainment struct {
	service        float64
	largest, error float64
	inflight       float64
	weight         Weight
	heavy          bool // it was above the threshold
}

// ahead is the flow's largest lead over others, or lag behind them, because requests take another's turn.
func (a *attainment) ahead(q *FairRequestQueue) float64 {
	return inCost(increment(q.config.LocalityQuantum, a.weight))
}

// slack is the flow's part of the bound.
func (a *attainment) slack() float64 { return a.largest + a.inflight*(a.largest+2*a.error) }

// compared are the flows of a lane that have attained the most and the least.
type compared struct {
	lane        *classLane
	most, least *attainment
}

// compare sums up the notes by flow and lane, and finds the extremes of each lane.
func (a *attained) compare(q *FairRequestQueue) (lanes []*compared) {
	count := min(a.n, attainedWindow)
	from := uint32(a.n - count)
	of, waiting := map[*flowLane]*attainment{}, []*flowLane(nil)
	get := func(fl *flowLane) *attainment {
		x := of[fl]
		if x == nil {
			x = &attainment{largest: inCost(increment(fl.head.Cost, fl.flow.weight)), inflight: float64(fl.flow.inflight), weight: fl.flow.weight}
			of[fl], waiting = x, append(waiting, fl)
			x.heavy = fl.flow.wasHeavySince(a.n - count)
		}
		return x
	}
	for i := a.n - count; i < a.n; i++ {
		n := &a.notes[i%attainedWindow]
		for j := range 1 + len(n.also) {
			lane := n.lane
			if j > 0 {
				lane = n.also[j-1]
			}
			if fl := n.flow.laneOf(lane); fl != nil && fl.settledSince(from) && (j == 0 || lane != n.lane) {
				get(fl).add(n)
			}
		}
	}
	for fl := range q.someFlowLanes(2 * attainedWindow) { // flows that have attained nothing
		if fl.settledSince(from) {
			get(fl)
		}
	}
	byLane := map[*classLane]*compared{}
	for _, fl := range waiting {
		l := byLane[fl.lane]
		if l == nil {
			l = &compared{lane: fl.lane, most: of[fl], least: of[fl]}
			byLane[l.lane], lanes = l, append(lanes, l)
		}
		if of[fl].service > l.most.service {
			l.most = of[fl]
		}
		if of[fl].service < l.least.service {
			l.least = of[fl]
		}
	}
	return lanes
}

// add adds a note.
func (a *attainment) add(n *note) {
	a.service += inCost(n.service)
	a.largest = max(a.largest, inCost(n.service), inCost(n.service-n.error))
	a.error = max(a.error, math.Abs(inCost(n.error)))
	a.inflight = max(a.inflight, float64(n.inflight))
}

// inCost returns a virtual time as cost over weight.
func inCost(v VirtualTime) float64 { return float64(int64(v)) / (1 << virtualBits) }

// settledSince reports whether fl has waited in the same way since the note with this number.
func (fl *flowLane) settledSince(n uint32) bool { return fl.parked == 0 && int32(fl.settled-n) <= 0 }

// someFlowLanes iterates over up to n lanes of the classes' own tracked flows, the longest waiting flows of each class
// first.
func (q *FairRequestQueue) someFlowLanes(n int) func(yield func(*flowLane) bool) {
	return func(yield func(*flowLane) bool) {
		for _, t := range q.tiers {
			for _, c := range t.classes {
				for f := range c.flows.all() {
					for _, fl := range f.lanes {
						if n--; n < 0 || !yield(fl) {
							return
						}
					}
				}
			}
		}
	}
}
