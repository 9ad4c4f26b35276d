package fairqueue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A tenant with ten users gets no more than one with a single user, and each of the ten gets the same. With weights,
// tenants get shares in proportion, and so do their users.
func TestTenantOverUser(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Levels, cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = 2, Shared, 10_000, 10_000
	cfg.Weights = map[string]Weight{"heavy": 2 * WeightOne}
	q := queue(t, cfg)
	for range 400 {
		mustPush(t, q, of("alone", "u"))
		mustPush(t, q, of("heavy", "u"))
		for user := range 10 {
			mustPush(t, q, of("crowd", fmt.Sprint(user)))
		}
	}
	served := map[string]int{}
	for range 800 {
		r := popNext(q)
		served[r.Flow]++
		served[r.Flow+"/"+r.Path.Under[0]]++
	}
	if served["alone"] != 200 || served["crowd"] != 200 || served["heavy"] != 400 {
		t.Errorf("served: %v, want 200, 200 and 400 of the tenants", served)
	}
	for user := range 10 {
		if n := served[fmt.Sprint("crowd/", user)]; n != 20 {
			t.Errorf("user %d of the crowd: %d, want 20", user, n)
		}
	}
}

// In a full queue, the tenant with the most places loses one, and among its users the one with the most. A user of that
// tenant displaces another of the same tenant, and no other tenant's.
func TestUserGivesUpAPlace(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Levels, cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = 2, Shared, 12, 12
	q := queue(t, cfg)
	for range 2 {
		mustPush(t, q, of("big", "modest"))
		mustPush(t, q, of("small", "u"))
	}
	for range 8 {
		mustPush(t, q, of("big", "noisy"))
	}
	for _, c := range []struct{ tenant, user, gone string }{
		{"small", "u", "noisy"}, {"big", "modest", "noisy"}, {"big", "noisy", ""}, {"new", "u", "noisy"},
	} {
		displaced, err := q.Push(start, of(c.tenant, c.user))
		switch {
		case c.gone == "" && err == nil:
			t.Errorf("%s/%s entered a full queue", c.tenant, c.user)
		case c.gone != "" && (displaced == nil || displaced.Flow != "big" || displaced.Path.Under[0] != c.gone):
			t.Errorf("%s/%s: displaced %+v, %v, want one of big/%s", c.tenant, c.user, displaced, err, c.gone)
		}
	}
	mustHold(t, q)
}

func of(path ...string) *Request {
	return &Request{Flow: path[0], Path: &Path{Under: path[1:]}, Cost: 1}
}

// sharer is a node of a naive tree of sharers. It has a start in each lane, and a virtual time for the sharers below it in
// each lane with waiters. Classes know no lanes: theirs are all in "".
type sharer struct {
	start   map[Lane]int64
	virtual map[Lane]int64
	latest  int64 // of the virtual times
	weight  int64
	under   map[string]*sharer
}

func newSharer(weight int64) *sharer {
	return &sharer{weight: weight, start: map[Lane]int64{}, virtual: map[Lane]int64{}, under: map[string]*sharer{}}
}

// tree is a second implementation of the fair queue with levels, without data structures: classes, tenants, users and
// their devices are all nodes, and every question is answered by visiting all waiters.
type tree struct {
	root    *sharer
	waiting []*Request
	paths   map[*Request][]string
	closed  map[[2]string]bool // by class and lane
}

// at returns the sharer of a path.
func (o *tree) at(path []string) *sharer {
	s := o.root
	for _, key := range path {
		if s.under[key] == nil {
			s.under[key] = newSharer(1)
			if s == o.root || key == "heavy" {
				s.under[key].weight = map[string]int64{"gold": 3, "iron": 1, "heavy": 2}[key]
			}
		}
		s = s.under[key]
	}
	return s
}

// among returns the waiters below a path.
func (o *tree) among(path []string) (some []*Request) {
	for _, r := range o.waiting {
		if slices.Equal(o.paths[r][:len(path)], path) {
			some = append(some, r)
		}
	}
	return some
}

// next returns the waiter that goes next below a path, in the lanes for which may is true: at each level the least
// finish tag, and of equal ones the first arrival.
func (o *tree) next(path []string, may func(*Request) bool) (best *Request, least int64) {
	keys := map[string]bool{}
	for _, r := range o.among(path) {
		if len(path) == len(o.paths[r]) {
			if may(r) {
				return r, 0
			}
			continue
		}
		key := o.paths[r][len(path)]
		if keys[key] {
			continue
		}
		keys[key] = true
		below := append(slices.Clone(path), key)
		head, _ := o.next(below, may)
		if len(path) == 0 {
			head = o.firstLane(below, may)
		}
		if head == nil {
			continue
		}
		s := o.at(below)
		tag := s.start[laneAt(len(path), head)] + int64(head.Cost)*(1<<20)/s.weight
		if best == nil || tag < least || tag == least && head.seq < best.seq {
			best, least = head, tag
		}
	}
	return best, least
}

// firstLane returns the waiter of a class that goes next: of the heads of its lanes the one with the least tag.
func (o *tree) firstLane(class []string, may func(*Request) bool) (best *Request) {
	var least int64
	for _, lane := range []Lane{"", "x", "y"} {
		head, tag := o.next(class, func(r *Request) bool { return r.Lane == lane && may(r) })
		if head != nil && (best == nil || tag < least || tag == least && head.seq < best.seq) {
			best, least = head, tag
		}
	}
	return best
}

// laneAt returns the lane in which r is ordered at a depth.
func laneAt(depth int, r *Request) Lane {
	if depth == 0 {
		return ""
	}
	return r.Lane
}

