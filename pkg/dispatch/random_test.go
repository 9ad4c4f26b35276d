package dispatch_test

import (
	"flag"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
)

var (
	randomRuns  = flag.Int("random.runs", 400, "scenes that TestRandomMachines plays")
	randomSeed  = flag.Uint64("random.seed", 1, "the first scene's seed; the others follow it")
	randomQuick = flag.Bool("random.quick", false, "TestRandomMachines does not reduce a scene that fails")
)

// TestRandomMachines plays random scenes, and checks in each the properties that users rely on: see
// random_rules_test.go, random_outcomes_test.go and random_shares_test.go. A failing scene is reduced before it is
// reported. Each property applies in many scenes.
func TestRandomMachines(t *testing.T) {
	runs := *randomRuns
	total := playScenes(t, runs, newScene)
	if runs < 400 { // somebody plays a few by their seeds
		return
	}
	for _, met := range []struct {
		what       string
		got, least int
	}{
		{"grants", total.grants, 50 * runs},
		{"bypasses", total.bypasses, 10 * runs},
		{"rejections", total.rejections, 10 * runs},
		{"promotions", total.promotions, runs / 10},
		{"preemptions", total.preemptions, runs / 20},
		{"windows of shares", total.windows, runs},
		{"shares compared with wfq", total.comparedWFQ, 10 * runs},
		{"shares compared with vtc", total.comparedVTC, 10 * runs},
		{"turns of classes", total.turns, runs / 40},
	} {
		if met.got < met.least {
			t.Errorf("%d runs met only %d %s, want %d", runs, met.got, met.what, met.least)
		}
	}
}

// TestRandomRegroupings plays scenes in which engines load and unload models all the time, and begin to list them, or cease to.
// In every other scene engines lack needs of requests as well.
func TestRandomRegroupings(t *testing.T) {
	total := playScenes(t, *randomRuns/4, func(seed uint64) *scene {
		s, r := newScene(seed), rand.New(rand.NewPCG(seed, 1))
		load := func(pool []scheduling.Endpoint) []scheduling.Endpoint {
			for i := range pool {
				if seed%2 == 1 {
					pool[i].Lacks = some(r, 0, 0, scheduling.NeedImage, scheduling.NeedImage|scheduling.NeedAudio)
				}
				pool[i].Models = some(r, nil, []string{"m"}, []string{"n"}, []string{"m", "n"}, []string{"m", "n"}, []string{"n", "l"})
			}
			return pool
		}
		s.changes, s.pool = nil, load(s.pool)
		for i := range s.loads {
			if seed%2 == 1 {
				s.loads[i].ask.Needs = some(r, 0, 0, scheduling.NeedImage, scheduling.NeedAudio, scheduling.NeedImage|scheduling.NeedStructured)
			}
		}
		for at := time.Duration(0); at < s.length; at += time.Duration(r.Int64N(int64(s.length / 5))) {
			s.changes = append(s.changes, change{at: at, pool: load(randomPool(r, 1+r.IntN(3), true))})
		}
		return s
	})
	if total.regroupings < *randomRuns/4 {
		t.Errorf("lanes were regrouped only %d times", total.regroupings)
	}
}

