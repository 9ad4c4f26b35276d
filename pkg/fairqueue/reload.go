package fairqueue

import (
	"fmt"
	"slices"

	"github.com/weir-epp/weir/pkg/invalid"
)

// Reconfigure changes the whole configuration of the running queue, or nothing if it returns an error. Waiters keep
// their places and deadlines, a smaller size evicts no request, and virtual time and deficits are kept. A tier that is
// no longer listed keeps its rank, accepts no arrivals and drains; a new tier gets its own identifier. CapacityMode,
// TierMode and Discipline cannot change.
func (q *FairRequestQueue) Reconfigure(cfg Config) error {
	const nobodyGoes = ^TierSet(0)
	if err := q.Reconfigurable(cfg, nobodyGoes); err != nil {
		return err
	}
	order, names := q.reorder(cfg.Tiers)
	was := q.config.FairShare
	q.config, q.tiers, q.names = cfg, order, names
	q.changes++
	q.configured++
	q.reloaded = q.charges
	if q.budget.share = cfg.PromotionBudget; q.budget.share == 0 {
		q.budget.credit = 0
	}
	for _, t := range q.tiers {
		q.byID[t.id] = t
	}
	for _, t := range q.tiers {
		t.reclass(q)
	}
	q.rerank()
	for _, t := range q.tiers {
		for _, c := range t.classes {
			for f := range c.flows.all() {
				q.reconfigureFlow(f)
			}
			q.reweighIdle(&c.siblings)
			if q.shares == nil {
				continue
			}
			for u := c.fair.first; u != nil; u = u.newer {
				c.fair.enter(&u.flow.share)
			}
			if was.WaitBonus != cfg.FairShare.WaitBonus {
				c.siblings.retag()
			}
		}
	}
	if q.shares != nil {
		q.shares.renew(was)
	}
	return nil
}

// retag recomputes the tag of every head.
func (s *siblings) retag() {
	for f := range s.flows.all() {
		if f.under != nil {
			f.under.retag()
		}
		f.retag(nil)
	}
}

// reconfigureFlow gives a class's own flow, and those under it, their weights, and its capacity.
func (q *FairRequestQueue) reconfigureFlow(f *flow) {
	q.reweighAll(f)
	if f.under != nil {
		f.under.newcomerFirst = f.siblings.newcomerFirst
	}
	t := f.class.tier
	t.reserved -= int(f.reserves)
	f.capacity = q.config.flowCapacity(f.key)
	f.reserves = int32(q.reserves(t, f.capacity)) // at most mostWaiting
	t.reserved += int(f.reserves)
}

// reweighAll gives a flow and those under it their weights.
func (q *FairRequestQueue) reweighAll(f *flow) {
	f.reweigh(q.config.leastWeight(f))
	if f.under != nil {
		for g := range f.under.flows.all() {
			q.reweighAll(g)
		}
	}
}

// reweighIdle gives the known flows in which nothing waits, of a level and of those under it, their weights.
func (q *FairRequestQueue) reweighIdle(in *siblings) {
	for f := range in.flows.idle() {
		q.config.idleWeight(f)
		if f.under != nil {
			q.reweighIdle(f.under)
		}
	}
	if q.config.levels() == 1 {
		return
	}
	for f := range in.flows.all() {
		if f.under != nil {
			q.reweighIdle(f.under)
		}
	}
}

