package fairqueue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// manyClasses returns n classes with this quantum.
func manyClasses(n int, quantum Cost) (list []ClassConfig) {
	for i := range n {
		list = append(list, ClassConfig{Name: fmt.Sprint(i), Quantum: quantum})
	}
	return list
}

// If quanta cover costs, a turn visits one or two classes, for any number of classes and waiting ones. Otherwise it
// visits each class with an open head at most twice, however many quanta are missing.
func TestVisitsOfATurn(t *testing.T) {
	const classes64, pops = MaxClasses, 2000
	for _, test := range []struct {
		name    string
		quantum Cost
		cost    Cost
		waiting int // classes, evenly spread
		closed  int // of these, in a closed lane
		actual  Cost
		most    float64 // visits for each pop
	}{
		{"all wait, quanta cover", 100, 100, 64, 0, 0, 4},
		{"all wait, quanta cover ten", 1000, 100, 64, 0, 0, 4},
		{"two wait", 100, 100, 2, 0, 0, 4},
		{"all wait, most in closed lanes", 100, 100, 64, 60, 0, 4},
		{"overestimated", 100, 100, 64, 0, 50, 6},
		{"underestimated", 100, 100, 64, 0, 150, 6},
		{"a quantum of one", 1, 1000, 64, 0, 0, 2*64 + 2},
		{"a quantum of one for two", 1, 1_000_000, 2, 0, 0, 2*2 + 2},
	} {
		for _, cursor := range []Cursor{Stay, Advance} {
			q := classes(t, cursor, manyClasses(classes64, test.quantum)...)
			push := func(class string, closed bool) {
				r := &Request{Path: &Path{Class: class}, Cost: test.cost}
				if closed {
					r.Lane = "full"
				}
				mustPush(t, q, r)
				if closed {
					q.CloseLane(r, LaneFull)
				}
			}
			for i := range test.waiting {
				for range 3 {
					push(fmt.Sprint(i*classes64/test.waiting), i < test.closed)
				}
			}
			q.top.visits = 0
			worst := uint64(0)
			for range pops {
				before := q.top.visits
				r := popNext(q)
				worst = max(worst, q.top.visits-before)
				if test.actual > 0 {
					q.TrueUp(start, r, test.actual)
				}
				q.Completed(r)
				push(r.Path.Class, false)
			}
			if mean := float64(q.top.visits) / pops; mean > test.most {
				t.Errorf("%s, cursor %d: %.1f classes visited for each pop, want at most %.0f", test.name, cursor, mean, test.most)
			}
			if worst > 3*classes64 {
				t.Errorf("%s, cursor %d: %d classes visited for one pop", test.name, cursor, worst)
			}
		}
	}
}

// drrByVisits is deficit round robin by visiting every class in every turn: the caps apply to all, always.
type drrByVisits struct{ drr }

func (d drrByVisits) places(l *level) (i, from int) {
	for n, c := range l.classes {
		if c == l.subject {
			i = n
		}
		if c == l.cursor {
			if from = n; l.stays && c.spent() {
				from = (n + 1) % len(l.classes)
			}
		}
	}
	return i, from
}

func (d drrByVisits) tag(l *level, s *share, head *Request) VirtualTime {
	i, from := d.places(l)
	quanta := int64(0)
	if s.credit < int64(head.Cost) {
		quanta = max(1, l.classes[i].needs(head.Cost))
	}
	if i < from {
		i += len(l.classes)
	}
	return VirtualTime(quanta<<distanceBits | int64(i-from))
}

func (d drrByVisits) charge(l *level, s *share, r *Request, tag VirtualTime, p *receipt) (moved bool) {
	i, _ := d.places(l)
	served, ring := l.classes[i], len(l.classes)
	from := (i + ring - int(tag&(1<<distanceBits-1))) % ring
	p.charged, p.start = VirtualTime(r.Cost), 0
	if !l.claimed && tag>>distanceBits == 0 {
		s.credit -= int64(r.Cost)
		p.start = onCredit
		return true
	}
	if !l.claimed {
		needed := served.needs(r.Cost)
		quanta := max(1, needed)
		for j := range l.classes {
			c := l.classes[(from+j)%ring]
			offer := c.head()
			if l.outOfOrder {
				offer = c.starvedHead()
			}
			switch {
			case c == served:
				if c.earn(needed, r); needed <= 1 {
					quanta = 0
				}
			case offer != nil:
				c.earn(quanta, offer)
			}
		}
	}
	s.deficit = max(s.deficit-int64(r.Cost), -mostOwed)
	s.offset()
	if !l.claimed {
		head := served.head()
		l.cursor, l.stays = served, d.cursor == Stay && head != nil && served.needs(head.Cost) == 0
		if !l.stays {
			l.cursor = l.classes[(i+1)%ring]
		}
	}
	return true
}

