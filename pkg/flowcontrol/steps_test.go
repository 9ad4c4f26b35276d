package flowcontrol

import (
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// steps drives a controller without other goroutines than the caller's.
type steps struct {
	*RequestQueueController
	t testing.TB
}

// offers is an arrival that must end up in the stage.
func (s steps) offers(r *Request, want dispatch.Stage) *waiter {
	w := s.newWaiter(s.t.Context(), r)
	s.offer(time.Now(), w, r, r.Deadline)
	if w.Stage() != want {
		s.t.Fatalf("stage %d, want %d: %v", w.Stage(), want, w.Outcome())
	}
	return w
}

// under is an arrival that must be sent, in an event that is under way already: the lock is held.
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
