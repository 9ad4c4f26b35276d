package fairqueue

import (
	"fmt"
	"testing"
)

// A flow that leaves after each grant, and returns at once, gets no more than one that stays. Leaving drops no debt:
// neither that of its last request nor that of costs known later, whether or not it waits in another lane.
func TestLeavingShedsNoDebt(t *testing.T) { bothTrueUps(t, leavingShedsNoDebt) }

func leavingShedsNoDebt(t *testing.T, d Discipline) {
	for _, elsewhere := range []bool{false, true} {
		q := truingUp(t, d, NewcomerFirst)
		if elsewhere { // something of it always waits in a lane that is closed
			r := &Request{Flow: "hops", Lane: "x", Cost: 1}
			mustPush(t, q, r)
			q.CloseLane(r, LaneDead)
		}
		cost := map[string]int{}
		var flying []*Request
		for range 3000 {
			keep(t, q, "stays", 10, 2)
			if f := q.top.classes[0].flows.find("hops"); f == nil || f.laneOf("") == nil {
				mustPush(t, q, &Request{Flow: "hops", Cost: 10})
			}
			r := popNext(q)
			actual := Cost(10)
			if r.Flow == "hops" {
				actual = 90
			}
			cost[r.Flow] += int(actual)
			if flying = append(flying, r); len(flying) > 3 {
				ends(q, flying[0], map[string]Cost{"hops": 90, "stays": 10}[flying[0].Flow])
				flying = flying[1:]
			}
		}
		if d := cost["hops"] - cost["stays"]; d > 500 || d < -500 {
			t.Errorf("something waits elsewhere %t: served %v, want the same", elsewhere, cost)
		}
	}
}

// An attacker uses each identity once. With k requests waiting at a time it gets no more than k flows that stay, that
// is k times the honest flow's service, whatever its requests cost and in whatever order equal flows go.
func TestManyIdentities(t *testing.T) { bothTrueUps(t, manyIdentities) }

func manyIdentities(t *testing.T, d Discipline) {
	for _, tieBreak := range tieBreaks {
		for _, k := range []int{1, 3} {
			for _, cost := range []Cost{1, 10, 1000} {
				q := truingUp(t, d, tieBreak)
				keep(t, q, "honest", 10, 2)
				var honest, attacker, waits int
				for i := range 20_000 {
					for ; waits < k; waits++ {
						mustPush(t, q, &Request{Flow: fmt.Sprint("mask", i, " ", waits), Cost: cost})
					}
					keep(t, q, "honest", 10, 2)
					r := popNext(q)
					if r.Flow == "honest" {
						honest += int(r.Cost)
					} else {
						attacker += int(r.Cost)
						waits--
					}
					q.Completed(r)
				}
				if most := k*honest + k*int(cost) + 10; attacker > most+most/50 {
					t.Errorf("tie-break %d: %d masks at a time, cost %d: %d beside the honest flow's %d, want at most %d",
						tieBreak, k, cost, attacker, honest, most)
				}
			}
		}
	}
}

// After a hundred thousand identities, each with a request and a debt, only the last ones are still known.
func TestIdentitiesAreForgotten(t *testing.T) { bothTrueUps(t, identitiesAreForgotten) }

func identitiesAreForgotten(t *testing.T, d Discipline) {
	q := truingUp(t, d, ByArrival, func(c *Config) { c.Levels = 2 })
	for i := range 100_000 {
		r := &Request{Flow: fmt.Sprint(i), Path: &Path{Under: []string{fmt.Sprint(i % 7)}}, Cost: 5}
		if i%2 == 0 {
			q.Bypassed(start, r)
		} else {
			mustPush(t, q, r)
			popNext(q)
		}
		ends(q, r, 50)
		if known := len(q.top.classes[0].flows.known); known > keptFlows {
			t.Fatalf("%d flows are known after %d", known, i+1)
		}
	}
	if c := q.top.classes[0]; len(c.flows.free) > keptFlows || len(c.freeFlowLanes) > keptFlows || len(c.lanes) > 0 {
		t.Errorf("%d flows, %d parts of lanes and %d lanes are left", len(c.flows.free), len(c.freeFlowLanes), len(c.lanes))
	}
}
