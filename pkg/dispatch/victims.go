package dispatch

import (
	"container/heap"

	"github.com/weir-epp/weir/pkg/stock"
)

// victims are the leases that may be preempted: those of tiers below one that may preempt, whose answer has not begun,
// and that were not granted by promotion. They are indexed by tier and endpoint. The victim for a request that may use
// a few endpoints is found by comparing the first of each; for a request that may use many, by going through the
// endpoints in order of their first victim, since these form a heap as well.
type victims struct {
	order    VictimOrder
	sequence uint64
	n        int
	tiers    [stock.MaxTiers]victimTier
}

// victimTier holds the victims of one tier.
type victimTier struct {
	byEndpoint map[Endpoint]*victimHeap
	used       usedHeap // those that are not empty
	n          int
}

// victimHeap holds the victims at one endpoint, the first to be preempted on top. It implements heap.Interface.
type victimHeap struct {
	owner     *victims
	endpoint  Endpoint
	leases    []*Lease
	usedIndex int // index in used
}

func (h *victimHeap) Len() int { return len(h.leases) }

func (h *victimHeap) Less(i, j int) bool { return h.owner.before(h.leases[i], h.leases[j]) }

func (h *victimHeap) Swap(i, j int) {
	h.leases[i], h.leases[j] = h.leases[j], h.leases[i]
	h.leases[i].victimIndex, h.leases[j].victimIndex = int32(i+1), int32(j+1)
}

// Push implements heap.Interface.
func (h *victimHeap) Push(x any) {
	l := x.(*Lease)
	h.leases = append(h.leases, l)
	l.victimIndex = int32(len(h.leases))
}

// Pop implements heap.Interface.
func (h *victimHeap) Pop() any {
	last := len(h.leases) - 1
	l := h.leases[last]
	h.leases[last] = nil
	h.leases = h.leases[:last]
	l.victimIndex = 0
	return l
}

// before reports whether a is preempted before b; both are of one tier.
func (v *victims) before(a, b *Lease) bool {
	if v.order == LeastCostFirst && a.held.Tokens() != b.held.Tokens() {
		return a.held.Tokens() < b.held.Tokens()
	}
	return a.victimAge > b.victimAge
}

// addNewest adds l as the newest lease.
func (v *victims) addNewest(l *Lease) {
	v.sequence++
	l.victimAge = v.sequence
	v.add(l)
}

// add adds l in the position of its age.
func (v *victims) add(l *Lease) {
	t := &v.tiers[l.held.Tier()]
	h := t.byEndpoint[l.Endpoint()]
	if h == nil {
		h = &victimHeap{owner: v, endpoint: l.Endpoint()}
		if t.byEndpoint == nil {
			t.byEndpoint = map[Endpoint]*victimHeap{}
		}
		t.byEndpoint[l.Endpoint()] = h
	}
	heap.Push(h, l)
	if len(h.leases) == 1 {
		heap.Push(&t.used, h)
	} else if h.leases[0] == l {
		heap.Fix(&t.used, h.usedIndex)
	}
	t.n++
	v.n++
}

// remove removes l, if it is in victims.
func (v *victims) remove(l *Lease) {
	if l.victimIndex == 0 {
		return
	}
	t := &v.tiers[l.held.Tier()]
	h := t.byEndpoint[l.Endpoint()]
	if len(h.leases) == 1 {
		heap.Remove(&t.used, h.usedIndex)
	}
	first := l.victimIndex == 1
	heap.Remove(h, int(l.victimIndex)-1)
	if first && len(h.leases) > 0 {
		heap.Fix(&t.used, h.usedIndex)
	}
	t.n--
	v.n--
}

// fewEnds is the largest number of endpoints that are compared one by one.
const fewEnds = 64

// first returns the first victim of a tier at an endpoint of the lane that is usable; nil if there is none.
func (v *victims) first(tier int, lane *laneNote, usable func(Endpoint) bool) *Lease {
	t := &v.tiers[tier]
	if lane.whole || len(lane.endpoints) > fewEnds {
		return t.firstBelow(0, nil, usable)
	}
	var best *Lease
	if t.n == 0 {
		return nil
	}
	for _, e := range lane.endpoints {
		h := t.byEndpoint[e]
		if h == nil || len(h.leases) == 0 {
			continue
		}
		if l := h.leases[0]; (best == nil || v.before(l, best)) && usable(e) {
			best = l
		}
	}
	return best
}

// firstBelow returns the first victim at a usable endpoint below an index of the heap, or best if that comes first. It
// skips whatever is below a usable endpoint, or after best.
func (t *victimTier) firstBelow(at int, best *Lease, usable func(Endpoint) bool) *Lease {
	if at >= len(t.used) {
		return best
	}
	h := t.used[at]
	switch l := h.leases[0]; {
	case best != nil && !h.owner.before(l, best):
		return best
	case usable(h.endpoint):
		return l
	}
	return t.firstBelow(2*at+2, t.firstBelow(2*at+1, best, usable), usable)
}

// reorder changes the order.
func (v *victims) reorder(order VictimOrder) {
	if v.order == order {
		return
	}
	v.order = order
	for i := range v.tiers {
		for _, h := range v.tiers[i].used {
			heap.Init(h)
			for at, l := range h.leases {
				l.victimIndex = int32(at + 1)
			}
		}
		heap.Init(&v.tiers[i].used)
		for at, h := range v.tiers[i].used {
			h.usedIndex = at
		}
	}
}

// usedHeap holds the endpoints that have victims, the one with the first victim on top. It implements heap.Interface.
type usedHeap []*victimHeap

func (u usedHeap) Len() int { return len(u) }

func (u usedHeap) Less(i, j int) bool { return u[i].owner.before(u[i].leases[0], u[j].leases[0]) }

func (u usedHeap) Swap(i, j int) {
	u[i], u[j] = u[j], u[i]
	u[i].usedIndex, u[j].usedIndex = i, j
}

// Push implements heap.Interface.
func (u *usedHeap) Push(x any) {
	h := x.(*victimHeap)
	h.usedIndex = len(*u)
	*u = append(*u, h)
}

// Pop implements heap.Interface.
func (u *usedHeap) Pop() any {
	last := len(*u) - 1
	h := (*u)[last]
	(*u)[last] = nil
	*u = (*u)[:last]
	return h
}
