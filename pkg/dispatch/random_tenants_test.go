package dispatch_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/quota"
)

// With roles and quotas, these hold beside the other properties:
//
//   - A tenant has the cap of its role, and with several the least since it last had nothing here; shares are by the least
//     weight of the roles in which a flow's requests have come since it began to wait.
//   - A request is refused by its tenant's quota exactly if the window has no room for its estimate, but for a sixtieth of the
//     window; it is told when there will be room; it displaces and preempts nobody. Requests that are not served count
//     nothing, and others what they have used.

// tenantsScene is the scene of a seed with roles and quotas.
func tenantsScene(seed uint64) *scene {
	s, r := newScene(seed), rand.New(rand.NewPCG(seed, 6))
	s.metered = true
	window := time.Duration(some(r, 1, 3, 10)) * time.Second
	weights, caps := chance(r, 80), chance(r, 50) && s.config.Queue.Discipline != fairqueue.OneFlow
	least := 1 + r.IntN(3)
	tenants := func(c *dispatch.Config) {
		c.Queue.Roles, c.Roles, c.Quotas.Tenants, c.Quotas.Roles = nil, nil, nil, nil
		if weights {
			c.Queue.Roles = map[string]fairqueue.RoleConfig{}
			for _, role := range roleNames {
				c.Queue.Roles[role] = fairqueue.RoleConfig{Weight: fairqueue.Weight(some[int64](r, 500_000, 1_000_000, 3_000_000))}
			}
		}
		if caps { // a reload may give the least to another role
			c.Roles = map[string]dispatch.RoleConfig{}
			for i, role := range r.Perm(len(roleNames)) {
				c.Roles[roleNames[role]] = dispatch.RoleConfig{MaxInFlight: least + 2*i + r.IntN(2)}
			}
		}
		limit := func() quota.Limit { return quota.Limit{Tokens: some[int64](r, 20, 500, 5000), Window: window} }
		c.Quotas.Tenants = map[string]quota.Limit{"a": limit(), "b": limit()}
		if chance(r, 50) {
			c.Quotas.Roles = map[string]quota.Limit{"s": limit()} // of all tenants, too
		}
	}
	tenants(&s.config)
	for i := range s.changes {
		if c := s.changes[i].config; c != nil {
			tenants(c)
		}
	}
	for i := range s.loads {
		l := &s.loads[i]
		if l.roles = []string{some(r, roleNames...)}; chance(r, 40) {
			l.roles = append(l.roles, some(r, roleNames...), some(r, roleNames...))
		}
	}
	return s
}

// roleNames are the roles.
var roleNames = []string{"s", "t", "u"}

// whose returns the owner of a request's role: the tenant, or the user if tenants have users.
func (o *world) whose(r *request) string {
	if o.config.Queue.Levels < 2 {
		return r.load.flow
	}
	return r.load.flow + "/" + user(r)
}

// counts is whose use of a quota a request counts for: the tenant's if that has its own, else that of whose the role is.
func (o *world) countsFor(r *request) string {
	if o.config.Quotas.Tenants[r.load.flow].Tokens > 0 {
		return r.load.flow
	}
	return o.whose(r)
}

// isHere reports whether a tenant, or a user, has a request here.
func (o *world) isHere(whose string) bool {
	of := func(r *request) bool { return o.whose(r) == whose }
	return slices.ContainsFunc(o.waiting, of) || slices.ContainsFunc(o.running, of)
}

// mostOf returns the cap on the leases of a request's tenant; 0: none.
func (o *world) mostOf(r *request) int {
	if o.config.Queue.Levels > 1 {
		return o.config.MaxInFlightPerFlow
	}
	return o.mostByRole(r, o.config.MaxInFlightPerFlow)
}

// mostByRole is how many leases the tenant or the user may have whose the role is, if others may have so many; 0: any number.
func (o *world) mostByRole(r *request, others int) int {
	if len(o.config.Roles) == 0 {
		return others
	}
	least := math.MaxInt
	for _, role := range o.spells[o.whose(r)] {
		most := others
		if own := o.config.Roles[role].MaxInFlight; own > 0 {
			most = own
		}
		if most > 0 {
			least = min(least, most)
		}
	}
	if least == math.MaxInt {
		return 0
	}
	return least
}

// comes notes the role of an arrival.
func (x *run) comes(r *request) {
	whose := x.whose(r)
	if !x.isHere(whose) {
		x.spells[whose] = nil
	}
	x.spells[whose] = append(x.spells[whose], r.path().Role)
}

// counted is a use of a tenant's quota from some time on.
type counted struct {
	at     time.Time
	tokens int64
}

// uses is a request's estimated use of a quota, and usesIndeed its actual use.
func (r *request) uses() int64 { return 2 * int64(r.cost) }

func (r *request) usesIndeed() int64 { return 2 * int64(r.actual) }

// countedIn returns the use of a tenant's quota in a window of this length up to a time.
func (x *run) countedIn(tenant string, at time.Time, window time.Duration) (n int64) {
	for _, c := range x.counted[tenant] {
		if c.at.Add(window).After(at) {
			n += c.tokens
		}
	}
	return n
}

