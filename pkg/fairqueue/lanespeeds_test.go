package fairqueue

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// tenant is a flow with a number of clients. Each sends its next request to the lane when its last one has ended.
type tenant struct {
	flow    string
	lane    Lane
	clients int
	cost    Cost
}

// engines simulates lanes of engines, each with one slot: a request takes as many steps as it costs, and waiting
// requests go in the queue's order, to any engine of their lane. It returns each tenant's service in the second half,
// in cost.
func engines(
	t *testing.T, d Discipline, weights map[string]Weight, reach map[Lane][]int, tenants []tenant, steps int,
) []float64 {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Discipline, cfg.Weights, cfg.CapacityMode = d, weights, Shared
	cfg.TotalCapacity, cfg.FlowCapacity = 10_000, 10_000
	q := queue(t, cfg)
	type running struct {
		r      *Request
		left   Cost
		engine int
	}
	held, busy, served := map[int]bool{}, []running(nil), make([]float64, len(tenants))
	send := func(i int) {
		mustPush(t, q, &Request{Flow: tenants[i].flow, Lane: tenants[i].lane, Cost: tenants[i].cost, Owner: i})
	}
	for i, of := range tenants {
		for range of.clients {
			send(i)
		}
	}
	for step := range steps {
		still := busy[:0]
		for _, b := range busy {
			if b.left--; b.left > 0 {
				still = append(still, b)
				continue
			}
			held[b.engine] = false
			q.OpenLanes()
			q.Completed(b.r)
			i := b.r.Owner.(int)
			if step > steps/2 {
				served[i] += float64(b.r.Cost)
			}
			send(i)
		}
		busy = still
		for c := q.Peek(start, Allowed{Tiers: AllTiers}); c.Request != nil; c = q.Peek(start, Allowed{Tiers: AllTiers}) {
			r := c.Request
			free := slices.IndexFunc(reach[r.Lane], func(e int) bool { return !held[e] })
			if free < 0 {
				q.CloseLane(r, LaneBusy)
				continue
			}
			engine := reach[r.Lane][free]
			var also []Lane
			for _, l := range q.LanesOf(r, nil) {
				if l != r.Lane && slices.ContainsFunc(slices.Collect(maps.Keys(reach)), func(rival Lane) bool {
					return slices.Contains(reach[rival], engine) && q.OthersWait(r, rival) && overlap(reach[rival], reach[l])
				}) {
					also = append(also, l)
				}
			}
			r.CountAlsoIn(also)
			held[engine] = true
			q.Pop(c)
			busy = append(busy, running{r, r.Cost, engine})
		}
		if err := checkInvariants(q); step%50 == 0 && err != nil {
			t.Fatal(err)
		}
	}
	return served
}

func overlap(a, b []int) bool {
	return slices.ContainsFunc(a, func(e int) bool { return slices.Contains(b, e) })
}

// several returns engines from first on.
func several(first, n int) (engines []int) {
	for e := range n {
		engines = append(engines, first+e)
	}
	return engines
}

// Flows that wait for the same engines share them by their weights, whatever happens at other engines, including their
// own use of engines without other waiters.
func TestSharesHoldBesideFasterLanes(t *testing.T) {
	for name, d := range map[string]Discipline{"wfq": WFQ, "vtc": VTC, "fairshare": FairShare} {
		for _, elsewhere := range []int{1, 4, 12} {
			weights := map[string]Weight{"a": 4 * WeightOne}
			slots := map[Lane][]int{"slow": {0}, "fast": several(1, elsewhere)}
			tenants := []tenant{{"a", "slow", 8, 3}, {"b", "slow", 8, 3}, {"c", "fast", 4 * elsewhere, 1}}
			served := engines(t, d, weights, slots, tenants, 8_000)
			if ratio := served[0] / served[1]; ratio < 3.9 || ratio > 4.1 {
				t.Errorf("%s: 4:1 is %.2f beside a tenant of %d other engines", name, ratio, elsewhere)
			}
			// b uses the fast lane as well, where it is alone: that takes nothing from it where it is not.
			tenants = []tenant{{"a", "slow", 8, 3}, {"b", "slow", 8, 3}, {"b", "fast", 4 * elsewhere, 1}}
			served = engines(t, d, nil, slots, tenants, 8_000)
			if ratio := served[0] / served[1]; ratio < 0.95 || ratio > 1.05 {
				t.Errorf("%s: equals share %.2f where one of them has %d other engines to itself", name, ratio, elsewhere)
			}
			// Costs count too.
			tenants = []tenant{{"a", "slow", 8, 1}, {"b", "slow", 8, 10}, {"c", "fast", 4 * elsewhere, 1}}
			served = engines(t, d, nil, slots, tenants, 16_000)
			if ratio := served[0] / served[1]; ratio < 0.95 || ratio > 1.05 {
				t.Errorf("%s: equals with costs of 1 and 10 share %.2f beside %d other engines", name, ratio, elsewhere)
			}
		}
	}
}

