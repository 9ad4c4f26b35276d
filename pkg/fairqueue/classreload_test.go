package fairqueue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A request is refunded by the class that charged it, wherever a reload has moved the class; the new first class gets
// nothing.
func TestRequeueAfterClassesWereReordered(t *testing.T) {
	q := classes(t, Stay, ab(10, 10)...)
	for range 2 {
		mustPush(t, q, &Request{Cost: 5}) // names no class: the first, a
	}
	waits(t, q, "b", 5, 2)
	r := popNext(q)
	cfg := q.config
	cfg.Classes = []ClassConfig{{Name: "b", Quantum: 10}, {Name: "a", Quantum: 10}}
	reconfigure(t, q, cfg)
	q.Requeue(r)
	b, a := q.top.classes[0], q.top.classes[1]
	if a.deficit != 10 || b.deficit != 0 || a.queued != 2 || b.queued != 2 {
		t.Errorf("a has %d and %d waiters, b has %d and %d: want the quantum of 10 that a has earned, and 0, and two waiters each",
			a.deficit, a.queued, b.deficit, b.queued)
	}
}

// A renamed class is a new one. The old class's charged estimate is not credited to the first class.
func TestTrueUpAfterAClassWasRenamed(t *testing.T) {
	for _, d := range []Discipline{WFQ, VTC, FairShare, OneFlow} {
		cfg := DefaultConfig()
		cfg.Discipline, cfg.Classes = d, ab(10, 10)
		q := queue(t, cfg)
		waits(t, q, "a", 1, 1)
		waits(t, q, "b", 1001, 1)
		popNext(q)
		r := popNext(q)
		waits(t, q, "a", 1, 1)
		cfg.Classes = []ClassConfig{{Name: "a", Quantum: 10}, {Name: "batch", Quantum: 10}}
		reconfigure(t, q, cfg)
		was := credit(q, 0)
		q.TrueUp(start, r, 1)
		if credit(q, 0) != was {
			t.Errorf("discipline %d: a's credit went from %d to %d by a request of b", d, was, credit(q, 0))
		}
		if len(q.top.classes) != 3 {
			t.Fatalf("discipline %d: %d classes, want a, batch, and b with its request in flight", d, len(q.top.classes))
		}
		if b := q.top.classes[2]; b.config.Name != "b" || b.inflight != 1 {
			t.Errorf("discipline %d: %s drains with %d in flight, want b with 1", d, b.config.Name, b.inflight)
		}
		if q.Completed(r); len(q.top.classes) != 2 || q.top.classes[0].inflight != 1 || q.top.classes[1].inflight != 0 {
			t.Errorf("discipline %d: %d classes, of which the first has %d in flight: want 2, and the one of a's own",
				d, len(q.top.classes), q.top.classes[0].inflight)
		}
	}
}

// A new tier may have the identifier of a removed one. The usage of the removed tier's requests does not count there.
func TestLateUsageOfATierWhoseIdentifierIsAnothers(t *testing.T) {
	for _, d := range []Discipline{WFQ, VTC, FairShare} {
		cfg := DefaultConfig()
		cfg.Discipline = d
		cfg.Tiers = []TierConfig{{Name: "high", QueueSize: NoLimit}, {Name: "low", QueueSize: NoLimit}}
		q := queue(t, cfg)
		r := &Request{Tier: 1, Flow: "f", Cost: 1000}
		mustPush(t, q, r)
		q.Completed(popNext(q))
		for _, name := range []string{"", "new"} { // low drains, and then its identifier is another's
			q.Forget(0)
			if cfg.Tiers = cfg.Tiers[:1:1]; name != "" {
				cfg.Tiers = append(cfg.Tiers, TierConfig{Name: name, QueueSize: NoLimit})
			}
			reconfigure(t, q, cfg)
		}
		if id := q.TierID("new"); id != 1 {
			t.Fatalf("the new tier has the identifier %d, want that of the former one", id)
		}
		for range 2 {
			mustPush(t, q, &Request{Tier: 1, Flow: "f", Cost: 10})
		}
		c := q.byID[1].classes[0]
		was := c.flows.find("f").start
		if q.TrueUp(start, r, 1); c.flows.find("f").start != was {
			t.Errorf("discipline %d: the flow in the new tier moved by a request of the former one", d)
		}
	}
}

