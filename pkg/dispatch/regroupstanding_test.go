package dispatch

import (
	"slices"
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// A flow keeps its debt when its lane gets another name, loses a model, or is split off: whether its request is
// corrected before or after, and whether it still waits or comes back.
func TestDebtsFollowTheLane(t *testing.T) {
	changes := map[string][2][]string{
		"the same":         {{"m"}, {"m"}},
		"another name":     {{"m"}, {"a", "m"}},
		"joined":           {{"a", "m", "z"}, {"m", "z"}},
		"split":            {{"a", "m"}, {"m"}},
		"listed, at first": {nil, {"m"}},
		"listed no more":   {{"m"}, nil},
	}
	for name, models := range changes {
		for _, discipline := range []fairqueue.Discipline{fairqueue.WFQ, fairqueue.VTC, fairqueue.FairShare} {
			for variant := range 4 {
				stays, late := variant&1 > 0, variant&2 > 0
				x := newFleetOf(t, 2, func(i int) []string {
					if i == 1 {
						return []string{"a", "other"}
					}
					return models[0]
				}, func(cfg *Config) { cfg.Queue.Discipline = discipline })
				ask := scheduling.Ask{Model: "m"}
				for range 100 {
					x.arrives("g", 0, ask)
				}
				first := x.arrives("f", 0, ask)
				for first.Stage() == StageWaiting {
					x.completes(0)
				}
				if stays {
					x.arrives("f", 0, ask)
				}
				correct := func() {
					x.TrueUp(x.clock, first.Lease(), 50, 1)
					x.hear()
				}
				if !late {
					correct()
				}
				x.endpoints[0].Models = models[1]
				x.publish()
				if late {
					correct()
				}
				if !stays {
					x.arrives("f", 0, ask)
				}
				others := 0
				for second := x.waiting[len(x.waiting)-1]; second.Stage() == StageWaiting; others++ {
					i := slices.IndexFunc(x.going, func(w *Waiter) bool { return w != first })
					x.completes(i)
				}
				if others < 47 || others > 52 {
					t.Errorf("%s, discipline %d, stays %t, late %t: after a request of 50 %d of the other flow's go", name, discipline,
						stays, late, others)
				}
			}
		}
	}
}

// Waiters whose flow is at its cap block no other request, even when their lane gets another name.
func TestCapsFollowTheLane(t *testing.T) {
	x := newFleetOf(t, 1, func(int) []string { return []string{"m"} }, func(cfg *Config) {
		cfg.MaxInFlightPerFlow = 1
		cfg.Stock.LowerBoundPerBackend, cfg.Stock.UpperBoundPerBackend = 1, 4
	})
	ask := scheduling.Ask{Model: "m"}
	if x.arrives("f", 0, ask).Stage() != StageSent || x.arrives("f", 0, ask).Stage() != StageWaiting {
		t.Fatal("one goes and one waits")
	}
	x.endpoints[0].Models = []string{"a", "m"}
	x.publish()
	if stage := x.arrives("g", 0, ask).Stage(); stage != StageSent {
		t.Errorf("another flow's request: stage %d", stage)
	}
}

// A reload that changes the filters regroups the lanes: models do not matter any more, and then they do again.
func TestFiltersRegroup(t *testing.T) {
	x := newFleetOf(t, 2, func(i int) []string { return []string{string(rune('a' + i))} }, nil)
	for range 6 {
		x.arrives("f", 0, scheduling.Ask{Model: "a"})
		x.arrives("f", 0, scheduling.Ask{Model: "b"})
	}
	lanes := func() (lanes []fairqueue.Lane) {
		for _, w := range x.waiting {
			lanes = append(lanes, w.queued.Lane)
		}
		slices.Sort(lanes)
		return slices.Compact(lanes)
	}
	for _, filters := range [][]string{{scheduling.FilterReady}, scheduling.DefaultConfig().Filters} {
		cfg := scheduling.DefaultConfig()
		cfg.Filters = filters
		s, err := scheduling.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		x.board.SetScheduler(s)
		if err := x.Configure(x.clock, x.Config()); err != nil {
			t.Fatal(err)
		}
		want := []fairqueue.Lane{"model=a", "model=b"}
		if len(filters) == 1 {
			want = []fairqueue.Lane{""}
		}
		if got := lanes(); !slices.Equal(got, want) {
			t.Errorf("with filters %q the lanes are %q", filters, got)
		}
	}
}
