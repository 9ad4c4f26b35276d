package fairqueue

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// herd is a queue whose lanes may get other names, with its requests by number.
type herd struct {
	*FairRequestQueue
	names    map[string]Lane // by the name that a lane had at first
	requests map[int]*Request
}

func newHerd(t *testing.T, cfg Config) *herd {
	return &herd{queue(t, cfg), map[string]Lane{}, map[int]*Request{}}
}

// first returns a lane's first name.
func (h *herd) first(lane Lane) string {
	for name, now := range h.names {
		if now == lane {
			return name
		}
	}
	panic("a lane that nobody knows: " + string(lane))
}

// rename gives the lanes these names.
func (h *herd) rename(names map[string]Lane) {
	heirs, moves := map[Lane][]Lane{}, []Move(nil)
	for name, now := range names {
		if was := h.names[name]; was != now {
			heirs[was] = []Lane{now}
			for _, r := range h.AllInLane(was, nil) {
				moves = append(moves, Move{r, now})
			}
		}
	}
	h.names = names
	h.Regroup(heirs, moves)
}

// follow gives a request in flight the current names of its lanes.
func (h *herd) follow(r *Request) {
	was := r.Owner.(*sent)
	r.Lane = h.names[was.lane]
	var also []Lane
	for _, name := range was.also {
		also = append(also, h.names[name])
	}
	r.CountAlsoIn(also)
}

// sent has the first names of a request's lanes.
type sent struct {
	lane string
	also []string
}

// A mere renaming of lanes, even to other lanes' names, changes nothing, bit for bit: including later corrections and
// debts of waiting, running and idle flows.
func TestOtherNamesChangeNothing(t *testing.T) {
	for _, discipline := range []Discipline{WFQ, VTC, FairShare, OneFlow} {
		for seed := range seeds(24) {
			random := rand.New(rand.NewPCG(seed, 7))
			cfg := DefaultConfig()
			cfg.Discipline, cfg.CapacityMode, cfg.Levels = discipline, Shared, 1+int(seed%2)
			cfg.TotalCapacity, cfg.FlowCapacity = 1000, 1000
			cfg.Weights = map[string]Weight{"a": 3 * WeightOne}
			same, other := newHerd(t, cfg), newHerd(t, cfg)
			lanes := []string{"p", "q", "r", "s"}
			for _, name := range lanes {
				same.names[name], other.names[name] = Lane(name), Lane(name)
			}
			flying, waiting, gone := []int(nil), 0, 0
			for i := range 1500 {
				now := start.Add(time.Duration(i) * time.Millisecond)
				switch n := random.IntN(12); {
				case n < 4 && waiting < 60:
					lane, cost := lanes[random.IntN(len(lanes))], Cost(1+random.IntN(40))
					flow, user := string(rune('a'+random.IntN(4))), string(rune('x'+random.IntN(2)))
					for _, h := range []*herd{same, other} {
						r := &Request{
							Flow: flow, Path: &Path{Under: []string{user}}, Lane: h.names[lane], Cost: cost, Owner: &sent{lane: lane},
						}
						h.requests[i] = r
						if _, err := h.Push(now, r); err != nil {
							t.Fatal(err)
						}
					}
					waiting++
				case n < 8 && waiting > 0:
					var went [2]int
					closed := lanes[random.IntN(len(lanes))]
					for k, h := range []*herd{same, other} {
						if some := h.InLane(h.names[closed], nil); len(some) > 0 {
							h.CloseLane(some[0], LaneBusy)
						}
						c := h.Peek(now, Allowed{Tiers: AllTiers})
						for went[k] = -1; c.Request != nil; c = (Candidate{}) {
							for number, r := range h.requests {
								if r == c.Request {
									went[k] = number
								}
							}
							to := c.Request.Owner.(*sent)
							to.also = nil
							for _, l := range h.LanesOf(c.Request, nil) {
								if name := h.first(l); name != to.lane && (name < "r") == (to.lane < "r") {
									to.also = append(to.also, name)
								}
							}
							h.follow(c.Request)
							h.Pop(c)
						}
						h.OpenLanes()
					}
					if went[0] != went[1] {
						t.Fatalf("discipline %d, seed %d, step %d: request %d goes, and with other names %d", discipline, seed, i,
							went[0], went[1])
					}
					if went[0] >= 0 {
						flying, waiting = append(flying, went[0]), waiting-1
					}
				case n < 11 && len(flying) > 0:
					k := random.IntN(len(flying))
					number, to, how := flying[k], Cost(1+random.IntN(80)), random.IntN(5)
					for _, h := range []*herd{same, other} {
						r := h.requests[number]
						h.follow(r)
						switch how {
						case 0:
							h.Adjust(now, r, to)
						case 1:
							h.Requeue(r)
						default:
							h.TrueUp(now, r, to)
							h.Completed(r)
						}
					}
					if how != 0 {
						flying = slices.Delete(flying, k, k+1)
					}
					if how == 1 {
						waiting++
					} else if how > 1 {
						gone++
					}
				case n == 11:
					names := map[string]Lane{}
					for j, p := range random.Perm(len(lanes)) { // also each other's names
						names[lanes[j]] = Lane(lanes[p] + strings.Repeat("'", random.IntN(2)))
					}
					other.rename(names)
				}
				for _, h := range []*herd{same, other} {
					if err := checkInvariants(h.FairRequestQueue); err != nil {
						t.Fatalf("discipline %d, seed %d, step %d: %v", discipline, seed, i, err)
					}
				}
			}
			if gone < 100 {
				t.Fatalf("only %d requests have ended", gone)
			}
		}
	}
}

