package request

import "testing"

// If no tier has minPriority 0, Standard is the one in the middle.
func TestCriticalitiesMapToTiers(t *testing.T) {
	one := 1
	r := newTierRanks([]Tier{{Name: "system", MinPriority: &one}, {Name: "interactive"}, {Name: "default"}, {Name: "bulk"}})
	for name, want := range map[string]int{"Critical": 0, "standard": 2, "SHEDDABLE": 3, "bulk": 3, "default": 2} {
		if got, ok := r.byName(name); !ok || got != want {
			t.Errorf("%s: %d, %v", name, got, ok)
		}
	}
}

// If a tier has the name of a criticality, requests also name tiers by criticality, and only so.
func TestRequestsNameCriticalities(t *testing.T) {
	for _, test := range []struct {
		tiers []Tier
		want  map[string]int
	}{
		{
			[]Tier{{Name: "critical"}, {Name: "default"}, {Name: "batch"}},
			map[string]int{"critical": 0, "Standard": 1, "sheddable": 2, "default": 1, "other": noRank},
		},
		{
			[]Tier{{Name: "system"}, {Name: "default"}, {Name: "bulk"}},
			map[string]int{"critical": noRank, "Standard": noRank, "sheddable": noRank, "default": 1, "other": noRank},
		},
		{nil, map[string]int{"critical": noRank}},
	} {
		r := newTierRanks(test.tiers)
		for name, want := range test.want {
			got, ok := r.byRequest(name)
			if !ok {
				got = noRank
			}
			if got != want {
				t.Errorf("%q among %v: %d, want %d", name, test.tiers, got, want)
			}
		}
	}
}
