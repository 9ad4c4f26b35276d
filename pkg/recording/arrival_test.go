package recording_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// offered records an arrival as it is.
func (d *driver) offered(a dispatch.Arrival, id string) *life {
	d.t.Helper()
	l := &life{id: id}
	a.Owner = l
	d.recorder.Arrive(d.now, &l.Waiter, a, id, false)
	d.alive = append(d.alive, l)
	d.call(func() { d.machine.Arrive(d.now, &l.Waiter, a) })
	d.now = d.now.Add(time.Millisecond)
	return l
}

// Explain knows of an arrival what the machine was told: its flow, cost, deadline and ID, whatever the ID looks like.
func TestArrivalHasAllThatItWas(t *testing.T) {
	for _, id := range []string{
		"01234567-89ab-cdef-0123-456789abcdef", "01234567-89AB-cdef-0123-456789abcdef", "01234567089ab-cdef-0123-456789abcdef",
		"0123456g-89ab-cdef-0123-456789abcdef", "x", "with spaces, and ümlauts",
	} {
		d := newQuietDriver(t)
		d.arriveAs("a", 0, "before")
		d.offered(dispatch.Arrival{Flow: "some flow", Tier: 1, Cost: 17, Deadline: d.now.Add(90 * time.Second), Placement: d.anywhere()}, id)
		said, err := d.explain(d.bytes(), id)
		if err != nil {
			t.Errorf("%s: %v", id, err)
		}
		for _, want := range []string{
			"Request " + id + " arrived at 2026-01-02T03:04:05.001000006Z", `flow "some flow", cost 17, any endpoint.`,
			"Its client's own deadline was 1m30s later.", "tier default", "When the recording ends it still waits.",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("%s: it is not said that %q:\n%s", id, want, said)
			}
		}
	}
}

// A client's own deadline is recorded to the nanosecond, relative to the arrival: the replay ends the wait at it, not
// before.
func TestDeadlinesAreRepeated(t *testing.T) {
	d := newQuietDriver(t)
	d.arriveAs("a", 0, "holder")
	d.now = d.now.Add(123456789 * time.Nanosecond)
	deadline := d.now.Add(7777777 * time.Nanosecond)
	d.offered(dispatch.Arrival{Flow: "a", Tier: 1, Deadline: deadline, Placement: d.anywhere()}, "the one")
	for _, now := range []time.Time{deadline.Add(-1), deadline} {
		d.now = now
		d.recorder.Advance(d.now)
		d.call(func() { d.machine.Advance(d.now) })
	}
	said, err := d.explain(d.bytes(), "the one")
	if err != nil || !strings.Contains(said, "It ended as deadline-exceeded after 7.778ms in the queue.") {
		t.Errorf("%v\n%s", err, said)
	}
}

// Users under a tenant share by turns, in a replay as in the original.
func TestLevelsAreRepeated(t *testing.T) {
	d := newQuietDriverOf(t, func(c *dispatch.Config) { c.Queue.Levels = 2 })
	holder := d.arriveAs("tenant", 0, "holder")
	users := map[string]*life{} // the last of each
	for _, user := range []string{"a", "a", "a", "b"} {
		users[user] = d.offered(dispatch.Arrival{Flow: "tenant", Path: &fairqueue.Path{Under: []string{user}}, Placement: d.anywhere()}, "")
	}
	d.complete(holder)
	for range 2 {
		d.completeSome()
	}
	if users["b"].Stage() == dispatch.StageWaiting || users["a"].Stage() != dispatch.StageWaiting {
		t.Fatal("the only request of b does not go before the third of a")
	}
	if summary, err := d.replay(d.bytes()); err != nil || summary.Arrivals != 5 {
		t.Errorf("%+v (%v)", summary, err)
	}
}

// Replay repeats others' stock at a backend and its engine's signals: both change when a request goes.
func TestWhatOthersSayIsRepeated(t *testing.T) {
	d := newQuietDriver(t)
	held := []stock.Foreign{{ID: 0, Held: stock.Amount{Requests: 1, Tokens: 1}}}
	d.recorder.Foreign(d.now, held)
	d.call(func() { d.machine.SetForeign(d.now, held) })
	waits := d.arriveAs("a", 0, "the one")
	if waits.Stage() != dispatch.StageWaiting {
		t.Fatalf("stage %d", waits.Stage())
	}
	none := []stock.Foreign{{ID: 0}}
	d.recorder.Foreign(d.now, none)
	d.call(func() { d.machine.SetForeign(d.now, none) })
	if waits.Stage() == dispatch.StageWaiting {
		t.Fatal("it waits still")
	}
	if _, err := d.replay(d.bytes()); err != nil {
		t.Error(err)
	}
}

// An ended request is forgotten by a replay: an event of it differs, as one of a request that never was.
func TestEndedRequestsAreForgotten(t *testing.T) {
	for name, end := range map[string]func(d *driver) *life{
		"complete": func(d *driver) *life {
			l := d.arriveAs("a", 0, "")
			d.recorder.Complete(d.now, l.Lease(), 1) // with its cost: nothing more can come of it
			d.call(func() { d.machine.Complete(d.now, l.Lease(), 1) })
			return l
		},
		"rejected": func(d *driver) *life {
			d.arriveAs("a", 0, "")
			l := d.arriveAs("a", 0, "")
			d.recorder.Cancel(d.now, &l.Waiter, dispatch.OutcomeClientCancelled)
			d.own = l
			d.call(func() { d.machine.Cancel(d.now, &l.Waiter, dispatch.OutcomeClientCancelled) })
			return l
		},
	} {
		d := newQuietDriver(t)
		number := end(d).Number()
		d.recorder.ToldOf(number)
		if _, err := d.replay(d.bytes()); err == nil || !strings.Contains(err.Error(), "there is none of that number") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