// Lanes split and merge at random while requests wait. No request is lost, each has its new lane, the order within a
// flow holds, and a flow keeps its lead or lag from its old lane; from several lanes, its largest lead and largest lag
// count.
func TestRegroupingsAtRandom(t *testing.T) {
	compared := 0
	for _, discipline := range []Discipline{WFQ, VTC, FairShare, OneFlow} {
		for seed := range seeds(40) {
			random := rand.New(rand.NewPCG(seed, 8))
			cfg := DefaultConfig()
			cfg.Discipline, cfg.CapacityMode, cfg.Levels = discipline, Shared, 1+int(seed%2)
			cfg.TotalCapacity, cfg.FlowCapacity = 1000, 1000
			cfg.Tiers = []TierConfig{
				{Name: "high", QueueSize: NoLimit}, {Name: "low", QueueSize: NoLimit, StarvationThreshold: 50 * time.Millisecond},
			}
			ordered := seed%4 != 3
			if !ordered { // lines have rows, and tiers have classes
				cfg.Priorities = true
				cfg.Classes = []ClassConfig{{Name: "p", Quantum: 20, Order: WSPT}, {Name: "q", Quantum: 30}}
			}
			q := queue(t, cfg)
			models := make([]Lane, 9) // the lane of each
			for m := range models {
				models[m] = "0"
			}
			waiting, flying := map[*Request]bool{}, []*Request(nil)
			lane := func(r *Request) Lane { return models[r.Owner.(int)] }
			for i := range 800 {
				now := start.Add(time.Duration(i) * time.Millisecond)
				switch n := random.IntN(12); {
				case n < 5 && len(waiting) < 80:
					r := &Request{
						Flow: string(rune('a' + random.IntN(4))),
						Path: &Path{
							Class: string(rune('p' + random.IntN(2))), Under: []string{string(rune('x' + random.IntN(2)))},
							Strict: random.IntN(2), Priority: random.IntN(3),
						},
						Cost: Cost(1 + random.IntN(40)), Owner: random.IntN(len(models)), Tier: random.IntN(len(cfg.Tiers)),
					}
					r.Lane = lane(r)
					if _, err := q.Push(now, r); err != nil {
						t.Fatal(err)
					}
					waiting[r] = true
				case n < 8:
					c := q.Peek(now, Allowed{Tiers: AllTiers, Promote: true})
					if c.Request == nil {
						break
					}
					for r := range waiting {
						if ordered && r.Lane == c.Request.Lane && r.Flow == c.Request.Flow && r.Tier == c.Request.Tier && r.seq < c.Request.seq &&
							(cfg.Levels == 1 || r.Path.Under[0] == c.Request.Path.Under[0]) {
							t.Fatalf("seed %d: %+v goes before %+v", seed, c.Request, r)
						}
					}
					q.Pop(c)
					delete(waiting, c.Request)
					flying = append(flying, c.Request)
				case n < 10 && len(flying) > 0:
					k := random.IntN(len(flying))
					r := flying[k]
					flying = slices.Delete(flying, k, k+1)
					r.Lane = lane(r)
					if random.IntN(4) == 0 {
						q.Requeue(r)
						waiting[r] = true
					} else {
						q.TrueUp(now, r, Cost(1+random.IntN(80)))
						q.Completed(r)
					}
				case n == 10:
					for _, r := range slices.SortedFunc(maps.Keys(waiting), func(a, b *Request) int { return cmp.Compare(a.seq, b.seq) }) {
						if r.flowLane.parked == 0 && random.IntN(10) == 0 {
							q.ParkFlow(r)
							q.AwaitRoom(r)
						}
					}
				default:
					q.OpenLanes()
					before, parked := leads(q), false
					for r := range waiting {
						parked = parked || r.flowLane.outermost().parked > 0
					}
					changed := regroupsAtRandom(random, models)
					heirs, moves := map[Lane][]Lane{}, []Move(nil)
					for was, of := range changed {
						if len(of) != 1 || of[0] != was {
							heirs[was] = of
						}
					}
					for r := range waiting {
						if to := lane(r); to != r.Lane {
							moves = append(moves, Move{r, to})
						}
					}
					q.Regroup(heirs, moves)
					for r := range waiting {
						if r.Lane != lane(r) || !r.Queued() || r.flowLane.lane.name != r.Lane {
							t.Fatalf("seed %d: %+v waits in lane %q, not %q", seed, r, r.flowLane.lane.name, lane(r))
						}
					}
					if discipline != OneFlow && !parked { // which lifts a flow when it ends
						compared += stayAhead(t, before, leads(q), changed)
					}
					for _, f := range []string{"a", "b", "c", "d"} {
						for _, tier := range q.Tiers() {
							q.UnparkFlow(tier.ID, f)
						}
					}
				}
				if err := checkInvariants(q); err != nil {
					t.Fatalf("discipline %d, seed %d, step %d: %v", discipline, seed, i, err)
				}
				if q.Len() != len(waiting) {
					t.Fatalf("discipline %d, seed %d: %d wait, want %d", discipline, seed, q.Len(), len(waiting))
				}
			}
		}
	}
	if compared < 2000 {
		t.Errorf("only %d leads were compared", compared)
	}
}

