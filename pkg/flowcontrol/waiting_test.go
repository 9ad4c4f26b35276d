package flowcontrol

import (
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Requests that waited although they could go: findings of the exploration (TestExplore), each as a test.

// An arrival that preempts a request before its destination was sent makes it a waiter again: its time is counted.
func TestAVictimThatWaitsAgainHasItsTimer(t *testing.T) {
	inBubble(t, ready(1), smg(1), func(b *bench) {
		holder := b.arrives(b.t.Context(), of(standard))
		low := b.arrives(b.t.Context(), of(bulk))
		now := time.Now()
		b.mu.Lock()
		b.machine.Complete(now, holder.lease.Granted(), fairqueue.UnknownCost) // grants low: nobody waits
		b.arm(now)
		high := steps{b.RequestQueueController, b.t}.under(now, of(system)) // preempts low
		b.end(now, high)
		b.checkInvariants()
		time.Sleep(300 * time.Second)
		b.want(low, "ttl-expired")
		high.complete()
	})
}
