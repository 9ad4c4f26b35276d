package flowcontrol

import (
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// steps drives a controller with only the caller's goroutine.
type steps struct {
	*RequestQueueController
	t testing.TB
}

// offers is an arrival that must reach the stage.
func (s steps) offers(r *Request, want dispatch.Stage) *waiter {
	w := s.newWaiter(s.t.Context(), r)
	s.offer(time.Now(), w, r, r.Deadline)
	if w.Stage() != want {
		s.t.Fatalf("stage %d, want %d: %v", w.Stage(), want, w.Outcome())
	}
	return w
}

// under is an arrival that must be sent, within a running event: the lock is held.
func (s steps) under(now time.Time, r *Request) *waiter {
	w := s.newWaiter(s.t.Context(), r)
	s.live.add(w, r.ID)
	s.machine.Arrive(now, &w.Waiter, arrivalOf(w, r, r.Deadline))
	if w.Stage() != dispatch.StageSent {
		s.t.Errorf("stage %d: it was queued", w.Stage())
	}
	return w
}

func (w *waiter) complete() { (*Lease)(w).OnRequestComplete(Completion{Status: 200}) }

// perBackend sets the band of an endpoint.
func perBackend(c *Config, lower, upper int) {
	c.Stock.LowerBoundPerBackend, c.Stock.WatermarkPerBackend, c.Stock.UpperBoundPerBackend = lower, upper, upper
}