// Random arrivals, cancellations, turns, promotions, claims, corrections, requeues, closed lanes and reloads: the
// shortcuts give the same order and accounts as visits to all classes.
func TestTurnsAreThoseOfVisitingAll(t *testing.T) {
	for seed := range seeds(250) {
		random := rand.New(rand.NewPCG(seed, 64))
		cfg := DefaultConfig()
		cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = Shared, 1_000_000, 1_000_000
		cfg.Discipline = []Discipline{OneFlow, WFQ, VTC, FairShare}[seed%4]
		cfg.Tiers = []TierConfig{{Name: "high", QueueSize: NoLimit}, {Name: "low", QueueSize: NoLimit, StarvationThreshold: 3 * time.Second}}
		cfg.PromotionBudget = budgetUnlimited
		configure := func() {
			cfg.Classes, cfg.Cursor = nil, Cursor(random.IntN(2))
			if random.IntN(4) == 0 {
				cfg.Classes = manyClasses(1+random.IntN(3), 10)
				return
			}
			for i := range 2 + random.IntN(70) {
				if i < 5 || random.IntN(3) > 0 && len(cfg.Classes) < MaxClasses {
					cfg.Classes = append(cfg.Classes, ClassConfig{Name: fmt.Sprint(i), Quantum: Cost(1 + random.IntN(100)), Order: Order(random.IntN(3))})
				}
			}
			if seed%5 == 4 {
				for i := range cfg.Classes {
					cfg.Classes[i].Ring = []string{"", "r"}[random.IntN(2)]
				}
			}
			random.Shuffle(len(cfg.Classes), func(i, j int) { cfg.Classes[i], cfg.Classes[j] = cfg.Classes[j], cfg.Classes[i] })
		}
		configure()
		quick, slow := queue(t, cfg), queue(t, cfg)
		literal := func() {
			for _, tier := range slow.tiers {
				for _, r := range tier.rings {
					r.discipline = drrByVisits{drr{cursor: cfg.Cursor}}
				}
			}
		}
		literal()
		type pair struct{ a, b *Request }
		twin := map[*Request]*Request{}
		var waiting, flying []pair
		take := func(list *[]pair) (p pair, some bool) {
			if len(*list) == 0 {
				return p, false
			}
			i := random.IntN(len(*list))
			p = (*list)[i]
			*list = slices.Delete(*list, i, i+1)
			return p, true
		}
		for step := range 400 {
			now := start.Add(time.Duration(step) * time.Second / 4)
			switch op := random.IntN(16); {
			case op < 6:
				r := Request{
					Tier: random.IntN(2), Flow: fmt.Sprint(random.IntN(2)), Lane: []Lane{"", "x"}[random.IntN(2)],
					Path: &Path{Class: fmt.Sprint(random.IntN(12))}, Cost: Cost(1 + random.IntN(300)),
				}
				p := pair{new(Request), new(Request)}
				*p.a, *p.b = r, r
				twin[p.a] = p.b
				_, errA := quick.Push(now, p.a)
				_, errB := slow.Push(now, p.b)
				if errA != nil || errB != nil {
					t.Fatal(errA, errB)
				}
				waiting = append(waiting, p)
			case op < 10:
				allowed := Allowed{Tiers: AllTiers, Promote: random.IntN(2) == 0}
				a, b := quick.Peek(now, allowed), slow.Peek(now, allowed)
				if a.Request == nil && b.Request == nil {
					continue
				}
				if a.Request == nil || twin[a.Request] != b.Request || a.Promoted != b.Promoted {
					t.Fatalf("seed %d, step %d: %+v, want %+v", seed, step, a.Request, b.Request)
				}
				if random.IntN(8) == 0 {
					a, b = quick.Claim(a.Request), slow.Claim(b.Request)
				}
				quick.Pop(a)
				slow.Pop(b)
				waiting = slices.DeleteFunc(waiting, func(p pair) bool { return p.a == a.Request })
				flying = append(flying, pair{a.Request, b.Request})
			case op == 10:
				if p, some := take(&waiting); some {
					quick.Remove(p.a)
					slow.Remove(p.b)
				}
			case op == 11:
				if p, some := take(&flying); some {
					quick.Requeue(p.a)
					slow.Requeue(p.b)
					waiting = append(waiting, p)
				}
			case op == 12:
				if p, some := take(&flying); some {
					to := Cost(1 + random.IntN(600))
					quick.TrueUp(now, p.a, to)
					slow.TrueUp(now, p.b, to)
					if random.IntN(2) == 0 {
						flying = append(flying, p)
						continue
					}
					quick.Completed(p.a)
					slow.Completed(p.b)
				}
			case op == 13:
				if len(waiting) > 0 {
					p, state := waiting[random.IntN(len(waiting))], []LaneState{LaneBusy, LaneFull}[random.IntN(2)]
					quick.CloseLane(p.a, state)
					slow.CloseLane(p.b, state)
				}
			case op == 14:
				quick.OpenLanes()
				slow.OpenLanes()
			case random.IntN(3) == 0:
				configure()
				reconfigure(t, quick, cfg)
				reconfigure(t, slow, cfg)
				literal()
			}
			for i, tier := range quick.tiers {
				for j, c := range tier.classes {
					other := slow.tiers[i].classes[j]
					if step%16 == 0 && c.head() != nil { // the caps may come late, but not too late
						most := int64(c.head().Cost + c.config.Quantum)
						if min(c.deficit, most) != min(other.deficit, most) || c.credit != other.credit {
							t.Fatalf("seed %d, step %d: class %s has %d and %d, want %d and %d", seed, step, c.config.Name, c.deficit, c.credit, other.deficit, other.credit)
						}
					}
				}
			}
			mustHold(t, quick)
		}
	}
}