// reloads is a queue whose configuration changes while requests wait and are in flight, with the test's own accounts.
type reloads struct {
	*testing.T
	random *rand.Rand
	q      *FairRequestQueue
	cfg    Config
	now    time.Time
	flying []*charged
	ended  []*charged // whose cost may still become known
	did    []string
}

// charged is a request charged by a class.
type charged struct {
	r    *Request
	by   *class
	paid Cost // what the class has charged for it now; 0 if it shared its tier with nobody then
}

// TestReloadsKeepAccounts changes the tiers and classes at random between arrivals, dispatches, corrections and ends.
// An event of a request changes only the accounts of the class that charged it, by exactly the difference of its cost.
// A reload changes no account of a class that stays. A class's requests in flight are those it dispatched that have not
// ended. At the end all accounts are empty.
func TestReloadsKeepAccounts(t *testing.T) {
	for seed := range seeds(300) {
		x := &reloads{T: t, random: rand.New(rand.NewPCG(seed, 18)), now: start}
		x.cfg = DefaultConfig()
		x.cfg.Discipline = []Discipline{WFQ, VTC, FairShare, OneFlow}[seed%4]
		x.cfg.FairShare.Window = MaxWindow // time alone changes no account
		x.cfg.TierMode = TierMode(seed / 3 % 2)
		x.cfg.CapacityMode = CapacityMode(seed / 6 % 3)
		x.cfg.TotalCapacity, x.cfg.FlowCapacity = 100_000, 500
		x.configure()
		x.q = queue(t, x.cfg)
		for range 300 {
			x.step()
			x.check()
		}
		x.finish()
	}
}

func (x *reloads) below(n int) int { return x.random.IntN(n) }

func (x *reloads) Fatalf(format string, args ...any) {
	x.Helper()
	for _, line := range x.did[max(0, len(x.did)-30):] {
		x.Log(line)
	}
	x.T.Fatalf(format, args...)
}

func (x *reloads) note(format string, args ...any) {
	x.did = append(x.did, fmt.Sprintf(format, args...))
}

// configure draws tiers and classes: some of a few names, in any order.
func (x *reloads) configure() {
	x.cfg.Tiers, x.cfg.Classes = nil, nil
	for _, i := range x.random.Perm(4)[:1+x.below(3)] {
		x.cfg.Tiers = append(x.cfg.Tiers, TierConfig{Name: []string{"p", "q", "r", "s"}[i], QueueSize: NoLimit, Weight: Weight(1+x.below(3)) * WeightOne})
	}
	for _, i := range x.random.Perm(4)[:x.below(5)] {
		x.cfg.Classes = append(x.cfg.Classes, ClassConfig{
			Name: []string{"a", "b", "c", "d"}[i], Quantum: []Cost{1, 7, 100}[x.below(3)], Order: Order(x.below(2)),
		})
	}
	x.cfg.Cursor, x.cfg.Priorities = Cursor(x.below(2)), x.below(2) == 0
}

func (x *reloads) request() *Request {
	r := &Request{Tier: x.below(5), Flow: []string{"f", "g"}[x.below(2)], Cost: []Cost{1, 5, 50, 1000}[x.below(4)]}
	if class := x.below(5); class > 0 {
		r.Path = &Path{Class: []string{"a", "b", "c", "d"}[class-1], Priority: x.below(3)}
	}
	return r
}

// accountOf returns a class's debt and credit, its flows' state, and its numbers of requests waiting and in flight.
func accountOf(c *class) (numbers []int64) {
	number := func(n int64) { numbers = append(numbers, n) }
	number(c.deficit)
	number(c.credit)
	number(int64(c.queued))
	number(int64(c.inflight))
	describe := func(f *flow) {
		number(int64(len(f.key)))
		number(int64(f.key[0]))
		number(int64(f.inflight))
		c.discipline.describe(&c.level, &f.share, number)
	}
	if _, one := c.discipline.(oneFlow); one {
		return numbers
	}
	for f := range c.flows.all() {
		describe(f)
	}
	idle := slices.SortedFunc(c.flows.idle(), func(f, g *flow) int { return int(f.key[0]) - int(g.key[0]) })
	for _, f := range idle {
		describe(f)
	}
	return numbers
}