// TestRandomMatches plays scenes in which engines have cached prompts, and requests take others' turns for them.
// Without known prompts no request does.
func TestRandomMatches(t *testing.T) {
	matching := func(prompts bool) func(seed uint64) *scene {
		return func(seed uint64) *scene {
			s, r := newScene(seed), rand.New(rand.NewPCG(seed, 5))
			looks := func(c *dispatch.Config) {
				if c.Queue.Order = some(r, fairqueue.Locality, fairqueue.Locality, fairqueue.FCFS); c.Queue.Discipline != fairqueue.OneFlow {
					c.Queue.LocalityQuantum = fairqueue.Cost(some(r, 0, 1, 10, 100, 5000))
				}
				for i := range c.Queue.Classes {
					c.Queue.Classes[i].Order = some(r, c.Queue.Classes[i].Order, fairqueue.Locality)
				}
			}
			s.prompts = prompts
			looks(&s.config)
			for i := range s.changes {
				if s.changes[i].config != nil {
					looks(s.changes[i].config)
				}
			}
			return s
		}
	}
	runs := *randomRuns / 2
	total := playScenes(t, runs, matching(true))
	if total.overtakenByOwn < 10*runs || total.overtakenByOther < 2*runs {
		t.Errorf("%d scenes: only %d and %d were overtaken", runs, total.overtakenByOwn, total.overtakenByOther)
	}
	if total := playScenes(t, runs/4, matching(false)); total.overtakenByOwn+total.overtakenByOther > 0 {
		t.Errorf("requests were overtaken for nothing: %+v", total)
	}
}

// TestRandomTenants plays scenes in which tenants have roles and quotas: see random_tenants_test.go.
func TestRandomTenants(t *testing.T) {
	runs := *randomRuns / 4
	total := playScenes(t, runs, tenantsScene)
	if total.overQuota < 20*runs || total.reweighed < runs/8 || total.windows < 2*runs {
		t.Errorf("%d scenes: %d were above a quota, %d flows got another weight, %d windows of shares", runs, total.overQuota, total.reweighed, total.windows)
	}
}

func playScenes(t *testing.T, runs int, scenes func(seed uint64) *scene) (total tallies) {
	t.Helper()
	var next atomic.Int64
	var mu sync.Mutex // guards the rest
	var bad []uint64
	var players sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		players.Go(func() {
			for n := next.Add(1) - 1; n < int64(runs); n = next.Add(1) - 1 {
				seed := *randomSeed + uint64(n)
				x, err := play(scenes(seed), false)
				mu.Lock()
				if total.add(x.counts); err != nil {
					bad = append(bad, seed)
					next.Store(int64(runs)) // those before it are being played
				}
				mu.Unlock()
			}
		})
	}
	players.Wait()
	if len(bad) > 0 {
		seed := slices.Min(bad)
		s := scenes(seed)
		_, err := play(s, false)
		if *randomQuick {
			t.Fatalf("seed %d: %v", seed, err)
		}
		small := reduce(s, err)
		x, err := play(small, true)
		t.Fatalf("seed %d: %v\n%v\n%s", seed, err, small, x.story(80))
	}
	t.Logf("%+v", total)
	return total
}

func (n *tallies) add(o tallies) {
	n.requests += o.requests
	n.grants += o.grants
	n.bypasses += o.bypasses
	n.preemptions += o.preemptions
	n.promotions += o.promotions
	n.rejections += o.rejections
	n.windows += o.windows
	n.comparedWFQ += o.comparedWFQ
	n.comparedVTC += o.comparedVTC
	n.regroupings += o.regroupings
	n.turns += o.turns
	n.overtakenByOwn += o.overtakenByOwn
	n.overtakenByOther += o.overtakenByOther
	n.failures += o.failures
	n.opened += o.opened
	n.trials += o.trials
	n.heldPlaces += o.heldPlaces
	n.overQuota += o.overQuota
	n.reweighed += o.reweighed
	n.blocked += o.blocked
	n.unblocked += o.unblocked
	n.limited += o.limited
}

// property returns the name of the property that an error reports.
func property(err error) string {
	name, _, _ := strings.Cut(err.Error(), ":")
	return name
}

// reduce omits parts of a failing scene as long as the same property fails.
func reduce(s *scene, err error) *scene {
	want, until := property(err), time.Now().Add(20*time.Second)
	for progress := true; progress && time.Now().Before(until); {
		progress = false
		for _, smaller := range smallerThan(s) {
			if time.Now().After(until) {
				break
			}
			if _, err := play(smaller, false); err != nil && property(err) == want {
				s, progress = smaller, true
				break
			}
		}
	}
	return s
}
