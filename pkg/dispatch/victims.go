package dispatch

import (
	"container/heap"

	"github.com/weir-epp/weir/pkg/stock"
)

// victims are the leases that may be preempted: those of tiers below one that may preempt, whose answer has not
// begun, and that were not granted by promotion. They lie by tier and endpoint, so that the victim for a request that
// may use some endpoints only is found by looking at the first of each.
type victims struct {
	order    VictimOrder
	sequence uint64
	n        int
	tiers    [stock.MaxTiers]victimTier
}

// victimTier holds one tier's.
type victimTier struct {
	byEndpoint map[Endpoint]*victimHeap
	used       []*victimHeap // those that are not empty
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
	if len(h.leases) == 0 {
		h.at = len(t.used)
		t.used = append(t.used, h)
	}
	heap.Push(h, l)
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
	heap.Remove(h, int(l.victimAt)-1)
	if len(h.leases) == 0 {
		last := len(t.used) - 1
		t.used[h.at] = t.used[last]
		t.used[h.at].at = h.at
		t.used[last] = nil
		t.used = t.used[:last]
	}
	t.n--
	v.n--
}

// first is the first victim of a tier among the endpoints of a lane that usable lets through; nil: none.
func (v *victims) first(tier int, lane *laneNote, usable func(Endpoint) bool) *Lease {
	var best *Lease
	t := &v.tiers[tier]
	if lane.whole {
		for _, h := range t.used {
			if l := h.leases[0]; (best == nil || v.before(l, best)) && usable(h.endpoint) {
				best = l
			}
		}
		return best
	}
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
	}
}
