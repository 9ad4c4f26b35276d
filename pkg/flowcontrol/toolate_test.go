package flowcontrol

import (
	"context"
	"testing"
	"time"
)

// A grant to a client that is gone by the time its goroutine takes it is no dispatch: the lease goes to the next one,
// and the request ends as cancelled. Here both happen under one lock, so that the goroutine finds both.
func TestGrantToAClientThatIsGone(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		held := b.holds(3) // the stock is at its upper bound
		ctx, leave := context.WithCancel(b.t.Context())
		leaver := b.arrives(ctx, one("a"))
		stayer := b.arrives(b.t.Context(), one("a"))
		b.want(leaver, "waits")
		b.mu.Lock()
		for _, l := range held[:2] {
			l.stage = stageEnded
			b.settle(l)
		}
		b.pump(time.Now()) // below the lower bound: grants the leaver's
		leave()
		b.unlock()
		b.want(leaver, "client-cancelled")
		b.want(stayer, "dispatched")
		if s := b.State(); s.Stock != 2 || s.Queued != 0 {
			b.t.Errorf("%+v", s)
		}
		complete(held[2])
		complete(stayer.lease)
	})
}
