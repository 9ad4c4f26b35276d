package dispatch

import (
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// A request without a charge (passed on, by PassOn or by Enabled false) takes and returns its lease like any other,
// whatever its cost turns out to be, in flight or at its end. Its flow's account does not change.
func TestWhatWasPassedOnIsNotCharged(t *testing.T) {
	for name, discipline := range map[string]fairqueue.Discipline{"wfq": fairqueue.WFQ, "vtc": fairqueue.VTC, "fairshare": fairqueue.FairShare} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, []int{1}, func(c *Config) { c.Queue.Discipline = discipline })
			b.complete(b.arrives(0, "a", "", StageSent)) // the flow is known
			for _, disabled := range []bool{false, true} {
				pass := b.PassOn
				if disabled {
					pass = b.Arrive
					b.enable(false)
				}
				for what, ends := range map[string]func(w *Waiter){
					"known":  func(w *Waiter) { b.Complete(b.clock, (*Lease)(w), 5) },
					"raised": func(w *Waiter) { b.Raise(b.clock, (*Lease)(w), 9, 9); b.Complete(b.clock, (*Lease)(w), 5) },
					"corrected": func(w *Waiter) {
						b.TrueUp(b.clock, (*Lease)(w), 3, 3)
						b.Complete(b.clock, (*Lease)(w), fairqueue.UnknownCost)
					},
				} {
					w := new(Waiter)
					b.event(func() { pass(b.clock, w, Arrival{Flow: "a", Tier: 0, Cost: 2, Placement: reach("")}) })
					b.want(w, StageSent)
					b.event(func() { ends(w) })
					b.nothing(what)
				}
			}
			b.enable(true)
			b.complete(b.arrives(0, "a", "", StageSent))
			b.nothing("queueing again")
			if n := b.State().Panics; n > 0 {
				t.Errorf("%d panics", n)
			}
		})
	}
}

// enable turns queueing on or off.
func (b *bench) enable(on bool) {
	b.t.Helper()
	cfg := b.Config()
	cfg.Enabled = on
	var err error
	if b.event(func() { err = b.Configure(b.clock, cfg) }); err != nil {
		b.t.Fatal(err)
	}
}

// An error between the end of a lease and the correction of its charge leaks no lease: of a completed request, of a victim,
// or of its preemptor. The placer fails there, asked for the lane in which the correction counts.
func TestFailedCorrectionLeaksNothing(t *testing.T) {
	b := newBench(t, []int{1}, func(c *Config) { c.Queue.Discipline = fairqueue.VTC })
	b.complete(b.arrives(2, "a", "0", StageSent))
	w := b.arrives(2, "a", "0", StageSent)
	b.fleet.lost = "0"
	b.event(func() { b.Complete(b.clock, (*Lease)(w), 7) })
	if s := b.State(); s.Panics != 1 || s.Stock != 0 || b.fleet.reserved != [2]int{} {
		t.Errorf("after a completion: %+v, reserved %v", s, b.fleet.reserved)
	}
	b.fleet.lost = ""
	w = b.arrives(2, "a", "0", StageSent)
	b.fleet.lost = "0"
	p := b.arrives(0, "b", "", StageEnded)
	if s := b.State(); s.Panics != 2 || s.Stock != 0 || b.fleet.reserved != [2]int{} || s.Queued != 0 {
		t.Errorf("after a preemption that ended as %v: %+v, reserved %v", p.Outcome(), s, b.fleet.reserved)
	}
	b.want(w, StageEnded)
	if w.Outcome() != OutcomePreempted {
		t.Errorf("the victim ends as %v", w.Outcome())
	}
	b.complete(b.arrives(0, "b", "", StageSent))
	b.nothing("at the end")
}