// leave removes r.
func (o *tree) leave(r *Request) {
	o.waiting = slices.DeleteFunc(o.waiting, func(w *Request) bool { return w == r })
	class := o.paths[r][:1]
	if !o.waitsIn(class, r.Lane) {
		delete(o.closed, [2]string{class[0], string(r.Lane)})
	}
}

// waitsIn reports whether anybody waits below a path in a lane.
func (o *tree) waitsIn(path []string, lane Lane) bool {
	return slices.ContainsFunc(o.among(path), func(w *Request) bool { return laneAt(len(path), w) == lane })
}

// enter adds a waiter. A lane without waiters starts at its level's latest virtual time, and a sharer without waiters
// in a lane starts at least at the lane's virtual time.
func (o *tree) enter(r *Request, path []string) {
	for n := range path {
		level, s, lane := o.at(path[:n]), o.at(path[:n+1]), laneAt(n, r)
		if n == 0 {
			if len(o.among(path[:1])) == 0 {
				s.start[""] = level.virtual[""]
			}
			continue
		}
		if !o.waitsIn(path[:n], lane) {
			level.virtual[lane] = level.latest
		}
		if !o.waitsIn(path[:n+1], lane) {
			s.start[lane] = max(s.start[lane], level.virtual[lane])
		}
	}
	o.paths[r] = path
	o.waiting = append(o.waiting, r)
}

// pop charges all sharers on the path of r in its lane, and in the other lanes where they wait.
func (o *tree) pop(r *Request) {
	path := o.paths[r]
	for n := range path {
		level, s, lane := o.at(path[:n]), o.at(path[:n+1]), laneAt(n, r)
		by := int64(r.Cost) * (1 << 20) / s.weight
		for _, other := range r.also() {
			if n > 0 && other != lane && o.waitsIn(path[:n+1], other) {
				s.start[other] += by
			}
		}
		s.start[lane] += by
		level.virtual[lane] = max(level.virtual[lane], s.start[lane])
		level.latest = max(level.latest, level.virtual[lane])
		s.start[lane] = level.virtual[lane]
	}
	o.leave(r)
}

// Random pushes, pops, cancellations and closed lanes, in two classes with paths of one to three flows, give the same
// order as the naive tree.
func TestLevelsAgainstOracle(t *testing.T) {
	for seed := range uint64(240) {
		random := rand.New(rand.NewPCG(seed, 11))
		levels := 1 + int(seed%3)
		cfg := DefaultConfig()
		cfg.Levels, cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = levels, CapacityMode(seed/3%2), 1000, 100
		cfg.Weights = map[string]Weight{"heavy": 2 * WeightOne}
		cfg.Classes = []ClassConfig{{Name: "gold", Quantum: 3}, {Name: "iron", Quantum: 1}}[:1+seed/6%2]
		q := queue(t, cfg)
		asWFQ(q)
		o := &tree{
			root: newSharer(1), paths: map[*Request][]string{}, closed: map[[2]string]bool{},
		}
		may := func(r *Request) bool { return !o.closed[[2]string{o.paths[r][0], string(r.Lane)}] }
		var audit audit
		for step := range 250 {
			switch op := random.IntN(12); {
			case op < 6:
				path := []string{"gold", []string{"heavy", "light"}[random.IntN(2)], fmt.Sprint(random.IntN(3)), fmt.Sprint(random.IntN(2))}
				if len(cfg.Classes) > 1 && random.IntN(2) == 0 {
					path[0] = "iron"
				}
				r := &Request{
					Flow: path[1], Path: &Path{Class: path[0], Under: path[2:]}, Cost: Cost(1 + random.IntN(9)),
					Lane: []Lane{"", "", "x", "y"}[random.IntN(4)],
				}
				mustPush(t, q, r)
				o.enter(r, path[:1+levels])
			case op < 9:
				want, _ := o.next(nil, may)
				if want != nil {
					want.CountAlsoIn([][]Lane{nil, {"", "y"}, {"x", "y"}}[random.IntN(3)])
				}
				if got := popNext(q); got != want {
					t.Fatalf("sequence %d, step %d: popped %v, want %v", seed, step, o.paths[got], o.paths[want])
				}
				if want != nil {
					o.pop(want)
				}
			case op < 10 && len(o.waiting) > 0:
				r := o.waiting[random.IntN(len(o.waiting))]
				q.Remove(r)
				o.leave(r)
			case op < 11 && len(o.waiting) > 0:
				r := o.waiting[random.IntN(len(o.waiting))]
				q.CloseLane(r, LaneFull)
				o.closed[[2]string{o.paths[r][0], string(r.Lane)}] = true
			case op == 11:
				q.OpenLanes()
				clear(o.closed)
			}
			audit.check(t, q)
		}
	}
}

// asWFQ makes the classes share by finish tags, like the flows.
func asWFQ(q *FairRequestQueue) {
	for _, t := range q.tiers {
		for _, r := range t.rings {
			r.discipline = byFinish{}
		}
	}
}

// byFinish is wfq for sharers that know no lanes.
type byFinish struct{ costsKnown }

func (byFinish) begin(l *level, s *share) { s.start = l.virtual }

func (byFinish) tag(_ *level, s *share, head *Request) VirtualTime {
	return s.start + increment(head.Cost, s.weight)
}

func (byFinish) charge(l *level, s *share, _ *Request, tag VirtualTime, _ *receipt) (moved bool) {
	l.virtual = l.virtual.later(tag)
	s.start = l.virtual
	return true
}

func (byFinish) refund(*level, *share, *Request, *receipt) (moved bool) { return false }

func (byFinish) freshen(*level, *share) (moved bool) { return false }

func (byFinish) describe(*level, *share, func(int64)) {}

func (byFinish) describeReceipt(*level, *receipt, func(int64)) {}
