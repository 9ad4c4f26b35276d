package scheduling

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// A random pick is uniform among the best, whether an endpoint is one of them because of its load, because the request
// prefers it, or both.
func TestRandomIsEvenAmongPreferences(t *testing.T) {
	const free, busy = 2, 1 // slots, which the scorer of this test takes for the score
	for _, c := range []struct {
		name  string
		slots []int
		// prefers is what the request adds, in parts of what one slot is worth.
		prefers map[EndpointID]int
		want    []EndpointID
	}{
		{"no preference", []int{free, busy, free, busy, free}, nil, []EndpointID{0, 2, 4}},
		{"the preferred ones are better", []int{busy, free, busy, free, free}, map[EndpointID]int{1: 1, 3: 1}, []EndpointID{1, 3}},
		{"one preferred", []int{free, free, free}, map[EndpointID]int{1: 1}, []EndpointID{1}},
		{"busy and preferred is as good as free", []int{free, busy, free, busy, busy}, map[EndpointID]int{1: 1, 3: 1}, []EndpointID{0, 1, 2, 3}},
		{"busy and preferred is worse than free and preferred", []int{busy, busy, free, free}, map[EndpointID]int{0: 1, 1: 1, 3: 1}, []EndpointID{3}},
		{"better ones follow worse ones", []int{busy, busy, busy, busy, busy}, map[EndpointID]int{0: 1, 1: 2, 2: 3, 3: 3, 4: 1}, []EndpointID{2, 3}},
		{"the preferred one is too busy", []int{free, free, 0}, map[EndpointID]int{2: 1}, []EndpointID{0, 1}},
		{"preferred by nothing", []int{free, free}, map[EndpointID]int{1: 0}, []EndpointID{0, 1}},
		{"the preferred one is gone", []int{free, free}, map[EndpointID]int{7: 3}, []EndpointID{0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			const part = ScoreOne / 4
			s := mustNew(t, func(c *Config) { c.Scorers, c.TieBreak = nil, TieRandom })
			s.add(weighted{name: "slots", weight: 1, scorer: scorer{live: func(l Load) Score { return Score(l.Slots) * part }}})
			s.add(weighted{name: "prefers", weight: 1, scorer: scorer{request: func(*constraint, *Snapshot) (scores []EndpointScore) {
				for id, parts := range c.prefers {
					scores = append(scores, EndpointScore{id, Score(parts) * part})
				}
				return scores
			}}})
			pool := make([]Endpoint, len(c.slots))
			for i, address := range addresses(len(c.slots)) {
				pool[i] = ready(EndpointID(i), address)
				pool[i].Slots = c.slots[i]
			}
			b := NewBoard(s, rand.New(rand.NewPCG(1, 2)))
			b.SetSnapshot(NewSnapshot(1, pool))
			q := prepare(t, b, Ask{})
			counts := map[EndpointID]int{}
			for range 300 * len(c.want) {
				counts[b.Place(q, BelowUpper, nil).Endpoint()]++
			}
			if got := slices.Sorted(maps.Keys(counts)); !slices.Equal(got, c.want) {
				t.Fatalf("picked %v, want %v", got, c.want)
			}
			for id, n := range counts {
				if n < 220 || n > 380 {
					t.Errorf("endpoint %d was picked %d times, of 300 on average", id, n)
				}
			}
		})
	}
}
