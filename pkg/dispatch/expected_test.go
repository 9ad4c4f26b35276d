package dispatch

import (
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// expecting are configurations of every discipline, with the arrivals of two rivals of equal weights.
var expecting = map[string]struct {
	config func(*Config)
	rivals [2]Arrival
}{
	"wfq":       {func(c *Config) { c.Queue.Discipline = fairqueue.WFQ }, [2]Arrival{{Flow: "a"}, {Flow: "b"}}},
	"vtc":       {func(c *Config) { c.Queue.Discipline = fairqueue.VTC }, [2]Arrival{{Flow: "a"}, {Flow: "b"}}},
	"fairshare": {func(c *Config) { c.Queue.Discipline = fairqueue.FairShare }, [2]Arrival{{Flow: "a"}, {Flow: "b"}}},
	"wspt": {func(c *Config) {
		c.Queue.Discipline, c.Queue.Order = fairqueue.VTC, fairqueue.WSPT
	}, [2]Arrival{{Flow: "a"}, {Flow: "b"}}},
	"edf": {func(c *Config) {
		c.Queue.Discipline, c.Queue.Order = fairqueue.WFQ, fairqueue.EDF
	}, [2]Arrival{{Flow: "a"}, {Flow: "b"}}},
	"classes by drr": {func(c *Config) {
		c.Queue.Classes = []fairqueue.ClassConfig{{Name: "x", Quantum: 100}, {Name: "y", Quantum: 100}}
	}, [2]Arrival{{Flow: "a", Path: &fairqueue.Path{Class: "x"}}, {Flow: "b", Path: &fairqueue.Path{Class: "y"}}}},
	"weighted tiers": {func(c *Config) {
		c.Queue.TierMode = fairqueue.Weighted
	}, [2]Arrival{{Flow: "a"}, {Flow: "b", Tier: 1}}},
	"nested flows": {func(c *Config) {
		c.Queue.Discipline, c.Queue.Levels = fairqueue.VTC, 2
	}, [2]Arrival{{Flow: "a", Path: &fairqueue.Path{Under: []string{"u"}}}, {Flow: "b", Path: &fairqueue.Path{Under: []string{"v"}}}}},
}

// rivalry makes two rivals, each with four requests always waiting, share four slots until 1,000 requests have gone.
// The estimate of each is 100. The first rival's cost expected once granted, and actual at the end. rivalry returns the
// number that went of each rival, overall and among the first four, before any had ended.
func rivalry(t *testing.T, name string, expected, actual fairqueue.Cost) (went, atOnce [2]int) {
	test := expecting[name]
	b := newBench(t, []int{4}, func(c *Config) {
		threeTiers(c, 0)
		unstarved(c)
		c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:2], make([]TierConfig, 2)
		test.config(c)
	})
	first := b.arrives(0, "c", "", StageSent) // until all others wait
	filler := []*Waiter{first, b.arrives(0, "c", "", StageSent), b.arrives(0, "c", "", StageSent), b.arrives(0, "c", "", StageSent)}
	var flying, waiting []*Waiter
	rivalOf := map[*Waiter]int{}
	send := func(rival int) {
		w, a := new(Waiter), test.rivals[rival]
		a.Cost, a.Placement = 100, reach("")
		rivalOf[w] = rival
		b.event(func() { b.Arrive(b.clock, w, a) })
		waiting = append(waiting, w)
	}
	for range 4 {
		send(0)
		send(1)
	}
	n := 0
	grants := func() {
		for again := true; again; {
			again = false
			for i, w := range waiting {
				if w.Stage() != StageGranted {
					continue
				}
				waiting = append(waiting[:i:i], waiting[i+1:]...)
				flying = append(flying, w)
				b.Told(w)
				rival := rivalOf[w]
				went[rival]++
				if n++; n <= 4 {
					atOnce[rival]++
				}
				if rival == 0 {
					b.event(func() { b.TrueUp(b.clock, w.Granted(), expected, 0) })
				}
				send(rival)
				again = true
				break
			}
		}
	}
	for _, w := range filler {
		b.complete(w)
		grants()
	}
	for n < 1000 {
		w := flying[0]
		flying = flying[1:]
		cost := fairqueue.Cost(100)
		if rivalOf[w] == 0 {
			cost = actual
		}
		b.event(func() { b.Complete(b.clock, w.Granted(), cost) })
		grants()
	}
	return went, atOnce
}

// A flow that makes Weir expect prompts in the cache that are not there gains at most the missing charge of its
// requests in flight: l_f + l_g + 2E, with E of at most four requests.
func TestALiarAboutCachedPromptsGainsNothing(t *testing.T) {
	for name := range expecting {
		went, _ := rivalry(t, name, 10, 100)
		if most := (100 + 100 + 2*4*90) / 100; went[0]-went[1] > most || went[1]-went[0] > most {
			t.Errorf("%s: the liar gets %d and the other flow %d", name, went[0], went[1])
		}
	}
}

// A flow with cached prompts is charged less at once, before any of its requests has ended. In the end it gets more
// requests in proportion.
func TestCachedPromptsAreChargedLessAtOnce(t *testing.T) {
	for name := range expecting {
		went, atOnce := rivalry(t, name, 25, 25)
		if went[0] < 3*went[1] {
			t.Errorf("%s: %d requests at a quarter of the cost, and %d of the other flow", name, went[0], went[1])
		}
		if atOnce != [2]int{3, 1} {
			t.Errorf("%s: of the first four requests %v go", name, atOnce)
		}
	}
}
