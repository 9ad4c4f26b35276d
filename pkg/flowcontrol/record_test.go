package flowcontrol

import (
	"context"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
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

// begins returns the Start of a recorder that needs nothing.
func begins(r Recorder) Start {
	return func(*dispatch.Machine, dispatch.Config, iter.Seq2[*dispatch.Waiter, string]) (Recorder, error) {
		return r, nil
	}
}

// A recording contains a drain: without it a replay would reject no request.
func TestDrainIsRecorded(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		var recorded drains
		if err := b.Record(begins(&recorded)); err != nil {
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

// A recording has each request's end time, even when no request waits for it: it gives the requests' durations.
func TestEndsAreRecordedWithTheirTimes(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		var recorded ends
		if err := b.Record(begins(&recorded)); err != nil {
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

// A recording that begins late gets every request that waits or is in flight, and its ID; none that has ended.
func TestRecordingBeginsWithLiveRequests(t *testing.T) {
	inBubble(t, ready(1), func(c *Config) {
		c.EnqueueAll = true
		c.Stock.SlotsPerBackend = 2
	}, func(b *bench) {
		named := func(id string) *Request { return &Request{ID: id, Flow: "a", Placement: pool} }
		want := func(ids ...string) {
			t.Helper()
			var got []string
			err := b.Record(func(_ *dispatch.Machine, _ dispatch.Config, live iter.Seq2[*dispatch.Waiter, string]) (Recorder, error) {
				for w, id := range live {
					got = append(got, id)
					if w.Number() == 0 || w.Stage() == dispatch.StageEnded {
						t.Errorf("%s: number %d, stage %d", id, w.Number(), w.Stage())
					}
				}
				return nil, nil
			})
			b.StopRecording()
			if slices.Sort(got); err != nil || !slices.Equal(got, ids) {
				t.Errorf("live: %v (%v), want %v", got, err, ids)
			}
		}
		want()
		first, second := b.arrives(b.t.Context(), named("first")), b.arrives(b.t.Context(), named("second"))
		ctx, leave := context.WithCancel(b.t.Context())
		b.arrives(ctx, named("leaves"))
		third := b.arrives(b.t.Context(), named("third"))
		passed, err := b.PassOn(named("passed on"))
		if err != nil {
			t.Fatal(err)
		}
		want("first", "leaves", "passed on", "second", "third")
		leave()
		synctest.Wait()
		complete(first.lease)
		passed.OnRequestComplete(Completion{})
		synctest.Wait()
		want("second", "third")
		complete(second.lease)
		complete(third.lease)
		want()
	})
}
