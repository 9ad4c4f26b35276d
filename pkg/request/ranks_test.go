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
