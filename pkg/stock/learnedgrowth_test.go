package stock

import (
	"testing"
	"time"
)

// Growth that only makes more requests wait inside is reverted at once, unless the bound has stood for 9 s: then the
// engine may be reading long prompts, and the bound waits as long as any.
func TestGrowthThatStoodIsNotTakenBack(t *testing.T) {
	for after, want := range map[time.Duration]int{patience - 1: 65, patience: 80} {
		l, now := NewLearned(64), time.Unix(1000, 0)
		follow := func(r Report) { l.Follow(now, r, func() bool { return true }) }
		follow(Report{Running: 64, Held: 64})
		l.Settled()
		now = now.Add(time.Second)
		if follow(Report{Running: 64, Held: 64}); l.Bound() != 80 {
			t.Fatalf("grew to %d, want 80", l.Bound())
		}
		grown := now
		for _, now = range []time.Time{grown.Add(after - time.Second), grown.Add(after)} {
			follow(Report{Running: 64, Waiting: 16, Held: 80})
		}
		if l.Bound() != want {
			t.Errorf("crowded %v after it grew: %d, want %d", after, l.Bound(), want)
		}
	}
}
