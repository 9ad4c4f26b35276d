package request

import (
	"cmp"
	"slices"
	"strings"
)

// OtherTenants names the policy of tenants without one of their own.
const OtherTenants = "*"

// tenantTiers is the policy of a tenant or a role, by rank.
type tenantTiers struct {
	own     int // of requests that declare no tier; noRank: the default
	highest int
	role    string // of a tenant; "": by the sources
	byRole  bool   // a tenant's policy sets no tier
}

// declare reads the declared tier from trusted metadata, the class header or the objective, in this order.
func (q *Request) declare(h *Headers, c Context) {
	r := q.rules
	q.declared = noRank
	if r.classMeta != nil && q.declareName(r.classMeta.lookup(h, c)) || q.declareName(h.values[r.classHeader]) {
		return
	}
	if v := h.first(r.objectiveIn...); v != "" {
		if rank, ok := r.objectives[v]; ok {
			q.declared = rank
		}
	}
}

// declareName reports whether a value names a tier. An unknown name is noted and ignored.
func (q *Request) declareName(v string) bool {
	if v = strings.TrimSpace(v); v == "" {
		return false
	}
	rank, ok := q.rules.ranks.byRequest(v)
	if !ok {
		q.UnknownTier = true
		return false
	}
	q.declared = rank
	return true
}

// resolveTier resolves the tier: the declared one, or else the model's, the tenant's, or the default; lowered to the
// tenant's highest.
func (q *Request) resolveTier() {
	r := q.rules
	policy, ok := q.policy()
	if !ok || policy.byRole {
		if policy, ok = r.roles[q.Role]; !ok {
			policy = tenantTiers{own: noRank, highest: r.otherTenant}
		}
	}
	q.AskedTier = q.declared
	if t := r.models[q.Model]; q.AskedTier == noRank && t != nil {
		q.AskedTier = t.rank
	}
	if q.AskedTier == noRank {
		q.AskedTier = policy.own
	}
	if q.AskedTier == noRank {
		q.AskedTier = r.defaultRank
	}
	q.Tier = max(q.AskedTier, policy.highest)
}

// policy returns the policy of the request's tenant, if it has one.
func (q *Request) policy() (p tenantTiers, ok bool) {
	tenant := q.Tenant
	if tenant == "" {
		tenant = Anonymous
	}
	p, ok = q.rules.tenants[tenant]
	return p, ok
}

// HighestUsable returns the rank of the highest tier that any tenant may use. The tiers above it get no requests.
func (c *Config) HighestUsable() int {
	if _, clamped := c.TenantPolicies[OtherTenants]; !clamped {
		return 0
	}
	ranks := newTierRanks(c.Tiers)
	highest := max(0, len(c.Tiers)-1)
	for _, p := range c.TenantPolicies {
		if rank, ok := ranks.byName(cmp.Or(p.MaxClass, p.Class)); ok {
			highest = min(highest, rank)
		}
	}
	for _, p := range c.Roles {
		if rank, ok := ranks.byName(cmp.Or(p.MaxClass, p.Class)); ok {
			highest = min(highest, rank)
		}
	}
	return highest
}

// TenantsAboveTheirMaximum returns the tenants with a class above their own maximum, sorted. Their requests without a
// declared tier are lowered, too.
func (c *Config) TenantsAboveTheirMaximum() []string {
	ranks := newTierRanks(c.Tiers)
	var above []string
	for tenant, p := range c.TenantPolicies {
		class, given := ranks.byName(p.Class)
		if most, limited := ranks.byName(p.MaxClass); given && limited && class < most {
			above = append(above, tenant)
		}
	}
	slices.Sort(above)
	return above
}
