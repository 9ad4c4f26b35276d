package simulate

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The first engine is the one with the earliest time, among equals the one with the least number.
func TestAgenda(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	const engines = 9
	a := newAgenda(engines)
	want := map[int]time.Time{}
	for range 5000 {
		e, at, ok := rng.IntN(engines), epoch.Add(time.Duration(rng.IntN(6))), rng.IntN(3) > 0
		a.set(e, at, ok)
		if delete(want, e); ok {
			want[e] = at
		}
		first := -1
		for e := range engines {
			if at, ok := want[e]; ok && (first < 0 || at.Before(want[first])) {
				first = e
			}
		}
		e, at, ok = a.first()
		if ok != (first >= 0) || ok && (e != first || !at.Equal(want[e])) {
			t.Fatalf("engine %d at %v (%v), want %d of %v", e, at, ok, first, want)
		}
		if err := a.heap.Problem(); err != nil {
			t.Fatal(err)
		}
	}
}
