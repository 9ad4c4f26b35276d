package flowcontrol

import (
	"context"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"

	dto "github.com/prometheus/client_model/go"
)

// A grant to a client that has gone before its goroutine takes it is not a dispatch: the lease goes to the next
// request, and this one ends as cancelled. Here both happen under one lock, so the goroutine finds both.
func TestGrantToAClientThatIsGone(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		held := b.holds(3) // the stock is at its upper bound
		ctx, leave := context.WithCancel(b.t.Context())
		leaver := b.arrives(ctx, one("a"))
		stayer := b.arrives(b.t.Context(), one("a"))
		b.want(leaver, "waits")
		now := time.Now()
		b.mu.Lock()
		b.machine.Complete(now, held[0].Granted(), fairqueue.UnknownCost)
		b.machine.Complete(now, held[1].Granted(), fairqueue.UnknownCost) // below the lower bound: grants the leaver's
		leave()
		b.end(now, nil)
		b.want(leaver, "client-cancelled")
		b.want(stayer, "dispatched")
		if s := b.State(); s.Stock != 2 || s.Queued != 0 {
			b.t.Errorf("%+v", s)
		}
		complete(held[2])
		complete(stayer.lease)
	})
}

// The same when the client goes between its goroutine's taking of the lease and the sending of the destination.
func TestDestinationThatCouldNotBeSent(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		l := b.holds(1)[0]
		l.OnRequestComplete(Completion{Unsent: true})
		for outcome, want := range map[Outcome]float64{OutcomeClientCancelled: 1, OutcomeDispatched: 0} {
			var m dto.Metric
			if err := b.metrics.outcomes[outcome].Write(&m); err != nil || m.GetCounter().GetValue() != want {
				b.t.Errorf("%v: %v times, want %v (%v)", outcome, m.GetCounter().GetValue(), want, err)
			}
		}
	})
}