// Reconfigurable returns Reconfigure's error for the configuration after Forget(inUse), as invalid.Problems, or nil. It
// changes nothing.
func (q *FairRequestQueue) Reconfigurable(cfg Config, inUse TierSet) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	var ps invalid.Problems
	for _, fixed := range []struct {
		field   string
		changes bool
	}{
		{"TierMode", cfg.TierMode != q.config.TierMode},
		{"CapacityMode", cfg.CapacityMode != q.config.CapacityMode},
		{"Discipline", cfg.Discipline != q.config.Discipline},
		{"Levels", cfg.levels() != q.config.levels()},
	} {
		if fixed.changes {
			ps.Add(invalid.At(fixed.field), nil, "cannot change at run time")
		}
	}
	tiers := len(cfg.Tiers)
	for _, t := range q.tiers { // removed tiers that are still there
		listed := slices.ContainsFunc(cfg.Tiers, func(c TierConfig) bool { return c.Name == t.config.Name })
		if !listed && !t.gone(inUse) {
			tiers++
		}
	}
	if tiers > maxTiers {
		ps.Add(invalid.At("Tiers"), invalid.Shown(fmt.Sprintf("%d tiers with those that still drain", tiers)),
			"must be at most %d", maxTiers)
	}
	return ps.Err()
}

// gone reports whether a tier was removed and has drained; inUse are the tiers that leases still refer to.
func (t *tier) gone(inUse TierSet) bool { return t.removed && t.queued == 0 && !inUse.Has(t.id) }

// reorder returns the new order of tiers: the listed ones, and each removed one that still has waiters after its former
// upper neighbour. It only changes the listed tiers' own configuration.
func (q *FairRequestQueue) reorder(listed []TierConfig) (order []*tier, names map[string]*tier) {
	names = map[string]*tier{}
	used := TierSet(0)
	for _, t := range q.tiers {
		used = used.With(t.id)
	}
	type change struct {
		t   *tier
		cfg TierConfig
	}
	var changes []change
	for _, tc := range listed {
		t := q.find(tc.Name)
		if t == nil {
			id := 0
			for ; used.Has(id); id++ { // Reconfigurable has counted them
			}
			used = used.With(id)
			t = newTier(q, id, tc)
		}
		names[tc.Name] = t
		order = append(order, t)
		changes = append(changes, change{t, tc})
	}
	for i, t := range q.tiers {
		if names[t.config.Name] == t {
			continue
		}
		at := 0
		for j := i - 1; j >= 0; j-- {
			if k := slices.Index(order, q.tiers[j]); k >= 0 {
				at = k + 1
				break
			}
		}
		order = slices.Insert(order, at, t)
		t.removed = true
	}
	for _, c := range changes {
		c.t.config, c.t.removed = c.cfg, false
	}
	return order, names
}

// find returns the tier with this name, draining or not.
func (q *FairRequestQueue) find(name string) *tier {
	for _, t := range q.tiers {
		if t.config.Name == name {
			return t
		}
	}
	return nil
}

// Forget drops the removed tiers that have drained; inUse are the tiers that leases still refer to.
func (q *FairRequestQueue) Forget(inUse TierSet) {
	q.changes++
	q.tiers = slices.DeleteFunc(q.tiers, func(t *tier) bool {
		gone := t.gone(inUse)
		if gone {
			q.byID[t.id], q.reloaded = nil, q.charges
		}
		return gone
	})
	q.rerank()
}

// Tier is a tier's public state.
type Tier struct {
	ID      int
	Name    string
	Removed bool // accepts no arrivals, and drains
	Queued  int  // waiting requests
}

// Tiers returns the tiers by rank, highest first.
func (q *FairRequestQueue) Tiers() []Tier {
	tiers := make([]Tier, len(q.tiers))
	for i, t := range q.tiers {
		tiers[i] = Tier{ID: t.id, Name: t.config.Name, Removed: t.removed, Queued: t.queued}
	}
	return tiers
}

// TierID returns the identifier of the tier with this name that accepts arrivals; of the lowest one if the name is
// unknown.
func (q *FairRequestQueue) TierID(name string) int {
	if t := q.names[name]; t != nil {
		return t.id
	}
	return q.tierOf(-1).id
}

// Highest reports whether the tier with this identifier is the highest that accepts arrivals.
func (q *FairRequestQueue) Highest(id int) bool { return q.tierOf(id) == q.top }
