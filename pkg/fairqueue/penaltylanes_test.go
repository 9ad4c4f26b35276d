package fairqueue

import (
	"fmt"
	"testing"
	"time"
)

// The lanes of the flow above the threshold make turns no more expensive: among 1,000 lanes a turn recomputes 16 keys,
// each in its turn. With 16 lanes or fewer all are recomputed.
func TestPenaltyOfManyLanes(t *testing.T) {
	const unseen = VirtualTime(1 << 62)
	for _, lanes := range []int{3, reviewedLanes, 1000} {
		c := newCluster(t)
		c.uses("heavy", 10_000, 1)
		c.uses("light", 100, 1)
		for i := range lanes {
			r := &Request{Flow: "heavy", Lane: Lane(fmt.Sprint("lane-", i)), Cost: 1000}
			if _, err := c.Push(c.now, r); err != nil {
				t.Fatal(err)
			}
		}
		c.waits("light", 10, 2*lanes)
		c.grants(1)
		heavy := c.top.classes[0].flows.find("heavy")
		if c.top.classes[0].fair.of != &heavy.share {
			t.Fatal("heavy is not above the threshold")
		}
		computed, most := map[Lane]bool{}, 0
		for turn := 0; turn*reviewedLanes < lanes+reviewedLanes; turn++ {
			for _, fl := range heavy.lanes {
				fl.ownBranch().raise = unseen
			}
			if got := c.Peek(c.now, Allowed{Tiers: AllTiers}).Request.Flow; got != "light" {
				t.Fatalf("%d lanes: %s is next", lanes, got)
			}
			n := 0
			for _, fl := range heavy.lanes {
				if fl.ownBranch().raise != unseen {
					computed[fl.lane.name] = true
					n++
				}
			}
			most = max(most, n)
			c.advance(time.Second)
		}
		if most != min(lanes, reviewedLanes) || len(computed) != lanes {
			t.Errorf("of %d lanes, a turn computes the keys in %d, and all turns those in %d", lanes, most, len(computed))
		}
	}
}