// accounts returns the accounts of all classes.
func (x *reloads) accounts() map[*class][]int64 {
	all := map[*class][]int64{}
	for _, t := range x.q.tiers {
		for _, c := range t.classes {
			all[c] = accountOf(c)
		}
	}
	return all
}

// same fails unless all remaining classes have the same account as before, except those that may change.
func (x *reloads) same(before map[*class][]int64, may func(*class) bool) {
	x.Helper()
	for c, now := range x.accounts() {
		if was, there := before[c]; there && !may(c) && !slices.Equal(was, now) {
			x.Fatalf("the account of class %q of tier %s went from %v to %v", c.config.Name, c.tier.config.Name, was, now)
		}
	}
}

// at returns the class in which a request that waits would be charged.
func at(r *Request) *class { return r.flowLane.lane.class }

// concerns applies an event of a request, and checks that the request's class gets back what is no longer charged.
func (x *reloads) concerns(c *charged, to Cost, do func()) {
	x.Helper()
	before, sum, shares := x.accounts(), c.by.deficit+c.by.credit, c.paid > 0 && c.by.ring.shared()
	do()
	x.same(before, func(o *class) bool { return o == c.by })
	if !slices.Contains(c.by.tier.classes, c.by) || !slices.Contains(x.q.tiers, c.by.tier) || !shares {
		return
	}
	if got := c.by.deficit + c.by.credit; c.by.queued > 0 && got != sum+int64(c.paid)-int64(to) {
		x.Fatalf("class %q has %d, want its %d, and %d less %d", c.by.config.Name, got, sum, c.paid, to)
	}
	c.paid = to
}

// someone removes a request from a list.
func (x *reloads) someone(list *[]*charged) *charged {
	if len(*list) == 0 {
		return nil
	}
	i := x.below(len(*list))
	c := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return c
}

func (x *reloads) step() {
	x.now = x.now.Add(time.Second)
	switch x.below(11) {
	case 0, 1, 2:
		r := x.request()
		x.note("push %+v", r.Path)
		if _, err := x.q.Push(x.now, r); err != nil {
			x.Fatalf("%v", err)
		}
	case 3, 4:
		x.pop()
	case 5:
		x.bypass()
	case 6:
		x.requeue()
	case 7:
		x.trueUp()
	case 8:
		if c := x.someone(&x.flying); c != nil {
			x.note("completed, of %q", c.by.config.Name)
			x.concerns(c, c.paid, func() { x.q.Completed(c.r) })
			x.ended = append(x.ended, c)
		}
	case 9:
		if c := x.someone(&x.flying); c != nil {
			x.note("refunded, of %q", c.by.config.Name)
			x.concerns(c, 0, func() { x.q.Refund(x.now, c.r) })
			x.concerns(c, 0, func() { x.q.Completed(c.r) })
		}
	case 10:
		x.reload()
	}
}

func (x *reloads) pop() {
	next := x.q.Peek(x.now, Allowed{Tiers: AllTiers})
	if next.Request == nil {
		return
	}
	if x.below(4) == 0 {
		next = x.q.Claim(next.Request)
	}
	c := &charged{r: next.Request, by: at(next.Request)}
	if c.by.ring.shared() {
		c.paid = c.r.Cost
	}
	x.note("pop of %q", c.by.config.Name)
	before := x.accounts()
	x.q.Pop(next)
	x.same(before, func(o *class) bool { return o.tier == c.by.tier })
	x.flying = append(x.flying, c)
}

func (x *reloads) bypass() {
	r := x.request()
	tier := x.q.tierOf(r.Tier)
	by, before := tier.classOf(r), x.accounts()
	x.note("bypass of %q", by.config.Name)
	x.q.Bypassed(x.now, r)
	x.same(before, func(o *class) bool { return o == by })
	if x.q.bypasses {
		x.flying = append(x.flying, &charged{r: r, by: by})
	}
}

