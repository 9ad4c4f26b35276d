package recording_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// Whatever a recording has too little or too much of, the replay ends with a difference at that event, and says what the two
// results are.
func TestWhatDiffersIsNamed(t *testing.T) {
	const dispatched = "dispatched to endpoint 0"
	for _, test := range []struct {
		name, recorded, replayed string
		record                   func(d *driver)
	}{
		{"a verdict left out", "no further verdict", dispatched, func(d *driver) {
			d.unjudged("first")
			d.advanced(1)
		}},
		{"the last verdict left out", "no further verdict", dispatched, func(d *driver) { d.unjudged("first") }},
		{"a verdict too many", "request 1 " + dispatched, "no further verdict", func(d *driver) {
			l := d.arriveAs("a", 0, "")
			d.recorder.Verdicts([]*dispatch.Waiter{&l.Waiter})
		}},
		{"somebody else's verdict", "request 1 " + dispatched, "request 2 (second) waits", func(d *driver) {
			first := d.arriveAs("a", 0, "first")
			d.unjudged("second")
			d.recorder.Forget()
			d.recorder.Verdicts([]*dispatch.Waiter{&first.Waiter})
		}},
		{"a panic", "a panic", "none", func(d *driver) {
			d.advanced(1)
			d.recorder.Failed(d.now)
		}},
		{"a preemptor", "a request that could preempt", "none that could", func(d *driver) {
			d.advanced(1)
			d.recorder.Preempt(d.now)
		}},
		{"a preemptor who has gone", "a request that could preempt", "none that could", func(d *driver) {
			d.advanced(1)
			d.recorder.PreemptorGone(d.now, dispatch.OutcomeClientCancelled)
		}},
		{"another time to retry", "come back in 7s", "in ", func(d *driver) {
			d.recorder.Refuse(d.now, &dispatch.Refusal{Flow: "a", Outcome: dispatch.OutcomeNoMemory, RetryAfter: 7 * time.Second})
		}},
		{"a request that never was", "of request 9", "there is none of that number", func(d *driver) { d.recorder.ToldOf(9) }},
		{"a configuration that is refused", "the configuration was taken", "TotalCapacity", func(d *driver) {
			cfg := d.config
			cfg.Queue.TotalCapacity = 0
			d.recorder.Configure(d.now, cfg)
		}},
	} {
		d := newQuietDriver(t)
		test.record(d)
		_, err := d.replay(d.bytes())
		want := []string{"recorded: " + test.recorded, "replayed: ", test.replayed}
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q", test.name, err, want)
			}
		}
	}
}

// A preemptor that is not recorded is noticed.
func TestForgottenPreemptorIsNoticed(t *testing.T) {
	d := newDriver(t, 12, 1<<20, nil)
	d.forgetful = true
	for range 5000 {
		if d.step(); d.forgot {
			break
		}
	}
	if _, err := d.replay(d.bytes()); !d.forgot || err == nil || !strings.Contains(err.Error(), "recorded: no waiter that could preempt") {
		t.Errorf("%v (a preemptor has come: %t)", err, d.forgot)
	}
}

// unjudged makes a request arrive, and records no verdict on it.
func (d *driver) unjudged(name string) {
	l := &life{}
	a := dispatch.Arrival{Flow: "a", Cost: 1, Placement: d.anywhere(), Owner: l}
	d.recorder.Arrive(d.now, &l.Waiter, a, name, false)
	d.machine.Arrive(d.now, &l.Waiter, a)
}

// Panics beside the machine are counted in a replay as in the original: the checkpoint after them has them.
func TestPanicsBesideAreCounted(t *testing.T) {
	d := newQuietDriver(t)
	for range 3 {
		d.recorder.NoteFailure()
		d.machine.NoteFailure()
	}
	d.recorder.Seal()
	if err := d.recorder.DropAll(); err != nil {
		t.Fatal(err)
	}
	if n := d.recorder.Followed().Panics; n != 3 {
		t.Errorf("the follower has counted %d", n)
	}
}
