package fairqueue

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// FuzzQueue runs a sequence of operations on the queue and on the oracle, requires equal answers, and checks every
// invariant after each step. The first bytes are the configuration, the others the operations. Virtual time starts at
// the offset, so that the sequences also cross its rollover.
func FuzzQueue(f *testing.F) {
	for seed := range uint64(24) {
		f.Add(randomBytes(seed, 200), seed<<60-50<<virtualBits)
	}
	f.Fuzz(func(t *testing.T, data []byte, offset uint64) { newDuel(t, data, offset).run() })
}

// TestQueueAgainstOracle does what FuzzQueue does, with many long random sequences.
func TestQueueAgainstOracle(t *testing.T) {
	for seed := range seeds(1500) {
		newDuel(t, randomBytes(seed+1000, 700), seed<<60-50<<virtualBits).run()
	}
}

// seeds returns n, or a twentieth of it with -short, as in `make test`: `make depth` tries all.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return (n + 19) / 20
	}
	return n
}

func randomBytes(seed uint64, n int) []byte {
	random, data := rand.New(rand.NewPCG(seed, 0)), make([]byte, n)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

// duel is a queue and an oracle that get the same calls.
type duel struct {
	testing.TB
	data     []byte
	offset   uint64
	matching bool // requests take others' turns
	taken    int  // and have
	q        *FairRequestQueue
	o        *oracle
	now      time.Time
	audit    audit
	waiters  map[*Request]*waiter
	popped   []*waiter
	complete []*waiter
	offered  int
	ended    int // refused, displaced, cancelled, expired, complete
	history  []string
}

func newDuel(t testing.TB, data []byte, offset uint64) *duel { return begin(t, data, offset, false) }

func begin(t testing.TB, data []byte, offset uint64, matching bool) *duel {
	d := &duel{TB: t, data: data, offset: offset, matching: matching, now: time.Unix(1_700_000_000, 0), waiters: map[*Request]*waiter{}}
	cfg := d.config(Config{
		CapacityMode: CapacityMode(d.below(3)), TierMode: TierMode(d.below(4) / 3), Discipline: choose(d, WFQ, WFQ, WFQ, WFQ, VTC, VTC, VTC, OneFlow, FairShare, FairShare, FairShare),
	})
	q, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, tier := range q.tiers {
		tier.classes[0].virtual = VirtualTime(offset)
	}
	d.q, d.o = q, newOracle(cfg)
	return d
}

// below returns the next byte of the data as a number below n, or 0 at the end of the data.
func (d *duel) below(n int) int {
	if len(d.data) == 0 {
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return int(b) % n
}

// path names the role of a request, or nothing.
func (d *duel) path() *Path {
	if role := choose(d, "", "", "s", "t", "u", "unknown"); role != "" {
		return &Path{Role: role}
	}
	return nil
}

func choose[T any](d *duel, from ...T) T { return from[d.below(len(from))] }

// config draws the part of a configuration that can change at run time.
func (d *duel) config(cfg Config) Config {
	cfg.TotalCapacity = 1 + d.below(14)
	cfg.FlowCapacity = 1 + d.below(cfg.TotalCapacity)
	cfg.FlowCapacities = map[string]int{"a": 1 + d.below(cfg.TotalCapacity)}
	cfg.QueueTTL = time.Duration(5+d.below(60)) * time.Second
	cfg.Weights = map[string]Weight{"b": choose[Weight](d, 1, 2, 3, 4) * WeightOne, "c": choose[Weight](d, 250_000, 1_500_000, 7*WeightOne)}
	if d.below(2) == 0 {
		cfg.Roles = map[string]RoleConfig{"s": {}, "t": {Weight: 2 * WeightOne}, "u": {Weight: choose[Weight](d, 250_000, 5*WeightOne)}}
	}
	cfg.PromotionBudget = choose[int64](d, 100_000, 0, 500_000, 1_000_000)
	cfg.GuaranteedTop = d.below(2) == 0
	cfg.TieBreak = choose(d, ByArrival, NewcomerFirst)
	if cfg.Discipline == FairShare {
		cfg.FairShare = FairShareConfig{
			Window: choose[time.Duration](d, 5, 30, 300) * time.Second, Threshold: choose[int64](d, 500_000, 500_000, 700_000),
			WaitBonus: choose[int64](d, 0, 100_000, 3_333_333, MaxWaitBonus), BurstRate: 100, BurstCap: 1000, BurstDecay: 500_000,
		}
	}
	if d.matching {
		cfg.Order = choose(d, Locality, Locality, FCFS)
		if cfg.LocalityQuantum = choose[Cost](d, 0, 1, 3, 20, 1000); cfg.Discipline == OneFlow {
			cfg.LocalityQuantum = 0
		}
		cfg.FlowCapacities = nil
		cfg.TotalCapacity, cfg.FlowCapacity, cfg.QueueTTL = cfg.TotalCapacity+20, cfg.FlowCapacity+20, cfg.QueueTTL+time.Hour
	}
	cfg.Tiers = nil
	names := []string{"system", "high", "middle", "low", "bulk"}
	for first, n := d.below(3), 1+d.below(3); n > 0; n-- {
		cfg.Tiers = append(cfg.Tiers, TierConfig{
			Name: names[first], Weight: choose[Weight](d, 0, 70, 20, 10) * WeightOne,
			QueueSize:           choose(d, -1, -1, -1, 0, 2, 5),
			QueueTimeout:        choose[time.Duration](d, 0, 0, 9, 40) * time.Second,
			StarvationThreshold: choose[time.Duration](d, 0, 2, 6) * time.Second,
		})
		first++
	}
	return cfg
}

func (d *duel) run() {
	for step := 0; len(d.data) > 0; step++ {
		d.step()
		d.audit.check(d, d.q)
		d.compare()
	}
}

// Helper, Fatalf and the like call those of the test; a failure also prints the history.
func (d *duel) Fatalf(format string, args ...any) {
	d.TB.Helper()
	for _, line := range d.history[max(0, len(d.history)-60):] {
		d.TB.Log(line)
	}
	d.TB.Fatalf(format, args...)
}

func (d *duel) note(format string, args ...any) {
	d.history = append(d.history, fmt.Sprintf(format, args...))
}

// compare calls every query on both.
func (d *duel) compare() {
	d.TB.Helper()
	queued, flows := 0, 0
	for i, t := range d.q.Tiers() {
		u := d.o.tiers[i]
		if t.ID != u.id || t.Name != u.cfg.Name || t.Removed != u.removed || t.Queued != len(d.o.ofTier(u)) {
			d.Fatalf("tier %+v at %d, want %s, removed %t, %d queued", t, i, u.cfg.Name, u.removed, len(d.o.ofTier(u)))
		}
		tier := d.q.byID[t.ID]
		if got := int64(tier.classes[0].virtual - VirtualTime(d.offset)); got != u.virtual {
			d.Fatalf("virtual time %d of %s, want %d", got, t.Name, u.virtual)
		}
		if tier.deficit != u.deficit {
			d.Fatalf("deficit %d of %s, want %d", tier.deficit, t.Name, u.deficit)
		}
		for f := range tier.classes[0].flows.all() {
			for _, fl := range f.lanes {
				lane := fl.lane.name
				if d.o.cfg.Discipline == OneFlow {
					continue
				}
				got := int64(f.in(lane).start - VirtualTime(d.offset))
				if g := u.flows[f.key]; d.o.cfg.Discipline == WFQ && got != g.place(lane).start {
					d.Fatalf("start %d of %s in lane %q of %s, want %d", got, f.key, lane, t.Name, g.place(lane).start)
				}
				if a := u.account(f.key, lane); d.o.vtc() && got != a.counter {
					d.Fatalf("counter %d of %s in lane %q of %s, want %d", got, f.key, lane, t.Name, a.counter)
				}
			}
		}
		queued, flows = queued+t.Queued, flows+len(u.flows)
	}
	if d.q.Len() != queued || d.q.Len() != len(d.o.waiting) || d.q.Flows() != flows {
		d.Fatalf("%d queued of %d flows, want %d of %d", d.q.Len(), d.q.Flows(), len(d.o.waiting), flows)
	}
	if d.offered != queued+len(d.popped)+d.ended {
		d.Fatalf("offered %d, queued %d, in flight %d, ended %d", d.offered, queued, len(d.popped), d.ended)
	}
	for _, w := range d.o.waiting {
		if !w.r.Queued() || d.q.Arrived(w.r) != w.arrived || d.q.epoch.Add(w.r.due) != w.expires {
			d.Fatalf("request %d: queued %t, arrived %v, expires %v; want %+v", w.seq, w.r.Queued(), d.q.Arrived(w.r), d.q.epoch.Add(w.r.due), w)
		}
	}
	left, ok := d.q.UntilStarvation(d.now)
	if want, wantOK := d.o.nextStarvation(d.now); ok != wantOK || ok && d.now.Add(left) != want {
		d.Fatalf("next starvation in %v %t, want %v %t", left, ok, want, wantOK)
	}
	for id := range 6 {
		for _, promote := range []bool{false, true} {
			got, starved := d.q.MayBypass(d.now, &Request{Tier: id}, promote)
			want, age := d.o.mayBypass(d.now, id, promote)
			if got != want {
				d.Fatalf("bypass of tier %d, promote %t: %t, want %t", id, promote, got, want)
			}
			d.same("the one whose age keeps an arrival from passing", starved, age)
		}
	}
}
