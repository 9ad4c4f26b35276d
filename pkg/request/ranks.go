package request

import (
	"maps"
	"slices"
	"strings"
)

// The criticalities. They name the highest tier, the tier with minPriority 0 (else the middle one), and the lowest.
const (
	Critical  = "Critical"
	Standard  = "Standard"
	Sheddable = "Sheddable"
)

// noRank stands for an unknown tier.
const noRank = -1

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

// byName returns the rank of a tier's name, or of Critical, Standard or Sheddable. It ignores case and surrounding blanks.
func (r tierRanks) byName(name string) (rank int, ok bool) {
	rank, ok = r.names[strings.ToLower(strings.TrimSpace(name))]
	return rank, ok
}

// byRequest is byName for a name in a request. Unless a tier is named like a criticality, requests can name tiers only:
// among SMG's tiers system, interactive, default and bulk the word critical is unknown, and must not select the top
// tier.
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