// Any number of lanes of different speeds: in each, flows that always wait there share by weight.
func TestSharesInRandomLanes(t *testing.T) {
	for name, d := range map[string]Discipline{"wfq": WFQ, "vtc": VTC, "fairshare": FairShare} {
		for seed := range seeds(12) {
			random := rand.New(rand.NewPCG(seed, 3))
			slots, weights, tenants := map[Lane][]int{}, map[string]Weight{}, []tenant(nil)
			for l := range 2 + random.IntN(3) {
				lane := Lane(fmt.Sprintf("lane%d", l))
				slots[lane] = several(100*l, 1+random.IntN(9))
				for f := range 2 + random.IntN(2) {
					flow := fmt.Sprintf("%s-%d", lane, f)
					weights[flow] = Weight(1+random.IntN(4)) * WeightOne
					tenants = append(tenants, tenant{flow, lane, 60, Cost(1 + random.IntN(5))})
				}
			}
			served := engines(t, d, weights, slots, tenants, 4000)
			for i, a := range tenants {
				for j, b := range tenants[:i] {
					if a.lane != b.lane {
						continue
					}
					got := served[i] / float64(weights[a.flow]) / (served[j] / float64(weights[b.flow]))
					if got < 0.93 || got > 1.07 {
						t.Errorf("%s, seed %d: %v and %v of weights %d and %d are served %v and %v", name, seed, a, b,
							weights[a.flow]/WeightOne, weights[b.flow]/WeightOne, served[i], served[j])
					}
				}
			}
		}
	}
}

// A tenant has its share of each set of engines that it waits for: service by one set does not count in another.
func TestAShareOfEachSetOfEngines(t *testing.T) {
	for name, d := range map[string]Discipline{"wfq": WFQ, "vtc": VTC, "fairshare": FairShare} {
		reach := map[Lane][]int{"one": {0}, "other": several(1, 4)}
		tenants := []tenant{{"both", "one", 6, 2}, {"both", "other", 12, 2}, {"here", "one", 6, 2}, {"there", "other", 12, 2}}
		served := engines(t, d, nil, reach, tenants, 20_000)
		for i, most := range []float64{10_000, 40_000, 10_000, 40_000} {
			if share := served[i] / most; share < 0.48 || share > 0.52 {
				t.Errorf("%s: %v has %.2f of its engines", name, tenants[i], share)
			}
		}
	}
}

// Many names for the same engines, or overlapping sets, do not increase the share of these engines.
func TestOverlappingLanesAreOneShare(t *testing.T) {
	for name, d := range map[string]Discipline{"wfq": WFQ, "vtc": VTC, "fairshare": FairShare} {
		reach, tenants := map[Lane][]int{"": several(0, 4)}, []tenant{{"one", "", 12, 2}}
		for i := range 8 {
			lane := Lane(fmt.Sprintf("adapter%d", i))
			reach[lane] = several(0, 4)
			tenants = append(tenants, tenant{"many", lane, 12, 2})
		}
		served := engines(t, d, nil, reach, tenants, 10_000)
		if share := served[0] / 20_000; share < 0.45 || share > 0.55 {
			t.Errorf("%s: a tenant in one lane has %.2f of the engines beside one in 8", name, share)
		}
		// Nor is it to be confined to each engine.
		reach, tenants = map[Lane][]int{"": several(0, 4)}, []tenant{{"one", "", 24, 2}}
		for i := range 4 {
			lane := Lane(fmt.Sprintf("pinned%d", i))
			reach[lane] = []int{i}
			tenants = append(tenants, tenant{"many", lane, 12, 2})
		}
		served = engines(t, d, nil, reach, tenants, 10_000)
		if share := served[0] / 20_000; share < 0.45 || share > 0.55 {
			t.Errorf("%s: a tenant of all engines has %.2f of them beside one that is confined to each", name, share)
		}
		// Overlapping sets starve no tenant.
		reach = map[Lane][]int{"": several(0, 4), "left": several(0, 2), "middle": several(1, 2), "right": several(2, 2)}
		tenants = []tenant{{"a", "", 12, 2}, {"b", "left", 12, 2}, {"c", "middle", 12, 2}, {"d", "right", 12, 2}, {"e", "right", 12, 1}}
		served = engines(t, d, nil, reach, tenants, 10_000)
		for i, of := range tenants {
			if served[i] < 20_000/5/2 {
				t.Errorf("%s: %v has %v, of %v", name, of, served[i], served)
			}
		}
	}
}
