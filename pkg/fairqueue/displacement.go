package fairqueue

import (
	"cmp"
	"math/bits"
)

// Displacement in shared mode, when the queue is full: first from lower tiers, lowest first; there among the flows
// above their fair share of the queue the least recently displaced, otherwise among all its flows; its newest request
// goes. Then, inside the arrival's tier, from the flow with the most waiting requests over weight; when that would be
// the arrival's own flow, or no other would have more than it, the arrival is refused. Places are what is scarce, so it
// is places that are counted, whatever the requests cost.

// shedding is what a flow keeps for displacement.
type shedding struct {
	queued int    // the key under which it lies in the share tree
	id     uint64 // order of tracking: the last tie-break
	last   uint64 // when it was last displaced; 0: never
	node   shareNode
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

// sheddingOrder is siblings in the orders that displacement asks for. It is kept in shared mode only.
type sheddingOrder struct {
	enabled bool
	shares  shareTree
	tracked uint64 // how many flows were ever tracked
}

func (s *sheddingOrder) track(f *flow) {
	if !s.enabled {
		return
	}
	s.tracked++
	f.shed.id = s.tracked
}

// update is called in shared mode after f's queue has changed: it enters the orders with its first request and leaves them with its
// last.
func (s *sheddingOrder) update(f *flow) {
	if f.shed.queued > 0 {
		s.shares.remove(f)
	}
	if f.shed.queued = f.queued; f.queued > 0 {
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

// displaceBelow is the request of a lower tier that leaves for an arrival of tier t; nil: there is none.
func (q *FairRequestQueue) displaceBelow(t *tier) *Request {
	if q.config.TierMode == Weighted {
		return nil // each tier has its own part of the queue
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

// displaceWithin is the request of the same tier that leaves for r, an arrival of class c; nil: none is less entitled. At
// each level of its path, classes first, somebody else gives up a place who has more of them over weight than its own
// would have with it.
func (q *FairRequestQueue) displaceWithin(c *class, r *Request) *Request {
	if q.guaranteed(c.tier) {
		return nil
	}
	if most := c.tier.fullest(); most != c && compareRatio(int64(most.queued), most.weight, 1+int64(c.queued), c.weight) > 0 {
		return q.displace(most.shed.shares.most())
	}
	in, key, weight := &c.siblings, c.flowKey(r), q.config.weight(c.flowKey(r))
	for depth := 0; ; depth++ {
		most, own, places := in.shed.shares.most(), in.flows.find(key), int64(1)
		if own != nil {
			places += int64(own.queued)
		}
		switch {
		case most == nil:
			return nil
		case compareRatio(int64(most.queued), most.weight, places, weight) > 0:
			return q.displace(most)
		case own == nil || own.under == nil:
			return nil
		}
		in, key, weight = own.under, c.keyAt(r, depth+1), WeightOne
	}
}

// fullest is the class with the most places over weight, of several the first.
func (t *tier) fullest() *class {
	most := t.classes[0]
	for _, c := range t.classes[1:] {
		if compareRatio(int64(c.queued), c.weight, int64(most.queued), most.weight) > 0 {
			most = c
		}
	}
	return most
}

// displace picks f's newest request, of the fullest flow under it where there are some, and marks those as displaced
// just now.
func (q *FairRequestQueue) displace(f *flow) *Request {
	for q.displacements++; ; f = f.under.shed.shares.most() {
		f.in.shed.shares.remove(f)
		f.shed.last = q.displacements
		f.in.shed.shares.insert(f)
		if f.under == nil {
			return f.newest()
		}
	}
}
