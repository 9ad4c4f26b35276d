package dispatch

import (
	"cmp"
	"slices"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// A request whose tenant is at its cap cannot use free room, but it may take over a lease of its own tenant in a lower
// tier: a swap, after which the tenant's holdings are the same. So where tenants have caps, each flow lists its
// victims.

// listVictims turns flows' lists of victims on or off.
func (v *victims) listVictims(on bool, accounts ...*flowAccounts) {
	if v.listed == on {
		return
	}
	v.listed = on
	if !on {
		for _, of := range accounts {
			for _, t := range of.known {
				for _, a := range t.flows {
					a.victims = nil
				}
			}
		}
		return
	}
	for i := range v.tiers {
		for h := range v.tiers[i].used.All() {
			for _, l := range h.leases {
				l.listVictim()
			}
		}
	}
}

// listVictim adds l to the lists of victims of its flow and its user; unlistVictim removes it.
func (l *Lease) listVictim() {
	l.flow.listVictim(l)
	if u := userOf(l.Waiter()); u != nil {
		u.listVictim(l)
	}
}

func (l *Lease) unlistVictim() {
	l.flow.unlistVictim(l)
	if u := userOf(l.Waiter()); u != nil {
		u.unlistVictim(l)
	}
}

func (a *flowAccount) findVictim(l *Lease) (at int, listed bool) {
	return slices.BinarySearchFunc(a.victims, l, func(x, l *Lease) int { return cmp.Compare(x.victimAge, l.victimAge) })
}

func (a *flowAccount) listVictim(l *Lease) {
	at, _ := a.findVictim(l)
	a.victims = slices.Insert(a.victims, at, l)
}

func (a *flowAccount) unlistVictim(l *Lease) {
	if at, listed := a.findVictim(l); listed {
		a.victims = slices.Delete(a.victims, at, at+1)
	}
}

// ownsVictim reports whether any lease of the tenant's may be preempted.
func (m *Machine) ownsVictim(t *tenant) bool {
	return slices.ContainsFunc(t.flows, func(a *flowAccount) bool { return len(a.victims) > 0 })
}

// ownVictim returns the first victim of a tier that w may take over with its tenant at a cap, among the mostLooks
// newest of the tenant; nil if there is none.
func (m *Machine) ownVictim(w *Waiter, tier int) (first *Lease) {
	t := m.holderOf(w)
	a := t.in(tier)
	if a == nil {
		return nil
	}
	for _, v := range a.victims[max(0, len(a.victims)-mostLooks):] {
		switch e := v.Endpoint(); {
		case first != nil && !m.victims.before(v, first) || !m.belowCapsWithout(w, v) || !m.placer.CanServe(w.placement, e):
		case m.takesWithout(e, v.held.Tokens()):
			first = v
		default:
			m.awaitTokens(t, e)
		}
	}
	return first
}

// belowCapsWithout reports whether the caps of w's tenant and user permit a lease at v's endpoint in place of v, a
// lease of the same tenant.
func (m *Machine) belowCapsWithout(w *Waiter, v *Lease) bool {
	t, tokens := w.flow.tenant, v.held.Tokens()
	if m.userAtCap(w) { // and v is the same user's
		if u := userOf(w).tenant; m.limitOf(u).reached(u.inflight-1, u.tokens-tokens) {
			return false
		}
	}
	if m.limitOf(t).reached(t.inflight+int(t.places)-1, t.tokens-tokens) {
		return false
	}
	held := t.byEndpoint.at(v.Endpoint())
	if v.counted {
		held.n--
		held.tokens -= tokens
	}
	return !m.endpointLimit().reached(int(held.n), held.tokens)
}

// requestSwap makes the tenant's parked waiters of a tier search for a victim of their own tenant in the next run, if the
// tier may preempt and there may be one.
func (m *Machine) requestSwap(t *tenant, tier int) {
	if !t.swaps.Has(tier) && m.preempts.Has(tier) && m.ownsVictim(t) {
		t.swaps = t.swaps.With(tier)
		m.swaps[tier] = append(m.swaps[tier], t)
	}
}

// tenantSet is a set of tenants in order of insertion.
type tenantSet struct {
	list []*tenant
	has  map[*tenant]struct{}
}

func (s *tenantSet) add(t *tenant) {
	if _, has := s.has[t]; has {
		return
	}
	if s.has == nil {
		s.has = map[*tenant]struct{}{}
	}
	s.has[t] = struct{}{}
	s.list = append(s.list, t)
}

// roomSwaps are the tenants of one tier that await room in a lane. The first ones have not been tried since there was
// room.
type roomSwaps struct {
	tenantSet
	untried int
}

// takeUntried removes and returns the last untried tenant; nil if there is none.
func (c *roomSwaps) takeUntried() *tenant {
	if c.untried == 0 {
		return nil
	}
	c.untried--
	last, t := len(c.list)-1, c.list[c.untried]
	c.list[c.untried], c.list[last] = c.list[last], nil
	c.list = c.list[:last]
	delete(c.has, t)
	return t
}

// awaitTokens makes a tenant search again when an endpoint has fewer tokens: its victim there alone would not free
// enough.
func (m *Machine) awaitTokens(t *tenant, e Endpoint) {
	s := m.awaitsTokens[e]
	if s == nil {
		s = new(tenantSet)
		if m.awaitsTokens == nil {
			m.awaitsTokens = map[Endpoint]*tenantSet{}
		}
		m.awaitsTokens[e] = s
	}
	s.add(t)
}

// fewerTokensAt makes the tenants that await fewer tokens at an endpoint search again, if the tokens are now few enough
// for any of them.
func (m *Machine) fewerTokensAt(e Endpoint) {
	if m.awaitsTokens[e] != nil && m.victimFits(e) != 0 {
		m.requestSwapsAt(e)
	}
}

// requestSwapsAt makes the tenants that await fewer tokens at an endpoint search again.
func (m *Machine) requestSwapsAt(e Endpoint) {
	s := m.awaitsTokens[e]
	if s == nil {
		return
	}
	delete(m.awaitsTokens, e)
	for _, t := range s.list {
		if t.parked {
			m.requestSwaps(t)
		}
	}
}

// requestSwaps is requestSwap for every tier in which the tenant waits.
func (m *Machine) requestSwaps(t *tenant) {
	for _, a := range t.flows {
		if a.waiting > 0 {
			m.requestSwap(t, a.tier)
		}
	}
}

// swapAny is swap for all tiers, the highest first.
func (m *Machine) swapAny() {
	if !m.pending.overdue { // else the next event follows at once
		_ = slices.ContainsFunc(m.byRank, m.swap)
	}
}

// swap finds a parked waiter of a tier that may take over a lease of its own tenant, makes it the preemptor, and
// reports whether there is one. Swaps prevented only by the stock are kept: the capacity is exceeded, or reserved for a
// higher tier.
func (m *Machine) swap(tier int) bool {
	for m.requestNextSwap(tier) {
		n := len(m.swaps[tier])
		if m.ledger.Headroom(tier) < 0 || !m.ledger.BelowUpperWithoutOne() {
			return false
		}
		t := m.swaps[tier][n-1]
		if w := m.swapper(t, tier); w != nil {
			m.preemptor = w
			return true
		}
		t.swaps &^= 1 << tier
		m.swaps[tier][n-1] = nil
		m.swaps[tier] = m.swaps[tier][:n-1]
	}
	return false
}

// requestNextSwap makes a tenant of a tier search for a victim of its own, if any tenant may have one. Tenants that
// await room in a lane search one at a time, until one finds the lane over its bound.
func (m *Machine) requestNextSwap(tier int) bool {
	for len(m.swaps[tier]) == 0 {
		last := len(m.roomier[tier]) - 1
		if last < 0 {
			return false
		}
		n := m.roomier[tier][last]
		var next *tenant
		if c := n.swaps[tier]; c != nil && !n.overBound.Has(tier) {
			next = c.takeUntried()
		}
		if next == nil {
			m.roomier[tier][last] = nil
			m.roomier[tier] = m.roomier[tier][:last]
			n.roomier &^= 1 << tier
			continue
		}
		m.requestSwap(next, tier)
	}
	return true
}

// swapper returns the tenant's first waiter of a tier that its caps block and that has a victim; nil if there is none.
func (m *Machine) swapper(t *tenant, tier int) *Waiter {
	a := t.in(tier)
	if !m.capped || a == nil || a.waiting == 0 || !m.ownsVictim(t) {
		return nil
	}
	if m.heads = renew(m.heads); t.user != nil {
		m.heads = m.queue.HeadsUnder(tier, t.user.above.key, t.user.under, m.heads)
	} else {
		m.heads = m.queue.HeadsOf(tier, t.key, m.heads)
		fairqueue.SortHeads(m.heads)
	}
	for _, r := range m.heads {
		w := waiterOf(r)
		m.asking = w
		swaps := (m.userAtCap(w) || m.cappedEverywhere(w)) && m.victimOf(w) != nil
		m.asking = nil
		if swaps {
			return w
		}
	}
	return nil
}

// awaitRoom makes a tenant or a user, whose lane is over its upper bound, search again in a tier after a relevant
// change.
func (n *laneNote) awaitRoom(t *tenant, tier int) {
	if n.swaps == nil {
		n.swaps = map[int]*roomSwaps{}
	}
	if n.swaps[tier] == nil {
		n.swaps[tier] = new(roomSwaps)
	}
	n.swaps[tier].add(t)
}
