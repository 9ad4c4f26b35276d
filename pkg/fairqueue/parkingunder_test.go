package fairqueue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// ofTwoLevels is a configuration with tenants and users, without limits.
func ofTwoLevels(d Discipline) Config {
	cfg := DefaultConfig()
	cfg.Levels, cfg.Discipline, cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = 2, d, Shared, 100_000, 100_000
	return cfg
}

// served pops all requests that can go, and returns the users in order, as "tenant/user".
func served(q *FairRequestQueue) (users []string) {
	for r := popNext(q); r != nil; r = popNext(q) {
		users = append(users, r.Flow+"/"+r.Path.Under[0])
	}
	return users
}

// A user at its cap waits; the others of its tenant, and other tenants, go on. When it is below its cap again it goes too.
func TestParkedUserBlocksNobody(t *testing.T) {
	for name, d := range byWeight {
		t.Run(name, func(t *testing.T) {
			q := queue(t, ofTwoLevels(d))
			capped := of("a", "capped")
			mustPush(t, q, capped)
			mustPush(t, q, of("a", "free"))
			mustPush(t, q, of("b", "u"))
			q.ParkUnder(capped)
			mustHold(t, q)
			got := served(q)
			slices.Sort(got)
			if want := []string{"a/free", "b/u"}; !slices.Equal(got, want) {
				t.Errorf("%v go, want %v", got, want)
			}
			mustHold(t, q)
			q.UnparkUnder(0, "a", []string{"free"}) // which nobody has parked
			if got := served(q); got != nil {
				t.Errorf("%v go, and are parked", got)
			}
			q.UnparkUnder(0, "a", []string{"capped"})
			mustHold(t, q)
			if got := served(q); !slices.Equal(got, []string{"a/capped"}) {
				t.Errorf("%v go at the end", got)
			}
		})
	}
}

// While all users of a tenant are at their caps, the tenant has no turn, makes no others wait, and is shown as parked.
// An arrival of another user takes its right place at once.
func TestTenantOfParkedUsers(t *testing.T) {
	q := queue(t, ofTwoLevels(WFQ))
	first, second := of("a", "u"), of("a", "v")
	mustPush(t, q, first)
	mustPush(t, q, second)
	q.ParkUnder(first)
	if may, _ := q.MayBypass(start, of("b", "x"), false); may {
		t.Error("an arrival goes before one who could go")
	}
	q.ParkUnder(second)
	mustHold(t, q)
	if may, _ := q.MayBypass(start, of("b", "x"), false); !may {
		t.Error("an arrival waits for those who cannot go")
	}
	if v := q.View(1)[0]; !v.Parked || v.Capped != 2 || v.Under != 2 {
		t.Errorf("shown as %+v", v)
	}
	if got := q.InLane("", nil); len(got) != 1 {
		t.Errorf("%v tell of the lane", got)
	}
	third := of("a", "w")
	mustPush(t, q, third)
	mustHold(t, q)
	if v := q.View(1)[0]; v.Parked || v.Capped != 2 || v.Under != 3 {
		t.Errorf("shown as %+v", v)
	}
	if got := served(q); !slices.Equal(got, []string{"a/w"}) {
		t.Errorf("%v go", got)
	}
	mustHold(t, q)
	q.Remove(first)
	mustHold(t, q)
	q.Remove(second)
	mustHold(t, q)
	if q.Flows() != 0 {
		t.Errorf("%d flows wait", q.Flows())
	}
}

// A tenant at its cap waits with all its users, whether they are at theirs or not, and goes again only when both are below.
func TestTenantAndUserAtTheirCaps(t *testing.T) {
	for _, tenantFirst := range []bool{true, false} {
		q := queue(t, ofTwoLevels(WFQ))
		u, v := of("a", "u"), of("a", "v")
		mustPush(t, q, u)
		mustPush(t, q, v)
		if tenantFirst {
			q.ParkFlow(u)
			q.ParkUnder(u)
		} else {
			q.ParkUnder(u)
			q.ParkFlow(u)
		}
		mustHold(t, q)
		q.AwaitRoom(u)
		mustHold(t, q)
		if !q.Awaits("") {
			t.Error("a tenant with a user that could go does not await room")
		}
		q.ParkUnder(v)
		mustHold(t, q)
		if q.Awaits("") {
			t.Error("a tenant of which no user could go awaits room")
		}
		q.UnparkFlow(0, "a")
		mustHold(t, q)
		if got := served(q); got != nil {
			t.Errorf("%v go, and are at their caps", got)
		}
		q.ParkFlow(u)
		q.UnparkUnder(0, "a", []string{"u"})
		mustHold(t, q)
		if got := served(q); got != nil {
			t.Errorf("%v go, and their tenant is at its cap", got)
		}
		q.UnparkFlow(0, "a")
		if got := served(q); !slices.Equal(got, []string{"a/u"}) {
			t.Errorf("%v go", got)
		}
	}
}

