package extproc

import (
	"maps"
	"slices"
	"strings"
)

// The criticalities, each of which names a tier: the highest, the one of minPriority 0 (else the middle), the lowest.
const (
	critical  = "Critical"
	standard  = "Standard"
	sheddable = "Sheddable"
)

// tierRanks finds the rank of a tier by its name, by a criticality's name or by a priority. Rank 0 is the highest.
type tierRanks struct {
	tiers []Tier
	names map[string]int // in lower case
	// criticalities says that the tiers are named in the words of criticality, so that requests may use them too.
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
	words := map[string]int{strings.ToLower(critical): 0, strings.ToLower(standard): middle, strings.ToLower(sheddable): len(tiers) - 1}
	maps.Copy(r.names, words)
	for i, t := range slices.Backward(tiers) { // a tier's own name goes before a criticality's
		name := strings.ToLower(t.Name)
		r.names[name] = i
		_, criticality := words[name]
		r.criticalities = r.criticalities || criticality
	}
	return r
}

// tierWords are the words that name a tier: the criticalities, then the tiers' own names.
func tierWords(tiers []Tier) []string {
	words := []string{critical, standard, sheddable}
	for _, t := range tiers {
		words = append(words, t.Name)
	}
	return words
}

// HighestUsable is the rank of the highest tier that any tenant may use. The tiers above it get no requests.
func (c *Config) HighestUsable() int {
	if _, clamped := c.TenantPolicies[otherTenants]; !clamped {
		return 0
	}
	ranks := newTierRanks(c.Tiers)
	highest := max(0, len(c.Tiers)-1)
	for _, p := range c.TenantPolicies {
		if rank, ok := ranks.byName(p.MaxClass); ok {
			highest = min(highest, rank)
		}
	}
	return highest
}

// byName is the rank of a tier's name or of Critical, Standard or Sheddable; case and surrounding blanks do not
// count.
func (r tierRanks) byName(name string) (rank int, ok bool) {
	rank, ok = r.names[strings.ToLower(strings.TrimSpace(name))]
	return rank, ok
}

// said is byName for what a request says. Where no tier is named by a criticality, a request names tiers only: to SMG's
// system, interactive, default and bulk the word critical is unknown, and no way to the top.
func (r tierRanks) said(name string) (rank int, ok bool) {
	if rank, ok = r.byName(name); !ok || r.criticalities {
		return rank, ok
	}
	return rank, strings.EqualFold(r.tiers[rank].Name, strings.TrimSpace(name))
}

// byPriority is the highest tier whose minPriority is at most p, else the lowest tier.
func (r tierRanks) byPriority(p int) int {
	for i, t := range r.tiers {
		if t.MinPriority == nil || p >= *t.MinPriority {
			return i
		}
	}
	return max(0, len(r.tiers)-1)
}
