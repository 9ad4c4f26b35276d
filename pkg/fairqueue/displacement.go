package fairqueue

import (
	"cmp"
	"math/bits"
)

// This file is displacement, in shared mode with a full queue. First a request of the lowest lower tier with waiters
// leaves: the newest request of the least recently displaced flow, among the tier's flows above their fair share of the
// queue, or else among all its flows. Without a lower tier's request, one of the arrival's own tier leaves: of the flow
// with the most waiting requests over weight, if that is more than the arrival's own flow would have. Otherwise the
// arrival is rejected. Only places count, not costs, since places are scarce.

// shedding is a flow's state for displacement.
type shedding struct {
	id   uint64 // order of tracking: the last tie-break
	last uint64 // when it was last displaced; 0 if never
	node shareNode
}

// compareRatio compares a/v with b/w exactly.
func compareRatio(a int64, v Weight, b int64, w Weight) int {
	if v == w {
		return cmp.Compare(a, b)
	}
	ahi, alo := bits.Mul64(uint64(a), uint64(w))
	bhi, blo := bits.Mul64(uint64(b), uint64(v))
	switch {
	case ahi == bhi && alo == blo:
		return 0
	case ahi < bhi || ahi == bhi && alo < blo:
		return -1
	default:
		return 1
	}
}

// sheddingOrder keeps siblings in the orders that displacement needs, in shared mode only.
type sheddingOrder struct {
	enabled bool
	shares  shareTree
	tracked uint64 // number of flows ever tracked
}

func (s *sheddingOrder) track(f *flow) {
	if !s.enabled {
		return
	}
	s.tracked++
	f.shed = shedding{id: s.tracked}
}

// recount adds to f's number of waiting requests, which orders flows. f joins the order with its first request and
// leaves it with its last.
func (s *sheddingOrder) recount(f *flow, by int) {
	if s.enabled && f.queued > 0 {
		s.shares.remove(f)
	}
	if f.queued += by; s.enabled && f.queued > 0 {
		s.shares.insert(f)
	}
}

// reweigh changes f's weight.
func (s *sheddingOrder) reweigh(f *flow, w Weight) {
	if !s.enabled {
		f.weight = w
		return
	}
	s.shares.remove(f)
	f.weight = w
	s.shares.insert(f)
}

// displaceBelow returns the request of a lower tier that leaves for an arrival of tier t; nil if there is none.
func (q *FairRequestQueue) displaceBelow(t *tier) *Request {
	if q.config.TierMode == Weighted {
		return nil // each tier has its own share of the queue
	}
	for i := len(q.tiers) - 1; i > t.rank; i-- {
		low := q.tiers[i]
		if low.queued == 0 || q.guaranteed(low) {
			continue
		}
		c := low.fullest()
		f := c.shed.shares.leastRecentAbove(int64(q.config.totalCapacity()), c.weights)
		if f == nil {
			f = c.shed.shares.root.shed.node.least
		}
		return q.displace(f)
	}
	return nil
}

// displaceWithin returns the request of the same tier that leaves for r, an arrival of class c; nil if none is less
// entitled. At each level of r's path, classes first, the sharer with the most places over weight loses one, if that is
// more than r's own sharer would have.
func (q *FairRequestQueue) displaceWithin(c *class, r *Request) *Request {
	if q.guaranteed(c.tier) {
		return nil
	}
	if most := c.tier.fullest(); most != c && compareRatio(int64(most.queued), most.weight, 1+int64(c.queued), c.weight) > 0 {
		return q.displace(most.shed.shares.most())
	}
	in, key := &c.siblings, c.flowKey(r)
	for depth := 0; ; depth++ {
		most, own, places := in.shed.shares.most(), in.flows.find(key), int64(1)
		weight := q.config.weightWith(depth, key, r)
		if own != nil {
			places += int64(own.queued)
			weight = min(weight, own.weight)
		}
		switch {
		case most == nil:
			return nil
		case compareRatio(int64(most.queued), most.weight, places, weight) > 0:
			return q.displace(most)
		case own == nil || own.under == nil:
			return nil
		}
		in, key = own.under, c.keyAt(r, depth+1)
	}
}

// fullest returns the class with the most places over weight, the first of several.
func (t *tier) fullest() *class {
	most := t.classes[0]
	for _, c := range t.classes[1:] {
		if compareRatio(int64(c.queued), c.weight, int64(most.queued), most.weight) > 0 {
			most = c
		}
	}
	return most
}

// displace returns the newest request of f, or of the fullest flow under it, and marks those flows as displaced just
// now.
func (q *FairRequestQueue) displace(f *flow) *Request {
	for q.displacements++; ; f = f.under.shed.shares.most() {
		f.siblings.shed.shares.remove(f)
		f.shed.last = q.displacements
		f.siblings.shed.shares.insert(f)
		if f.under == nil {
			return f.newest()
		}
	}
}