// regroupsAtRandom gives some models other lanes, and returns, for each old lane, the new lanes of its models.
func regroupsAtRandom(random *rand.Rand, models []Lane) map[Lane][]Lane {
	changed, most := map[Lane][]Lane{}, 1+random.IntN(4)
	for m, was := range models {
		if random.IntN(3) > 0 {
			models[m] = Lane(fmt.Sprint(random.IntN(most)))
		}
		if !slices.Contains(changed[was], models[m]) {
			changed[was] = append(changed[was], models[m])
		}
	}
	return changed
}

// lead is a flow's lead over the virtual time of a lane in which it waits.
type lead struct {
	flow *flow
	lane Lane
}

// idle is the lane of a lead that says that a flow is known in a lane in which it does not wait.
const idle Lane = "idle"

func leads(q *FairRequestQueue) map[lead]int64 {
	all := map[lead]int64{}
	var visit func(s *siblings)
	visit = func(s *siblings) {
		for f := range s.flows.all() {
			for _, fl := range f.lanes {
				if st := f.in(fl.lane.name); st != nil {
					all[lead{f, fl.lane.name}] = int64(st.start - fl.ownBranch().virtual)
				}
			}
			f.each(func(st *standing) {
				if f.laneOf(st.lane) == nil {
					all[lead{f, idle}] = 1
				}
			})
			if f.under != nil {
				visit(f.under)
			}
		}
	}
	for _, t := range q.tiers {
		for _, c := range t.classes {
			visit(&c.siblings)
		}
	}
	return all
}

// stayAhead checks the leads before and after a regrouping with these heirs of lanes. It returns the number of
// comparable leads.
func stayAhead(t *testing.T, before, after map[lead]int64, changed map[Lane][]Lane) (compared int) {
	t.Helper()
	exact := 0
	for x, is := range after {
		if x.lane == idle {
			continue
		}
		least, most, from := int64(0), int64(0), 0
		for was, of := range changed {
			if led, waited := before[lead{x.flow, was}]; waited && slices.Contains(of, x.lane) {
				least, most, from = min(least, led), max(most, led), from+1
			}
		}
		if from == 0 {
			t.Fatalf("flow %s comes to lane %q from nowhere", x.flow.key, x.lane)
		}
		if is < least {
			t.Fatalf("flow %s is %d ahead in lane %q, and was %d where it comes from", x.flow.key, is, x.lane, least)
		}
		if before[lead{x.flow, idle}] > 0 {
			continue // it may owe something where it did not wait
		}
		if exact++; is != least+most {
			t.Fatalf("flow %s is %d ahead in lane %q, and was %d to %d ahead where it comes from", x.flow.key, is, x.lane, least,
				most)
		}
	}
	return exact
}
