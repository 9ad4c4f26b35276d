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

// sheddingOrder is a tier's flows in the orders that displacement asks for. It is kept in shared mode only.
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

// update is called after f's queue has changed: it enters the orders with its first request and leaves them with its
// last.
func (s *sheddingOrder) update(f *flow) {
	if !s.enabled {
		return
	}
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
		f := low.shed.shares.leastRecentAbove(int64(q.config.totalCapacity()), low.weights)
		if f == nil {
			f = low.shed.shares.root.shed.node.least
		}
		return q.displace(f)
	}
	return nil
}

// displaceWithin is the request of the same tier that leaves for an arrival of flow key, f if that is tracked; nil:
// none is less entitled.
func (q *FairRequestQueue) displaceWithin(t *tier, f *flow, key string) *Request {
	if q.guaranteed(t) {
		return nil
	}
	most := t.shed.shares.most()
	if most == nil {
		return nil
	}
	own := int64(1)
	if f != nil {
		own += int64(f.queued)
	}
	if compareRatio(int64(most.queued), most.weight, own, q.config.weight(key)) <= 0 {
		return nil
	}
	return q.displace(most)
}

// displace picks f's newest request and marks f as displaced just now.
func (q *FairRequestQueue) displace(f *flow) *Request {
	q.displacements++
	f.tier.shed.shares.remove(f)
	f.shed.last = q.displacements
	f.tier.shed.shares.insert(f)
	return f.newest()
}
