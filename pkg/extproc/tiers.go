package extproc

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// The criticalities, each of which names a tier: the highest, the one of minPriority 0 (else the middle), the lowest.
const (
	Critical  = "Critical"
	Standard  = "Standard"
	Sheddable = "Sheddable"
)

// noRank stands for a tier that is not known.
const noRank = -1

// OtherTenants names the policy of tenants that have none of their own.
const OtherTenants = "*"

// tenantTiers is a tenant's policy by rank.
type tenantTiers struct {
	own     int // of requests that declare no tier; noRank: the default
	highest int
}

// tier resolves the tier of a request: the requested one, lowered to the tenant's highest. unknown reports whether the
// class header or the metadata named a tier that does not exist, which is ignored.
func (c *compiled) tier(h *headers, m *corev3.Metadata, model, tenant string) (requested, effective int, unknown bool) {
	if tenant == "" {
		tenant = anonymous
	}
	policy, ok := c.tenants[tenant]
	if !ok {
		policy = tenantTiers{own: noRank, highest: c.otherTenant}
	}
	otherwise := policy.own
	if otherwise == noRank {
		otherwise = c.defaultRank
	}
	requested, unknown = c.requestedTier(h, m, model, otherwise)
	return requested, max(requested, policy.highest), unknown
}

// requestedTier returns the tier that is named first by trusted metadata, the class header, the objective or the model,
// in this order, or the one to take otherwise.
func (c *compiled) requestedTier(h *headers, m *corev3.Metadata, model string, otherwise int) (rank int, unknown bool) {
	if c.classMeta != nil {
		if v := strings.TrimSpace(c.classMeta.lookup(h, m, nil)); v != "" {
			if r, ok := c.ranks.byRequest(v); ok {
				return r, false
			}
			unknown = true
		}
	}
	if v := strings.TrimSpace(h.values[c.classHeader]); v != "" {
		if r, ok := c.ranks.byRequest(v); ok {
			return r, unknown
		}
		unknown = true
	}
	if v := h.first(c.objectiveIn...); v != "" {
		if r, ok := c.objectives[v]; ok {
			return r, unknown
		}
	}
	if t := c.models[model]; t != nil && t.rank != noRank {
		return t.rank, unknown
	}
	return otherwise, unknown
}

// tierRanks finds the rank of a tier by its name, by a criticality or by a priority. Rank 0 is the highest.
type tierRanks struct {
	tiers []Tier
	names map[string]int // in lower case
	// criticalities is set if a tier is named like a criticality. Requests may then name tiers by criticality too.
	criticalities bool
}

func newTierRanks(tiers []Tier) tierRanks {
	r := tierRanks{tiers: tiers, names: make(map[string]int, len(tiers)+3)}
	if len(tiers) == 0 {
		return r
	}
	middle := len(tiers) / 2
	for i, t := range tiers {
		if t.MinPriority != nil && *t.MinPriority == 0 {
			middle = i
			break
		}
	}
	words := map[string]int{strings.ToLower(Critical): 0, strings.ToLower(Standard): middle, strings.ToLower(Sheddable): len(tiers) - 1}
	maps.Copy(r.names, words)
	for i, t := range slices.Backward(tiers) { // a tier's own name wins over a criticality
		name := strings.ToLower(t.Name)
		r.names[name] = i
		_, criticality := words[name]
		r.criticalities = r.criticalities || criticality
	}
	return r
}

// tierWords returns the words that name a tier: the criticalities, then the tiers' own names.
func tierWords(tiers []Tier) []string {
	words := []string{Critical, Standard, Sheddable}
	for _, t := range tiers {
		words = append(words, t.Name)
	}
	return words
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
	return highest
}

// TenantsAboveTheirMaximum returns the tenants whose class is above their own maximum, sorted: their requests that declare
// no tier are lowered too.
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

// byName returns the rank of a tier's name, or of Critical, Standard or Sheddable. It ignores case and surrounding blanks.
func (r tierRanks) byName(name string) (rank int, ok bool) {
	rank, ok = r.names[strings.ToLower(strings.TrimSpace(name))]
	return rank, ok
}

// byRequest is byName for a name in a request. Unless a tier is named like a criticality, requests can name tiers only: to
// SMG's system, interactive, default and bulk the word critical is unknown, and must not lead to the top.
func (r tierRanks) byRequest(name string) (rank int, ok bool) {
	if rank, ok = r.byName(name); !ok || r.criticalities {
		return rank, ok
	}
	return rank, strings.EqualFold(r.tiers[rank].Name, strings.TrimSpace(name))
}

// byPriority returns the highest tier whose minPriority is at most p, or the lowest tier if there is none.
func (r tierRanks) byPriority(p int) int {
	for i, t := range r.tiers {
		if t.MinPriority == nil || p >= *t.MinPriority {
			return i
		}
	}
	return max(0, len(r.tiers)-1)
}
