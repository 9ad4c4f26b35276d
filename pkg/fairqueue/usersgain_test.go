package fairqueue

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// A tenant gains nothing by its users: with N users, that always wait or come and go, of known and of new names, it is served as
// one with a single user is, in cost, within a bound that does not depend on N. The users of one tenant are served equally.
func TestManyUsersGainNothing(t *testing.T) {
	for name, d := range byWeight {
		for _, users := range []int{1, 2, 50, 1000} {
			for _, fresh := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/%t", name, users, fresh), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(uint64(users), 3))
					q := queue(t, ofTwoLevels(d))
					cost := func() Cost { return Cost(50 + rng.IntN(100)) }
					arrivals := 0
					push := func() {
						arrivals++
						user := fmt.Sprint(arrivals % users)
						if fresh {
							user = fmt.Sprint("new ", arrivals)
						}
						mustPush(t, q, &Request{Flow: "crowd", Cost: cost(), Path: &Path{Under: []string{user}}})
						mustPush(t, q, &Request{Flow: "alone", Cost: cost(), Path: &Path{Under: []string{"u"}}})
					}
					for range max(2*users, 10) {
						push()
					}
					got, byUser := map[string]int64{}, map[string]int{}
					var inFlight []*Request
					for range 4000 {
						push()
						r := popNext(q)
						got[r.Flow] += int64(r.Cost)
						if r.Flow == "crowd" {
							byUser[r.Path.Under[0]]++
						}
						if inFlight = append(inFlight, r); len(inFlight) > 8 {
							q.Completed(inFlight[0])
							inFlight = inFlight[1:]
						}
					}
					// Two requests of the largest cost for each of the two, at the beginning and at the end.
					if ahead := got["crowd"] - got["alone"]; ahead > 4*150 || ahead < -4*150 {
						t.Errorf("the crowd got %d, the one alone %d", got["crowd"], got["alone"])
					}
					if fresh {
						return
					}
					for user := range users {
						if n, want := byUser[fmt.Sprint(user)], 2000/users; n < want*8/10-4 || n > want*12/10+4 {
							t.Errorf("user %d of %d: %d of about 2000", user, users, n)
						}
					}
				})
			}
		}
	}
}

// Weights of users divide what their tenant gets, 3:1, and nothing of what others get; a reload changes them for who waits.
func TestWeightsOfUsers(t *testing.T) {
	for name, d := range byWeight {
		t.Run(name, func(t *testing.T) {
			cfg := ofTwoLevels(d)
			cfg.ByLevel = []LevelConfig{
				{Weights: map[string]Weight{"b": 2 * WeightOne}}, {Weights: map[string]Weight{"heavy": 3 * WeightOne}},
			}
			q := queue(t, cfg)
			for range 1000 {
				mustPush(t, q, of("a", "heavy"))
				mustPush(t, q, of("a", "light"))
				mustPush(t, q, of("b", "heavy"))
			}
			want := func(heavy, light, other int) {
				t.Helper()
				got := map[string]int{}
				for range 600 {
					r := popNext(q)
					got[r.Flow+"/"+r.Path.Under[0]]++
				}
				for user, n := range map[string]int{"a/heavy": heavy, "a/light": light, "b/heavy": other} {
					if got[user] < n-3 || got[user] > n+3 {
						t.Errorf("%v, want %d, %d and %d", got, heavy, light, other)
						return
					}
				}
				mustHold(t, q)
			}
			want(150, 50, 400)
			cfg.ByLevel = []LevelConfig{{Weights: map[string]Weight{"a": WeightOne}}, {Weights: map[string]Weight{"light": 2 * WeightOne}}}
			reconfigure(t, q, cfg)
			want(100, 200, 300)
		})
	}
}

// A user's own weight goes before its role's.
func TestWeightOfAUserBeforeItsRole(t *testing.T) {
	cfg := university(WFQ)
	cfg.Levels = 2
	cfg.ByLevel = []LevelConfig{{}, {Weights: map[string]Weight{"dean": 4 * WeightOne}}}
	q := queue(t, cfg)
	for range 400 {
		mustPush(t, q, &Request{Flow: "physics", Cost: 100, Path: &Path{Role: "student", Under: []string{"dean"}}})
		mustPush(t, q, &Request{Flow: "physics", Cost: 100, Path: &Path{Role: "staff", Under: []string{"tom"}}})
	}
	got := map[string]int{}
	for range 300 {
		got[popNext(q).Path.Under[0]]++
	}
	if n := got["dean"]; n < 198 || n > 202 {
		t.Errorf("%v, want 200 and 100", got)
	}
}

// A user has its own capacity within that of its tenant; the others of its tenant still have room.
func TestCapacityOfUsers(t *testing.T) {
	cfg := ofTwoLevels(WFQ)
	cfg.ByLevel = []LevelConfig{{Capacity: 6}, {Capacity: 2, Capacities: map[string]int{"many": 5}}}
	q := queue(t, cfg)
	for _, c := range []struct {
		user string
		want error
	}{
		{"u", nil},
		{"u", nil},
		{"u", ErrInsufficientCapacityUnder},
		{"many", nil},
		{"many", nil},
		{"many", nil},
		{"v", nil},
		{"v", ErrInsufficientFlowCapacity},
		{"u", ErrInsufficientFlowCapacity},
	} {
		_, err := q.Push(start, of("a", c.user))
		if !errors.Is(err, c.want) || errors.Is(c.want, ErrInsufficientFlowCapacity) != errors.Is(err, ErrInsufficientFlowCapacity) {
			t.Errorf("%s: %v, want %v", c.user, err, c.want)
		}
		mustHold(t, q)
	}
	cfg.ByLevel = []LevelConfig{{}, {}}
	reconfigure(t, q, cfg)
	for range 10 {
		mustPush(t, q, of("a", "u"))
	}
	mustHold(t, q)
}

// A million users of one tenant, of whom each sends once, leave nothing behind but a few that are kept.
func TestUsersAreForgotten(t *testing.T) {
	for name, d := range byWeight {
		t.Run(name, func(t *testing.T) {
			q := queue(t, ofTwoLevels(d))
			for i := range 100_000 {
				r := of("a", fmt.Sprint(i))
				if i%2 == 0 {
					q.Bypassed(start, r)
				} else {
					mustPush(t, q, r)
					popNext(q)
				}
				q.Completed(r)
			}
			for _, f := range q.tiers[0].classes[0].flows.known {
				if f.under != nil && len(f.under.flows.known) > 2*keptUnder {
					t.Errorf("%d users are known", len(f.under.flows.known))
				}
			}
			if n := len(q.tiers[0].classes[0].freeFlowLanes); n > keptFlows {
				t.Errorf("%d flowLanes are kept", n)
			}
		})
	}
}
