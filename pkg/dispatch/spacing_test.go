package dispatch

import (
	"testing"
	"time"
)

// Two releases from the queue are ReleaseSpacing apart, also when there is room for both; but one that came to nothing,
// because its client had gone before it was told, holds nobody up.
func TestReleasesAreSpaced(t *testing.T) {
	b := newBench(t, []int{3}, func(c *Config) { c.ReleaseSpacing = time.Second })
	var holders []*Waiter
	for range 3 {
		holders = append(holders, b.arrives(2, "a", "", StageSent))
	}
	first, second := b.arrives(2, "a", "", StageWaiting), b.arrives(2, "a", "", StageWaiting)
	third := b.arrives(2, "a", "", StageWaiting)
	b.complete(holders[0])
	b.complete(holders[1])
	b.want(first, StageGranted)
	b.want(second, StageWaiting)
	b.clock = b.clock.Add(time.Second - 1)
	b.event(func() { b.Advance(b.clock) })
	b.want(second, StageWaiting)
	b.clock = b.clock.Add(1)
	b.event(func() { b.Advance(b.clock) })
	b.want(second, StageGranted)
	b.want(third, StageWaiting)
	b.event(func() { b.Cancel(b.clock, second, OutcomeClientCancelled) })
	b.want(third, StageGranted)
}
