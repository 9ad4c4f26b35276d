package fairqueue

import (
	"math/bits"
	"time"
)

// FlowView is the state of a tracked flow.
type FlowView struct {
	Tier   int
	Class  string
	Flow   string
	Weight Weight
	// Queued is the number of its waiting requests, Cost the sum of their costs.
	Queued int
	Cost   int64
	// Oldest is the arrival of its oldest waiting request; with nested flows, of the oldest of its lanes' next
	// requests.
	Oldest time.Time
	// Entitled is its share of its tier, in millionths: its weight over that of all tracked flows of its class, times the
	// class's quantum over that of all classes of its ring with waiting requests, over the number of rings that have any.
	Entitled int64
	// Parked is true if the flow, or every flow under it, is at its cap in all of its lanes. Closed is true if none of
	// its lanes can go now, and Blocked if all of them are blocked.
	Parked, Closed, Blocked bool
	// Under is the number of nested flows with waiting requests, and Capped the number of waiting requests with a flow
	// at its cap.
	Under, Capped int
}

// glances is the number of requests that View examines for each flow that it returns.
const glances = 4

// View returns up to limit tracked flows: first, roughly, the flows with the earliest expiry, then by tier the longest
// waiting ones. For each flow it examines a few requests, plus one for each lane in which the flow waits.
func (q *FairRequestQueue) View(limit int) []FlowView {
	n := min(limit, q.Flows())
	views, seen := make([]FlowView, 0, n), make(map[*flow]bool, n)
	show := func(f *flow) (more bool) {
		if !seen[f] && len(views) < n {
			seen[f] = true
			views = append(views, f.view())
		}
		return len(views) < n
	}
	looks := 0
	for r := range q.due.all() {
		if looks++; looks > glances*limit || !show(r.flowLane.outermost().flow) {
			break
		}
	}
	for _, t := range q.tiers {
		for _, c := range t.classes {
			for f := range c.flows.all() {
				if !show(f) {
					return views
				}
			}
		}
	}
	return views
}

// ViewOf returns the state of the class's own flow of r, a waiting request. It visits the lanes in which the flow waits.
func (q *FairRequestQueue) ViewOf(r *Request) FlowView { return r.flowLane.outermost().flow.view() }

// ViewsOf returns the states of the flow with this key in each class of a tier in which it waits. It visits the lanes in which
// the flow waits.
func (q *FairRequestQueue) ViewsOf(id int, key string) (views []FlowView) {
	var last *flow
	for fl := range q.parts(id, key) {
		if fl.flow != last {
			last = fl.flow
			views = append(views, last.view())
		}
	}
	return views
}

// ViewUnder is ViewOf for the innermost flow of r; ok is false if that is the class's own. Entitled is its share of the tier.
func (q *FairRequestQueue) ViewUnder(r *Request) (v FlowView, ok bool) {
	if r.flowLane.above == nil {
		return v, false
	}
	return r.flowLane.flow.view(), true
}

func (f *flow) view() FlowView {
	share := int64(millionth)
	for g := f; g != nil; g = g.above {
		share = share * millionths(g.weight, g.siblings.weights) / millionth
	}
	v := FlowView{
		Tier: f.class.tier.id, Class: f.class.config.Name, Flow: f.key, Weight: f.weight, Queued: f.queued, Cost: f.cost,
		Entitled: f.class.entitled(share), Parked: true, Closed: true, Blocked: true,
	}
	if f.under != nil {
		v.Under = f.under.flows.len()
	}
	for _, fl := range f.lanes {
		first := fl.head
		if fl.under == nil {
			first = fl.line.oldest
		}
		if at := f.class.tier.queue.Arrived(first); v.Oldest.IsZero() || at.Before(v.Oldest) {
			v.Oldest = at
		}
		if v.Parked = v.Parked && fl.parked > 0; fl.parked > 0 {
			v.Capped += fl.queued
		} else {
			v.Capped += fl.cappedBelow()
		}
		v.Closed = v.Closed && fl.lane.state != LaneOpen
		v.Blocked = v.Blocked && fl.lane.state == LaneBlocked
	}
	return v
}

// entitled converts a share of the class to a share of the tier, both in millionths.
func (c *class) entitled(ofClass int64) int64 {
	if len(c.tier.classes) == 1 {
		return ofClass
	}
	sum, rings := int64(0), int64(0)
	for _, r := range c.tier.rings {
		waits := false
		for _, o := range r.classes {
			if o.queued > 0 {
				waits = true
				if r == c.ring {
					sum += int64(o.config.Quantum)
				}
			}
		}
		rings += one(waits)
	}
	return ofClass * int64(c.config.Quantum) / sum / rings // below 2^51
}

// millionths returns part/whole in millionths, without overflow for any weights.
func millionths(part, whole Weight) int64 {
	hi, lo := bits.Mul64(uint64(part), budgetUnlimited)
	quo, _ := bits.Div64(hi, lo, uint64(whole)) // part <= whole
	return int64(quo)
}
