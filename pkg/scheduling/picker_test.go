package scheduling

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// bySlots compares endpoints by their reported slots: more is better, and a cached token counts one.
type bySlots struct{}

func (bySlots) bonus() (Standing, bool) { return 0, false }

func (bySlots) standing(l Load) Standing { return Standing(l.Slots) }

func (bySlots) wait(int64) Cost { return 0 }

func (bySlots) cost(s *spot, tokens int64) Cost { return Cost(tokens - int64(s.slots)) }

// A random pick is uniform among the best: those with the highest standing, or the most cached tokens.
func TestRandomIsEvenAmongEquals(t *testing.T) {
	const free, busy = 2, 1
	for _, c := range []struct {
		name   string
		slots  []int
		cached []Cached
		want   []EndpointID
	}{
		{"nothing cached", []int{free, busy, free, busy, free}, nil, []EndpointID{0, 2, 4}},
		{"those that have it are better", []int{busy, free, busy, free, free}, []Cached{{1, 1}, {3, 1}}, []EndpointID{1, 3}},
		{"one has it", []int{free, free, free}, []Cached{{1, 1}}, []EndpointID{1}},
		{"of busy ones with it and free ones without it, equal in cost, the former", []int{free, busy, free, busy, busy}, []Cached{{1, 1}, {3, 1}}, []EndpointID{1, 3}},
		{"busy with it is worse than free with it", []int{busy, busy, free, free}, []Cached{{0, 1}, {1, 1}, {3, 1}}, []EndpointID{3}},
		{"better ones follow worse ones", []int{busy, busy, busy, busy, busy}, []Cached{{0, 1}, {1, 2}, {2, 3}, {3, 3}, {4, 1}}, []EndpointID{2, 3}},
		{"the one that has it is too busy", []int{free, free, 0}, []Cached{{2, 1}}, []EndpointID{0, 1}},
		{"the one that has it is gone", []int{free, free}, []Cached{{7, 3}}, []EndpointID{0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mustNew(t, func(c *Config) { c.TieBreak = TieRandom })
			s.by = bySlots{}
			pool := make([]Endpoint, len(c.slots))
			for i, address := range addresses(len(c.slots)) {
				pool[i] = ready(EndpointID(i), address)
				pool[i].Slots = c.slots[i]
			}
			b := NewBoard(s, rand.New(rand.NewPCG(1, 2)))
			b.SetSnapshot(NewSnapshot(1, pool))
			q := prepare(t, b, Ask{})
			q.Rate(&Ratings{Prompt: 100, Above: c.cached})
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
