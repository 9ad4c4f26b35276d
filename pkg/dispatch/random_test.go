package dispatch_test

import (
	"flag"
	"strings"
	"testing"
	"time"
)

var (
	randomRuns  = flag.Int("random.runs", 500, "scenes that TestRandomMachines plays")
	randomSeed  = flag.Uint64("random.seed", 1, "the first scene's seed; the others follow it")
	randomQuick = flag.Bool("random.quick", false, "TestRandomMachines does not reduce a scene that fails")
)

// TestRandomMachines plays random scenes, and checks in each what a user would state: see random_rules_test.go and
// random_shares_test.go. A scene that fails is reduced before it is told.
func TestRandomMachines(t *testing.T) {
	var total tallies
	for seed := *randomSeed; seed < *randomSeed+uint64(*randomRuns); seed++ {
		s := newScene(seed)
		x, err := play(s, false)
		if err != nil {
			if *randomQuick {
				t.Fatalf("seed %d: %v", seed, err)
			}
			small := reduce(s, err)
			x, err := play(small, true)
			t.Fatalf("seed %d: %v\n%v\n%s", seed, err, small, x.story(80))
		}
		total.add(x.counts)
	}
	t.Logf("%+v", total)
}

func (n *tallies) add(o tallies) {
	n.requests += o.requests
	n.grants += o.grants
	n.bypasses += o.bypasses
	n.preemptions += o.preemptions
	n.promotions += o.promotions
	n.rejections += o.rejections
	n.windows += o.windows
	n.compared += o.compared
}

// property is the name of the property that an error says does not hold.
func property(err error) string {
	name, _, _ := strings.Cut(err.Error(), ":")
	return name
}

// reduce leaves out of a failing scene what it fails without, as long as the same property fails.
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
