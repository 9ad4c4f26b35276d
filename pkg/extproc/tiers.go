package extproc

import (
	"slices"
	"strings"
)

// tierRanks finds the rank of a tier by its name, by a criticality's name or by a priority. Rank 0 is the highest.
type tierRanks struct {
	tiers []Tier
	names map[string]int // in lower case
}

func newTierRanks(tiers []Tier) tierRanks {
	r := tierRanks{tiers: tiers, names: make(map[string]int, len(tiers)+3)}
	if len(tiers) == 0 {
		return r
	}
	standard := len(tiers) / 2
	for i, t := range tiers {
		if t.MinPriority != nil && *t.MinPriority == 0 {
			standard = i
			break
		}
	}
	r.names["critical"], r.names["standard"], r.names["sheddable"] = 0, standard, len(tiers)-1
	for i, t := range slices.Backward(tiers) { // a tier's own name goes before a criticality's
		r.names[strings.ToLower(t.Name)] = i
	}
	return r
}

// byName is the rank of a tier's name or of Critical, Standard or Sheddable; case and surrounding blanks do not
// count.
func (r tierRanks) byName(name string) (rank int, ok bool) {
	rank, ok = r.names[strings.ToLower(strings.TrimSpace(name))]
	return rank, ok
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