// requeue puts a request back that was popped. It waits in its class, or if that is gone in that of an arrival.
func (x *reloads) requeue() {
	c := x.someone(&x.flying)
	if c == nil || c.r.seq == 0 {
		if c != nil {
			x.flying = append(x.flying, c) // a bypass cannot be requeued
		}
		return
	}
	x.note("requeue of %q", c.by.config.Name)
	before, was, paid := x.accounts(), c.by.deficit+c.by.credit, c.paid
	waited := c.by.queued > 0
	x.q.Requeue(c.r)
	joined := at(c.r)
	there := slices.Contains(c.by.tier.classes, c.by) && slices.Contains(x.q.tiers, c.by.tier)
	if there != (joined == c.by) {
		x.Fatalf("it joined %q of %s", joined.config.Name, joined.tier.config.Name)
	}
	x.same(before, func(o *class) bool { return o == joined })
	if there && waited && paid > 0 && c.by.ring.shared() && c.by.deficit+c.by.credit != was+int64(paid) {
		x.Fatalf("class %q has %d, want its %d and the %d it had charged", c.by.config.Name, c.by.deficit+c.by.credit, was, paid)
	}
	if !there && waited && (joined.deficit != before[joined][0] || joined.credit != before[joined][1]) {
		x.Fatalf("class %q was refunded for one of another", joined.config.Name)
	}
	if x.below(3) == 0 {
		x.note("and cancelled")
		x.q.Remove(c.r)
	}
}

func (x *reloads) trueUp() {
	list := &x.flying
	if x.below(3) == 0 {
		list = &x.ended
	}
	c := x.someone(list)
	if c == nil {
		return
	}
	to := []Cost{1, 40, 2000}[x.below(3)]
	x.note("true up of %q to %d, in flight %t", c.by.config.Name, to, list == &x.flying)
	if x.below(3) == 0 {
		x.concerns(c, max(to, c.paid), func() { x.q.Adjust(x.now, c.r, to) })
	} else {
		x.concerns(c, to, func() { x.q.TrueUp(x.now, c.r, to) })
	}
	if list == &x.flying {
		x.flying = append(x.flying, c)
	}
}

func (x *reloads) reload() {
	x.configure()
	x.note("reload: tiers %v, classes %v", x.cfg.Tiers, x.cfg.Classes)
	inUse := TierSet(0)
	for _, c := range x.flying {
		inUse = inUse.With(c.r.Tier)
	}
	before, alone := x.accounts(), map[*tier]bool{}
	for _, t := range x.q.tiers {
		alone[t] = len(t.classes) == 1
	}
	x.q.Forget(inUse)
	x.same(before, func(*class) bool { return false })
	if err := x.q.Reconfigure(x.cfg); err != nil {
		x.Fatalf("%v", err)
	}
	x.same(before, func(c *class) bool { return alone[c.tier] }) // a tier's only class has no account with the others
}

// check compares the queue's requests in flight with the test's.
func (x *reloads) check() {
	x.Helper()
	if err := checkInvariants(x.q); err != nil {
		x.Fatalf("%v", err)
	}
	flying := map[*class]int{}
	for _, c := range x.flying {
		flying[c.by]++
	}
	sum := 0
	for _, t := range x.q.tiers {
		for _, c := range t.classes {
			if c.inflight != flying[c] {
				x.Fatalf("class %q of tier %s has %d in flight, want %d", c.config.Name, t.config.Name, c.inflight, flying[c])
			}
			sum += c.inflight
		}
	}
	if sum != len(x.flying) {
		x.Fatalf("the classes have %d in flight, want %d", sum, len(x.flying))
	}
}

// finish ends all requests, and checks that all accounts are empty.
func (x *reloads) finish() {
	for x.q.Len() > 0 {
		x.pop()
	}
	for _, c := range x.flying {
		x.q.TrueUp(x.now, c.r, c.r.Cost)
		x.q.Completed(c.r)
	}
	x.flying = nil
	x.q.Forget(0)
	x.check()
	if n := len(x.q.tiers); n != len(x.cfg.Tiers) {
		x.Fatalf("%d tiers are left of %d", n, len(x.cfg.Tiers))
	}
	for _, t := range x.q.tiers {
		if len(t.classes) != max(1, len(x.cfg.Classes)) || t.reserved != 0 || t.deficit != 0 || t.queued != 0 {
			x.Fatalf("tier %s: %d classes, %d reserved, deficit %d", t.config.Name, len(t.classes), t.reserved, t.deficit)
		}
		for _, c := range t.classes {
			if c.queued != 0 || c.inflight != 0 || len(c.lanes) != 0 || c.flows.len() != 0 || c.weights != 0 {
				x.Fatalf("class %q of tier %s is not empty", c.config.Name, t.config.Name)
			}
		}
	}
}