// A class that has earned for a costly head in a busy lane, in a promoted turn, is capped by its open head in the next turn.
func TestCapAfterAPromotedTurn(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Discipline, cfg.PromotionBudget = OneFlow, budgetUnlimited
	cfg.Classes = []ClassConfig{{Name: "a", Quantum: 10}, {Name: "b", Quantum: 1}, {Name: "c", Quantum: 1}}
	cfg.Tiers = []TierConfig{{Name: "high", QueueSize: NoLimit}, {Name: "low", QueueSize: NoLimit, StarvationThreshold: time.Second}}
	q := queue(t, cfg)
	costly := &Request{Tier: 1, Path: &Path{Class: "a"}, Lane: "x", Cost: 1000}
	mustPush(t, q, costly)
	mustPush(t, q, &Request{Tier: 1, Path: &Path{Class: "a"}, Cost: 1})
	mustPush(t, q, &Request{Tier: 1, Path: &Path{Class: "b"}, Cost: 5})
	q.CloseLane(costly, LaneBusy)
	ofC := func() string {
		mustPush(t, q, &Request{Tier: 1, Path: &Path{Class: "c"}, Cost: 1})
		q.byID[1].rings[0].cursor = q.byID[1].classes[2]
		return popNext(q).Path.Class
	}
	if who := ofC(); who != "c" {
		t.Fatalf("%s went, want c", who)
	}
	late := q.Peek(start.Add(time.Hour), Allowed{Tiers: 0, Promote: true})
	if q.Pop(late); late.Request.Path.Class != "b" || !late.Promoted {
		t.Fatalf("promoted: %+v", late.Request)
	}
	a := q.byID[1].classes[0]
	if a.deficit != 50 {
		t.Fatalf("a has earned %d, want five quanta", a.deficit)
	}
	if who := ofC(); who != "c" || a.deficit != 11 {
		t.Errorf("%s went, and a has %d, want its head and one quantum", who, a.deficit)
	}
}

// A class that shares again has no old credit, and takes no turn by it.
func TestNoTurnByForfeitedCredit(t *testing.T) {
	q := classes(t, Stay, ab(10, 10)...)
	waits(t, q, "a", 10, 1)
	waits(t, q, "a", 5, 2)
	waits(t, q, "b", 10, 1)
	r := popNext(q)
	q.TrueUp(start, r, 1)
	q.Completed(r)
	q.Remove(q.top.classes[1].head())
	if a := q.top.classes[0]; a.credit < int64(a.head().Cost) {
		t.Fatalf("a's credit of %d does not cover its head", a.credit)
	}
	cfg := q.config
	for _, list := range [][]ClassConfig{{{Name: "a", Quantum: 10}}, {{Name: "z", Quantum: 10}, {Name: "a", Quantum: 10}}} {
		cfg.Classes = list
		reconfigure(t, q, cfg)
	}
	waits(t, q, "z", 10, 1)
	if who := goes(t, q, 1); who != "z" {
		t.Errorf("%s goes, want z, which is first in the ring", who)
	}
}
