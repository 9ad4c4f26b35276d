package dispatch

import (
	"container/heap"

	"github.com/weir-epp/weir/pkg/stock"
)

// victims are the leases that may be preempted: those of tiers below one that may preempt, whose answer has not
// begun, and that were not granted by promotion. They lie by tier and endpoint: the victim for a request that may use a
// few endpoints only is found by looking at the first of each, and that for one that may use many by looking at the
// endpoints in order of their first, which are a heap as well.
type victims struct {
	order    VictimOrder
	sequence uint64
	n        int
	tiers    [stock.MaxTiers]victimTier
}

// victimTier holds one tier's.
type victimTier struct {
	byEndpoint map[Endpoint]*victimHeap
	used       usedHeap // those that are not empty
	n          int
}

// victimHeap holds those at one endpoint, the first victim on top. It implements heap.Interface.
type victimHeap struct {
	owner    *victims
	endpoint Endpoint
	leases   []*Lease
	at       int // in used
}

func (h *victimHeap) Len() int { return len(h.leases) }

func (h *victimHeap) Less(i, j int) bool { return h.owner.before(h.leases[i], h.leases[j]) }

func (h *victimHeap) Swap(i, j int) {
	h.leases[i], h.leases[j] = h.leases[j], h.leases[i]
	h.leases[i].victimAt, h.leases[j].victimAt = int32(i+1), int32(j+1)
}

// Push implements heap.Interface.
func (h *victimHeap) Push(x any) {
	l := x.(*Lease)
	h.leases = append(h.leases, l)
	l.victimAt = int32(len(h.leases))
}

// Pop implements heap.Interface.
func (h *victimHeap) Pop() any {
	last := len(h.leases) - 1
	l := h.leases[last]
	h.leases[last] = nil
	h.leases = h.leases[:last]
	l.victimAt = 0
	return l
}

// before reports whether a is preempted before b, both of one tier.
func (v *victims) before(a, b *Lease) bool {
	if v.order == LeastCostFirst && a.held.Cost() != b.held.Cost() {
		return a.held.Cost() < b.held.Cost()
	}
	return a.granted > b.granted
}

// enter adds l, the newest lease.
func (v *victims) enter(l *Lease) {
	v.sequence++
	l.granted = v.sequence
	v.add(l)
}

// add puts l where its lease's age has it.
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
		heap.Fix(&t.used, h.at)
	}
	t.n++
	v.n++
}

// remove takes l out, if it is in.
func (v *victims) remove(l *Lease) {
	if l.victimAt == 0 {
		return
	}
	t := &v.tiers[l.held.Tier()]
	h := t.byEndpoint[l.Endpoint()]
	if len(h.leases) == 1 {
		heap.Remove(&t.used, h.at)
	}
	first := l.victimAt == 1
	heap.Remove(h, int(l.victimAt)-1)
	if first && len(h.leases) > 0 {
		heap.Fix(&t.used, h.at)
	}
	t.n--
	v.n--
}

// fewEnds is how many endpoints are looked at one by one.
const fewEnds = 64

// first is the first victim of a tier at an endpoint of the lane that usable lets through; nil: none.
func (v *victims) first(tier int, lane *laneNote, usable func(Endpoint) bool) *Lease {
	t := &v.tiers[tier]
	if lane.whole || len(lane.ends) > fewEnds {
		return t.firstBelow(0, nil, usable)
	}
	var best *Lease
	if t.n == 0 {
		return nil
	}
	for _, e := range lane.ends {
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

// firstBelow is the first victim at one of the endpoints below a place of the heap that usable lets through, or best if
// that is before it. What is below a usable endpoint, or after best, is not looked at.
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
				l.victimAt = int32(at + 1)
			}
		}
		heap.Init(&v.tiers[i].used)
		for at, h := range v.tiers[i].used {
			h.at = at
		}
	}
}

// usedHeap holds the endpoints that have victims, that with the first on top. It implements heap.Interface.
type usedHeap []*victimHeap

func (u usedHeap) Len() int { return len(u) }

func (u usedHeap) Less(i, j int) bool { return u[i].owner.before(u[i].leases[0], u[j].leases[0]) }

func (u usedHeap) Swap(i, j int) {
	u[i], u[j] = u[j], u[i]
	u[i].at, u[j].at = i, j
}

// Push implements heap.Interface.
func (u *usedHeap) Push(x any) {
	h := x.(*victimHeap)
	h.at = len(*u)
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
