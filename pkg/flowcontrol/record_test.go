package flowcontrol

import (
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// drains is a Recorder that counts drains.
type drains struct {
	Recorder
	n int
}

func (d *drains) Drain(time.Time)             { d.n++ }
func (d *drains) Verdicts([]*dispatch.Waiter) {}

// A recording knows of a drain. Its replay rejects nobody without it.
func TestDrainIsRecorded(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		var recorded drains
		if err := b.Record(func(*dispatch.Machine, dispatch.Config) (Recorder, error) { return &recorded, nil }); err != nil {
			t.Fatal(err)
		}
		b.Drain()
		if recorded.n != 1 {
			t.Errorf("%d drains recorded, want 1", recorded.n)
		}
	})
}

// ends is a Recorder that notes when leases end.
type ends struct {
	drains
	at []time.Time
}

func (e *ends) Arrive(time.Time, *dispatch.Waiter, dispatch.Arrival, string, bool) {}
func (e *ends) Told(*dispatch.Waiter)                                              {}
func (e *ends) Advance(time.Time)                                                  {}

func (e *ends) Complete(now time.Time, _ *dispatch.Lease, _ fairqueue.Cost) { e.at = append(e.at, now) }

func (e *ends) Answered(now time.Time, _ *dispatch.Lease, _ fairqueue.Cost, _ dispatch.Answer) {
	e.at = append(e.at, now)
}

// A recording has the time at which a request ends, also while nothing waits for it: it tells how long requests take.
func TestEndsAreRecordedWithTheirTimes(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		var recorded ends
		if err := b.Record(func(*dispatch.Machine, dispatch.Config) (Recorder, error) { return &recorded, nil }); err != nil {
			t.Fatal(err)
		}
		w := b.arrives(b.t.Context(), one("a"))
		b.want(w, "dispatched")
		time.Sleep(time.Second)
		complete(w.lease)
		if len(recorded.at) != 1 || !recorded.at[0].Equal(time.Now()) {
			t.Errorf("it ended at %v, want %v", recorded.at, time.Now())
		}
	})
}
