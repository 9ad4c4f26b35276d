package fairqueue

import "math"

// What flows have attained by the last requests that ended, beside what the bound of vtc permits. The flows of a class are
// compared that wait in the same lane, have waited throughout the window, in no other lane and not parked, and did not
// go out of turn. A request is noted when it ends; what its cost turns out to be afterwards is noted then.

// attainedWindow is the number of the last notes that count.
const attainedWindow = 1024

// attained has the last notes, in a ring.
type attained struct {
	notes [attainedWindow]note
	n     uint64 // notes ever made
}

// note is what a request of one of a class's own flows has attained at its end, over the weight at its dispatch.
type note struct {
	flow     *flow
	service  VirtualTime // below 0 for a correction after the end that lowers it
	error    VirtualTime // by how much service is more than the charge at dispatch, or before the correction
	inflight int32       // requests of the flow that were in flight
}

// add notes that a request of f has attained this, which is more by the other than what it was charged at dispatch.
func (a *attained) add(f *flow, service, wrong VirtualTime) {
	a.notes[a.n%attainedWindow] = note{flow: f, service: service, error: wrong, inflight: f.inflight}
	a.n++
}

// unsettle excludes f from what is compared until a whole window has passed.
func (f *flow) unsettle() {
	if a := f.class.tier.queue.attained; a != nil {
		f.position.settled = uint32(a.n)
	}
}

// Fairness is how evenly the flows of a tier have been served in the last window.
type Fairness struct {
	Tier int
	// Gap is the largest difference between two flows in cost served over weight. Bound is what it may be, by the largest
	// costs of the two, the errors of their estimates, and what they had in flight.
	Gap, Bound float64
}

// Fairness returns one element for each tier that accepts arrivals; none, unless the discipline is VTC. It visits a bounded
// number of notes and flows.
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
				worst.Gap, worst.Bound = gap, l.most.slack()+l.least.slack()
			}
		}
		if !t.removed {
			tiers = append(tiers, worst)
		}
	}
	return tiers
}

// attainment is what one flow has attained in the window; in cost over weight.
type attainment struct {
	service        float64
	largest, error float64
	inflight       float64
}

// slack is the flow's part of the bound.
func (a *attainment) slack() float64 { return a.largest + a.inflight*(a.largest+2*a.error) }

// compared are the flows of a lane that have attained the most and the least.
type compared struct {
	lane        *classLane
	most, least *attainment
}

// compare sums up the notes by flow, and finds the extremes of each lane.
func (a *attained) compare(q *FairRequestQueue) (lanes []*compared) {
	count := min(a.n, attainedWindow)
	from := uint32(a.n - count)
	of, flows := map[*flow]*attainment{}, []*flow(nil)
	get := func(f *flow) *attainment {
		x := of[f]
		if x == nil {
			x = &attainment{largest: inCost(increment(f.lanes[0].head.Cost, f.weight)), inflight: float64(f.inflight)}
			of[f], flows = x, append(flows, f)
		}
		return x
	}
	for i := a.n - count; i < a.n; i++ {
		if n := &a.notes[i%attainedWindow]; n.flow.settledSince(from) {
			x := get(n.flow)
			x.service += inCost(n.service)
			x.largest = max(x.largest, inCost(n.service), inCost(n.service-n.error))
			x.error = max(x.error, math.Abs(inCost(n.error)))
			x.inflight = max(x.inflight, float64(n.inflight))
		}
	}
	for f := range q.someFlows(2 * attainedWindow) { // who has attained nothing
		if f.settledSince(from) {
			get(f)
		}
	}
	byLane := map[*classLane]*compared{}
	for _, f := range flows {
		l := byLane[f.lanes[0].lane]
		if l == nil {
			l = &compared{lane: f.lanes[0].lane, most: of[f], least: of[f]}
			byLane[l.lane], lanes = l, append(lanes, l)
		}
		if of[f].service > l.most.service {
			l.most = of[f]
		}
		if of[f].service < l.least.service {
			l.least = of[f]
		}
	}
	return lanes
}

// inCost returns a virtual time as cost over weight.
func inCost(v VirtualTime) float64 { return float64(int64(v)) / (1 << virtualBits) }

// settledSince reports whether f has waited in the same way since the note with this number.
func (f *flow) settledSince(n uint32) bool {
	return f.position.tracked && int32(f.position.settled-n) <= 0 && len(f.lanes) == 1 && f.lanes[0].parked == 0
}

// someFlows iterates over up to n of the classes' own tracked flows, in each class those first that have waited longest.
func (q *FairRequestQueue) someFlows(n int) func(yield func(*flow) bool) {
	return func(yield func(*flow) bool) {
		for _, t := range q.tiers {
			for _, c := range t.classes {
				for f := range c.flows.all() {
					if n--; n < 0 || !yield(f) {
						return
					}
				}
			}
		}
	}
}