// After any parks, unparks, cancellations, pops, moves to other lanes and reconfigurations, in up to three levels: no
// request goes that is at a cap or under one, and all others can go.
func TestRandomParking(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 21))
		cfg := ofTwoLevels([]Discipline{WFQ, VTC, FairShare}[seed%3])
		cfg.Levels = 2 + int(seed/3%2)
		cfg.TotalCapacity = []int{12, 100_000}[seed/6%2]
		cfg.FlowCapacity = cfg.TotalCapacity
		cfg.Tiers = []TierConfig{{Name: "high", QueueSize: -1}, {Name: "low", QueueSize: -1, StarvationThreshold: time.Duration(seed / 12 % 2)}}
		q := queue(t, cfg)
		atCap := map[string]bool{} // by tier, keys and lane
		name := func(r *Request, depth int) string {
			return fmt.Sprint(r.Tier, r.Flow, r.Path.Under[:min(depth, cfg.Levels-1)], r.Lane)
		}
		blocked := func(r *Request) bool { return atCap[name(r, 0)] || atCap[name(r, 9)] }
		var waiting []*Request
		gone := func(r *Request) {
			waiting = slices.DeleteFunc(waiting, func(w *Request) bool { return w == r })
			for _, depth := range []int{0, 9} {
				if !slices.ContainsFunc(waiting, func(w *Request) bool { return name(w, depth) == name(r, depth) }) {
					delete(atCap, name(r, depth)) // a flow that comes back is not parked
				}
			}
		}
		for range 250 {
			var r *Request
			if len(waiting) > 0 {
				r = waiting[random.IntN(len(waiting))]
			}
			switch op := random.IntN(10); {
			case op < 4 || r == nil:
				r = of(fmt.Sprint(random.IntN(2)), fmt.Sprint(random.IntN(3)), fmt.Sprint(random.IntN(2)))
				r.Lane, r.Tier, r.Cost = []Lane{"", "x"}[random.IntN(2)], random.IntN(2), Cost(1+random.IntN(3))
				displaced, err := q.Push(start, r)
				if displaced != nil {
					gone(displaced)
				}
				if err == nil {
					waiting = append(waiting, r)
				}
			case op == 4:
				q.ParkUnder(r)
				atCap[name(r, 9)] = true
			case op == 5:
				q.ParkFlow(r)
				q.AwaitRoom(r)
				atCap[name(r, 0)] = true
			case op == 6:
				q.UnparkUnder(r.Tier, r.Flow, r.Path.Under)
				for _, w := range waiting {
					if w.Tier == r.Tier && w.Flow == r.Flow && slices.Equal(w.Path.Under[:cfg.Levels-1], r.Path.Under[:cfg.Levels-1]) {
						delete(atCap, name(w, 9))
					}
				}
				if random.IntN(2) == 0 {
					q.UnparkFlow(r.Tier, r.Flow)
					for _, w := range waiting {
						if w.Tier == r.Tier && w.Flow == r.Flow {
							delete(atCap, name(w, 0))
						}
					}
				}
			case op == 7:
				q.Remove(r)
				gone(r)
			case op == 8 && random.IntN(3) == 0:
				cfg.ByLevel = make([]LevelConfig, cfg.Levels)
				cfg.ByLevel[1].Weights = map[string]Weight{"1": Weight(1+random.IntN(3)) * WeightOne}
				reconfigure(t, q, cfg)
			default:
				could := slices.ContainsFunc(waiting, func(w *Request) bool { return !blocked(w) })
				got := popNext(q)
				switch {
				case (got != nil) != could:
					t.Fatalf("seed %d: some could go: %t, goes %+v", seed, could, got)
				case got != nil && blocked(got):
					t.Fatalf("seed %d: %s/%s goes, and is at a cap", seed, got.Flow, got.Path.Under)
				case got != nil:
					gone(got)
					if q.Completed(got); random.IntN(4) == 0 && got != nil {
						q.TrueUp(start, got, Cost(1+random.IntN(3)))
					}
				}
			}
			if may, _ := q.MayBypass(start, &Request{Flow: "new", Tier: 1, Path: &Path{}}, false); may == slices.ContainsFunc(waiting, func(w *Request) bool { return !blocked(w) }) {
				t.Fatalf("seed %d: an arrival may bypass: %t", seed, may)
			}
			mustHold(t, q)
		}
		for _, w := range waiting {
			q.UnparkFlow(w.Tier, w.Flow)
			q.UnparkUnder(w.Tier, w.Flow, w.Path.Under)
		}
		if n := len(served(q)); n != len(waiting) {
			t.Errorf("seed %d: %d go at the end, %d wait", seed, n, len(waiting))
		}
	}
}

// Parking one of many users, and its end, look at none of the others.
func TestParkingAUserVisitsNoOther(t *testing.T) {
	const users = 20_000
	q := queue(t, ofTwoLevels(VTC))
	var all []*Request
	for i := range users {
		all = append(all, of("a", fmt.Sprint(i)))
		mustPush(t, q, all[i])
	}
	for i := range users - 1 {
		q.ParkUnder(all[i])
	}
	allocates := testing.AllocsPerRun(100, func() {
		q.ParkUnder(all[users-1]) // and with it the tenant
		q.UnparkUnder(0, "a", all[users-1].Path.Under)
	})
	if allocates > 4 {
		t.Errorf("parking one of %d makes %.0f allocations", users, allocates)
	}
	if got := served(q); !slices.Equal(got, []string{fmt.Sprint("a/", users-1)}) {
		t.Errorf("%d go, want the one that is not parked", len(got))
	}
}

// Requests that move to other lanes leave no tenant or user parked in the old ones.
func TestRegroupUnparksUsers(t *testing.T) {
	q := queue(t, ofTwoLevels(VTC))
	u, v, w := of("a", "u"), of("a", "v"), of("b", "w")
	for _, r := range []*Request{u, v, w} {
		r.Lane = "old"
		mustPush(t, q, r)
	}
	q.ParkUnder(u)
	q.ParkUnder(w)
	if got := q.ParkedUnder("old", nil); len(got) != 2 {
		t.Errorf("%d users are parked", len(got))
	}
	q.Regroup(map[Lane][]Lane{"old": {"new"}}, []Move{{u, "new"}, {v, "new"}, {w, "new"}})
	mustHold(t, q)
	if got := q.ParkedUnder("new", nil); len(got) != 0 {
		t.Errorf("%d users are parked", len(got))
	}
	if got := served(q); len(got) != 3 {
		t.Errorf("%v go", got)
	}
}
