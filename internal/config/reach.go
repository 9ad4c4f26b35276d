package config

import (
	"slices"
	"strings"
)

// rank is the rank of the tier that a word names, 0 the highest: a tier's own name before a criticality's; case and
// surrounding blanks do not count. It is what a stream makes of the word (extproc).
func (d Document) rank(word string) (int, bool) {
	word = strings.TrimSpace(word)
	if i := slices.IndexFunc(d.Tiers, func(t Tier) bool { return strings.EqualFold(t.Name, word) }); i >= 0 {
		return i, true
	}
	switch {
	case len(d.Tiers) == 0:
		return 0, false
	case strings.EqualFold(word, Critical):
		return 0, true
	case strings.EqualFold(word, Sheddable):
		return len(d.Tiers) - 1, true
	case strings.EqualFold(word, Standard):
		i := slices.IndexFunc(d.Tiers, func(t Tier) bool { return t.MinPriority != nil && *t.MinPriority == 0 })
		if i < 0 {
			i = len(d.Tiers) / 2
		}
		return i, true
	}
	return 0, false
}

// HighestUsable is the rank of the highest tier that any tenant may use. The tiers above it have no requests, so
// nothing is reserved for them.
func (d Document) HighestUsable() int {
	if d.Criticality.MaxClass == "" {
		return 0
	}
	highest, ok := d.rank(d.Criticality.MaxClass)
	if !ok {
		return 0
	}
	for _, p := range d.TenantPolicies {
		if r, ok := d.rank(p.MaxClass); ok {
			highest = min(highest, r)
		}
	}
	return highest
}

// identifies says whether a flow's key has a source that names a tenant: any but the model.
func (f Flows) identifies() bool {
	return slices.ContainsFunc(f.Key, func(source string) bool { return source != SourceModel })
}