// meters checks an arrival against its tenant's quota.
func (x *run) meters(r *request) {
	tenant, ended, o := x.countsFor(r), r.w.Stage() == dispatch.StageEnded, r.w.Outcome()
	refused := ended && o == dispatch.OutcomeQuotaExceeded
	if free := !x.config.Enabled || r.passesOn; refused || ended && o == dispatch.OutcomeNoEndpoint && free {
		whose := x.whose(r)
		x.spells[whose] = x.spells[whose][:len(x.spells[whose])-1] // it was turned away at the door
	}
	l := x.config.Quotas.Limit(r.load.flow, r.path().Role)
	if !x.scene.metered || l.None() || r.passesOn {
		if refused {
			x.failf("quota: %v is refused by one that it has not", r)
		}
		return
	}
	slower := l.Window + l.Window/60
	most := l.Tokens - min(r.uses(), l.Tokens)
	least, atMost := x.countedIn(tenant, x.now, l.Window), x.countedIn(tenant, x.now, slower)
	switch {
	case !refused && least > most:
		x.failf("quota: %v is admitted with %d, and %d of %d are used", r, r.uses(), least, l.Tokens)
	case !refused:
		r.counted, r.countsFor = &counted{x.now, r.uses()}, tenant
		x.counted[tenant] = append(x.counted[tenant], r.counted)
		return
	case atMost <= most:
		x.failf("quota: %v is refused with %d, and %d of %d are used", r, r.uses(), atMost, l.Tokens)
	}
	r.overQuota = true
	x.counts.overQuota++
	then := x.now.Add(r.w.RetryAfter())
	if before := then.Add(-1); x.countedIn(tenant, then, l.Window) > most || x.countedIn(tenant, before, slower) <= most {
		x.failf("quota: %v is told to come back in %v, when %d of %d are used, and %d were just before", r, r.w.RetryAfter(),
			x.countedIn(tenant, then, l.Window), l.Tokens, x.countedIn(tenant, before, slower))
	}
	if x.m.Preemptor() != nil || slices.ContainsFunc(x.m.Verdicts(), func(w *dispatch.Waiter) bool { return w.Outcome() == dispatch.OutcomeDisplaced }) {
		x.failf("quota: %v is refused, and displaces or preempts another", r)
	}
}

// used reports a request's use, twice: only the first report counts.
func (x *run) used(r *request, l *dispatch.Lease) {
	if r.counted == nil || r.never {
		return
	}
	x.m.Used(x.now, l, r.usesIndeed())
	x.m.Used(x.now, l, 1_000_000)
	if more := r.usesIndeed() - r.counted.tokens; more > 0 {
		x.counted[r.countsFor] = append(x.counted[r.countsFor], &counted{x.now, more})
	} else {
		r.counted.tokens = r.usesIndeed()
	}
}

// unmeters returns the quota of a request that was not served.
func (x *run) unmeters(r *request) {
	if r.counted != nil {
		r.counted.tokens = 0
	}
}

// weightWith returns the weight that a request brings to a sharer.
func (s *shares) weightWith(key sharerKey, r *request) float64 {
	q := &s.run.config.Queue
	of := func(w fairqueue.Weight) float64 { return float64(w) / float64(fairqueue.WeightOne) }
	if w, own := q.Weights[key.name]; own && key.depth == 0 {
		return of(w)
	}
	if key.depth > 0 && key.depth < len(q.ByLevel) && q.ByLevel[key.depth].Weights[key.name] > 0 {
		return of(q.ByLevel[key.depth].Weights[key.name])
	}
	if w := q.Roles[r.path().Role].Weight; w > 0 && key.depth == max(1, q.Levels)-1 {
		return of(w)
	}
	return 1
}

// waitsAs gives a sharer the weight of a request of its that waits, if that is the first one or less.
func (s *shares) waitsAs(f *sharer, r *request) {
	if len(s.run.config.Queue.Roles) == 0 {
		return
	}
	w := s.weightWith(f.key, r)
	if f.waited < s.now-1 {
		f.weight = w
	} else if w < f.weight {
		s.lower(f, w)
	}
	f.waited = s.now
}

// lower gives a sharer that waits a lesser weight: intervals begin anew.
func (s *shares) lower(f *sharer, w float64) {
	f.weight = w
	s.windows = slices.DeleteFunc(s.windows, func(x *window) bool { return x.a.of == f || x.b.of == f })
	s.run.counts.reweighed++
}

// weightAt is the weight at which a request is charged that goes: that of those of the sharer that wait, or its own if none does.
func (s *shares) weightAt(p *seat, r *request) float64 {
	if len(s.run.config.Queue.Roles) == 0 {
		return p.of.weight
	}
	w := s.weightWith(p.of.key, r)
	waits := slices.ContainsFunc(s.run.waiting, func(o *request) bool {
		return slices.ContainsFunc(s.path(o), func(q *seat) bool { return q.of == p.of })
	})
	switch {
	case !waits:
		return w
	case w < p.of.weight:
		s.lower(p.of, w)
	}
	return p.of.weight
}
