package fairqueue

import (
	"math/bits"
	"time"
)

// FlowView is a look at a tracked flow.
type FlowView struct {
	Tier   int
	Flow   string
	Weight Weight
	// Queued is the number of its waiting requests, Cost the sum of their costs.
	Queued int
	Cost   int64
	// Oldest is when the first of its waiting requests arrived.
	Oldest time.Time
	// Entitled is its share of its tier, in millionths: its weight over that of the tier's tracked flows.
	Entitled int64
	// Parked: it is at its cap. Closed: none of its lanes can go now.
	Parked, Closed bool
}

// View looks at up to limit tracked flows, roughly those first whose waiters expire first. It costs a glance at each
// request that expires before the head of the last flow that it shows.
func (q *FairRequestQueue) View(limit int) []FlowView {
	n := min(limit, q.Flows())
	views := make([]FlowView, 0, n)
	for r := range q.due.all() {
		if len(views) == n {
			break
		}
		if fl := r.at; fl.line.first == r && fl.flow.lanes[0] == fl { // each flow once
			views = append(views, fl.flow.view())
		}
	}
	return views
}

func (f *flow) view() FlowView {
	v := FlowView{
		Tier: f.tier.id, Flow: f.key, Weight: f.weight, Queued: f.queued, Cost: f.cost,
		Entitled: millionths(f.weight, f.tier.weights), Parked: true, Closed: true,
	}
	for _, fl := range f.lanes {
		if first := fl.line.first; v.Oldest.IsZero() || first.arrived.Before(v.Oldest) {
			v.Oldest = first.arrived
		}
		v.Parked = v.Parked && fl.parked
		v.Closed = v.Closed && fl.lane.state != LaneOpen
	}
	return v
}

// millionths is part/whole in millionths, without overflow for any weights.
func millionths(part, whole Weight) int64 {
	hi, lo := bits.Mul64(uint64(part), budgetUnlimited)
	quo, _ := bits.Div64(hi, lo, uint64(whole)) // part <= whole
	return int64(quo)
}
