package dispatch

import (
	"github.com/weir-epp/weir/internal/heap"
	"github.com/weir-epp/weir/pkg/stock"
)

// victims are the leases that may be preempted: of a tier below one that may preempt, without the first byte, and not
// granted by promotion. They are indexed by tier and endpoint. For a request with few endpoints, the search compares
// each endpoint's first victim; with many, it visits the endpoints in order of their first victim, which also form a
// heap. Where tenants have caps, each flow also lists its own victims (own.go).
type victims struct {
	order    VictimOrder
	listed   bool // flows list their own
	sequence uint64
	n        int
	tiers    [stock.MaxTiers]victimTier
}

// victimTier holds the victims of one tier.
type victimTier struct {
	byEndpoint map[Endpoint]*victimHeap
	used       heap.Heap[*victimHeap] // the non-empty heaps, with the first victim's on top
	n          int
}

// victimHeap holds the victims at one endpoint, the first to be preempted on top.
type victimHeap struct {
	owner      *victims
	endpoint   Endpoint
	leases     []*Lease
	most       []stock.Tokens // for each victim, the most tokens freed by one victim of its subtree
	usedNumber int32          // in used; 0 if it is empty
}

// push adds l.
func (h *victimHeap) push(l *Lease) {
	at := len(h.leases)
	h.leases, h.most = append(h.leases, l), append(h.most, 0)
	h.rise(at, l)
	h.measure(at)
}

// remove removes the victim with an index.
func (h *victimHeap) remove(at int) {
	h.leases[at].victimIndex = 0
	last := len(h.leases) - 1
	l := h.leases[last]
	h.leases[last] = nil
	h.leases, h.most = h.leases[:last], h.most[:last]
	if last > 0 {
		h.measure((last - 1) / 2)
	}
	if at == last {
		return
	}
	if h.rise(at, l) {
		h.measure(at)
		return
	}
	for {
		child := 2*at + 1
		if child >= last {
			break
		}
		if right := child + 1; right < last && h.owner.before(h.leases[right], h.leases[child]) {
			child = right
		}
		if !h.owner.before(h.leases[child], l) {
			break
		}
		h.put(at, h.leases[child])
		at = child
	}
	h.put(at, l)
	h.measure(at)
}

// rise puts l at an index or above, where it belongs, and reports whether it rose.
func (h *victimHeap) rise(at int, l *Lease) (rose bool) {
	for ; at > 0 && h.owner.before(l, h.leases[(at-1)/2]); at = (at - 1) / 2 {
		h.put(at, h.leases[(at-1)/2])
		rose = true
	}
	h.put(at, l)
	return rose
}

func (h *victimHeap) put(at int, l *Lease) {
	h.leases[at] = l
	l.victimIndex = int32(at + 1)
}

// measure computes most at an index and above.
func (h *victimHeap) measure(at int) {
	for {
		most := h.leases[at].held.Tokens()
		for child := 2*at + 1; child < min(2*at+3, len(h.leases)); child++ {
			most = max(most, h.most[child])
		}
		h.most[at] = most
		if at == 0 {
			return
		}
		at = (at - 1) / 2
	}
}

// mostLooks bounds the leases of one endpoint, or of one flow, that a search for a victim visits.
const mostLooks = 64

// first returns the first victim at an index or below it that frees enough, or best if that comes first. It visits only
// subtrees in which some victim frees enough. Once looks are used up, it returns any such victim.
func (h *victimHeap) first(at int, best *Lease, enough func(stock.Tokens) bool, looks *int) *Lease {
	if at >= len(h.leases) || best != nil && (*looks <= 0 || !h.owner.before(h.leases[at], best)) || !enough(h.most[at]) {
		return best
	}
	*looks--
	if l := h.leases[at]; enough(l.held.Tokens()) {
		return l
	}
	return h.first(2*at+2, h.first(2*at+1, best, enough, looks), enough, looks)
}

// Key returns the key of the first victim, in the order of before.
func (h *victimHeap) Key() heap.Key {
	l := h.leases[0]
	k := heap.Key{Seq: -l.victimAge}
	if h.owner.order == LeastCostFirst {
		k.Value = uint64(l.held.Tokens())
	}
	return k
}

// Handle returns the number among the endpoints that have victims.
func (h *victimHeap) Handle() *int32 { return &h.usedNumber }

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
	h.push(l)
	if len(h.leases) == 1 {
		t.used.Push(h)
	} else if h.leases[0] == l {
		t.used.Fix(h)
	}
	t.n++
	v.n++
	if v.listed {
		l.listVictim()
	}
}

// remove removes l, if it is in victims.
func (v *victims) remove(l *Lease) {
	if l.victimIndex == 0 {
		return
	}
	t := &v.tiers[l.held.Tier()]
	h := t.byEndpoint[l.Endpoint()]
	if len(h.leases) == 1 {
		t.used.Remove(h)
	}
	first := l.victimIndex == 1
	h.remove(int(l.victimIndex) - 1)
	if first && len(h.leases) > 0 {
		t.used.Fix(h)
	}
	t.n--
	v.n--
	if v.listed {
		l.unlistVictim()
	}
}

// fewEnds is the largest number of endpoints that are compared one by one.
const fewEnds = 64

// wantedVictim selects the victims that a request may take over.
type wantedVictim struct {
	at     func(e Endpoint) bool                     // whether victims at an endpoint qualify
	enough func(e Endpoint, frees stock.Tokens) bool // whether that many tokens there are enough
}

// in returns the first wanted victim at one endpoint; nil if there is none.
func (want *wantedVictim) in(h *victimHeap) *Lease {
	looks := mostLooks
	return h.first(0, nil, func(frees stock.Tokens) bool { return want.enough(h.endpoint, frees) }, &looks)
}

// first returns the first wanted victim of a tier in the lane; nil if there is none.
func (v *victims) first(tier int, lane *laneNote, want *wantedVictim) *Lease {
	t := &v.tiers[tier]
	if lane.whole || len(lane.endpoints) > fewEnds {
		return t.first(want)
	}
	var best *Lease
	if t.n == 0 {
		return nil
	}
	for _, e := range lane.endpoints {
		h := t.byEndpoint[e]
		if h == nil || len(h.leases) == 0 || best != nil && !v.before(h.leases[0], best) || !want.at(e) {
			continue
		}
		if l := want.in(h); l != nil && (best == nil || v.before(l, best)) {
			best = l
		}
	}
	return best
}

// first returns the first wanted victim at any endpoint; nil if there is none. It skips all heaps after the best one
// found.
func (t *victimTier) first(want *wantedVictim) (best *Lease) {
	t.used.Walk(func(h *victimHeap) bool {
		if best != nil && !h.owner.before(h.leases[0], best) {
			return false
		}
		if want.at(h.endpoint) {
			if l := want.in(h); l != nil && (best == nil || h.owner.before(l, best)) {
				best = l
			}
		}
		return true
	})
	return best
}

// reorder changes the order.
func (v *victims) reorder(order VictimOrder) {
	if v.order == order {
		return
	}
	v.order = order
	for i := range v.tiers {
		for h := range v.tiers[i].used.All() {
			leases := h.leases
			h.leases, h.most = nil, nil
			for _, l := range leases {
				h.push(l)
			}
		}
		v.tiers[i].used.FixAll()
	}
}
