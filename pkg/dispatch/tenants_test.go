package dispatch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// unable disables preemption in all tiers.
func unable(c *Config) {
	for i := range c.Tiers {
		c.Tiers[i].CanPreempt = false
	}
}

// Three tiers and a cap of 2 per tenant: 2 of a tenant's requests are in flight, not 6, in total and at each endpoint, in
// both modes of the tiers and over classes. As one ends, the tenant's next goes, of the highest tier first.
func TestCapsCountTheTenantOverItsTiers(t *testing.T) {
	caps := map[string]func(*Config){
		"in total":       func(c *Config) { c.MaxInFlightPerFlow = 2 },
		"at an endpoint": func(c *Config) { c.MaxInFlightPerFlowPerBackend = 2 },
		"tokens":         func(c *Config) { c.MaxTokensInFlightPerFlow = 2 },
		"tokens at an endpoint": func(c *Config) {
			c.MaxTokensInFlightPerFlowPerBackend = 2
			c.Stock.Tokens = stock.TokensConfig{Watermark: 1000}
		},
	}
	modes := map[string]func(*Config){
		"strict": func(*Config) {},
		"weighted": func(c *Config) {
			c.Queue.TierMode = fairqueue.Weighted
			for i := range c.Queue.Tiers {
				c.Queue.Tiers[i].Weight = fairqueue.WeightOne
			}
		},
		"classes": func(c *Config) {
			c.Queue.Classes = []fairqueue.ClassConfig{{Name: "x", Quantum: 2}, {Name: "y", Quantum: 1}}
		},
		"vtc": func(c *Config) { c.Queue.Discipline = fairqueue.VTC },
	}
	for name, caps := range caps {
		for mode, change := range modes {
			t.Run(name+", "+mode, func(t *testing.T) {
				b := newBench(t, []int{9}, func(c *Config) {
					perBackend(c, 9, 9)
					unable(c)
					caps(c)
					change(c)
				})
				b.fleet.scene = &scene{lower: 9, upper: 9}
				var all []*Waiter
				for i := range 12 {
					w := new(Waiter)
					a := Arrival{Flow: "a", Tier: 2 - i%3, Placement: reach(""), Path: &fairqueue.Path{Class: []string{"x", "y"}[i/3%2]}}
					b.event(func() { b.Arrive(b.clock, w, a) })
					all = append(all, w)
				}
				flies := func(w *Waiter) bool { return w.Lease() != nil }
				other := b.arrives(2, "b", "", StageSent) // nobody waits behind a tenant at its cap
				for left := 12; left > 0; left-- {
					n := 0
					for _, w := range all {
						if flies(w) {
							n++
						}
					}
					if n != min(2, left) {
						t.Fatalf("%d in flight of %d", n, left)
					}
					b.complete(all[slices.IndexFunc(all, flies)])
				}
				b.complete(other)
				b.nothing("at the end")
			})
		}
	}
}

// A waiter at its tenant's cap takes over a lease of its tenant as soon as it can: here the pool is over its capacity
// first. If its client has gone by then, the next one of its flow does.
func TestAWaiterTakesItsTenantsLeaseOnceItCan(t *testing.T) {
	for _, gone := range []bool{false, true} {
		b := newBench(t, []int{2}, func(c *Config) { perBackend(c, 2, 2); c.MaxInFlightPerFlow = 1 })
		b.fleet.scene = &scene{lower: 2, upper: 2}
		low, other := b.arrives(2, "a", "", StageSent), b.arrives(2, "b", "", StageSent)
		b.fleet.set([]int{1})
		b.event(func() { b.SetBackends(b.clock, []stock.Backend{{ID: 0, Slots: 1}}, nil) })
		first, second := b.arrives(0, "a", "", StageWaiting), b.arrives(0, "a", "", StageWaiting)
		b.Complete(b.clock, other.Granted(), fairqueue.UnknownCost)
		if b.Preemptor() != first {
			t.Fatal("the first one does not preempt")
		}
		if gone {
			b.PreemptorGone(b.clock, OutcomeClientCancelled)
			first = second
		}
		if b.Preemptor() != nil {
			b.Preempt(b.clock)
		}
		b.want(first, StageGranted)
		b.want(low, StageEnded)
		b.complete(first)
		if !gone {
			b.complete(second)
		}
		b.nothing("at the end")
	}
}

// member is a request of a random run.
type member struct {
	*Waiter
	lane []int
	flew bool
}

// lives are requests of tenants in several tiers, classes and lanes, with random caps.
type lives struct {
	*shared
	t   *testing.T
	all []*member
}

// held returns a tenant's leases at an endpoint, or anywhere (-1), without one request.
func (x *lives) held(tenant string, e int, without *Waiter) (h holding) {
	for _, l := range x.all {
		if l.Lease() != nil && l.Waiter != without && l.Flow() == tenant && (e < 0 || int(l.Lease().Endpoint()) == e) {
			h.requests++
			h.tokens += l.Tokens()
		}
	}
	return h
}

// at is the number of leases at an endpoint, where more may be than its bound of 6: Envoy has moved some there.
func (x *lives) at(e Endpoint) (n int) {
	for _, l := range x.all {
		if l.Lease() != nil && l.Lease().Endpoint() == e {
			n++
		}
	}
	return n
}

// capsLet reports whether the caps let a tenant have one more request at an endpoint if one of its own was not there.
func (x *lives) capsLet(tenant string, e int, without *Waiter) bool {
	cfg := x.Config()
	total, there := x.held(tenant, -1, without), x.held(tenant, e, without)
	return (total.requests == 0 || total.below(holding{cfg.MaxInFlightPerFlow, cfg.MaxTokensInFlightPerFlow})) &&
		(there.requests == 0 || there.below(holding{requests: cfg.MaxInFlightPerFlowPerBackend}))
}

// below reports whether a granted request found its tenant below its caps in requests. (In tokens that depends on the
// order of requests granted together.)
func (x *lives) below(w *member) bool {
	cfg, e := x.Config(), int(w.Lease().Endpoint())
	return x.held(w.Flow(), -1, w.Waiter).below(holding{requests: cfg.MaxInFlightPerFlow}) &&
		x.held(w.Flow(), e, w.Waiter).below(holding{requests: cfg.MaxInFlightPerFlowPerBackend})
}

// follow checks the results of an event.
func (x *lives) follow() {
	for _, w := range x.all {
		if flies := w.Lease() != nil; flies != w.flew {
			if w.flew = flies; flies && !x.below(w) {
				x.t.Fatalf("a request of tenant %s goes to %d, beyond its caps", w.Flow(), w.Lease().Endpoint())
			}
		}
		if w.Stage() != StageWaiting {
			continue
		}
		for _, v := range x.all {
			if v.Lease() != nil && v.Flow() == w.Flow() && v.Tier() > w.Tier() && v.Lease().victimIndex > 0 &&
				slices.Contains(w.lane, int(v.Lease().Endpoint())) && x.at(v.Lease().Endpoint()) <= 6 && x.capsLet(w.Flow(), int(v.Lease().Endpoint()), v.Waiter) {
				x.t.Fatalf("%s waits in tier %d, and could take its lease of tier %d at %d", w.Flow(), w.Tier(), v.Tier(), v.Lease().Endpoint())
			}
		}
	}
}

// For any tiers, classes, lanes, caps and reloads: no tenant exceeds its caps, and none waits beside its own lease that
// it could take over.
func TestCapsOfTenantsInRandomLives(t *testing.T) {
	preempted := uint64(0)
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 111))
			change := func(c *Config) {
				threeTiers(c, 100_000)
				perBackend(c, 6, 6)
				if seed%3 == 0 {
					c.Queue.Discipline = fairqueue.VTC
				}
				if seed%4 == 0 {
					c.Queue.Classes = []fairqueue.ClassConfig{{Name: "x", Quantum: 2}, {Name: "y", Quantum: 1}}
				}
				if c.MaxInFlightPerFlow = r.IntN(4); seed%2 == 0 { // what was taken without a cap there does not count
					c.MaxInFlightPerFlowPerBackend = 1 + r.IntN(2)
				}
				c.MaxTokensInFlightPerFlow = max(0, stock.Tokens(r.IntN(40)-15))
			}
			x := &lives{shared: newShared(t, 3, 6, change), t: t}
			some := func() *member { return x.all[r.IntN(len(x.all))] }
			for range 300 {
				switch n := r.IntN(20); {
				case n < 10 || len(x.all) == 0:
					w := &member{Waiter: new(Waiter), lane: [][]int{{0, 1, 2}, {0}, {1, 2}}[r.IntN(3)]}
					x.all = append(x.all, w)
					x.Arrive(x.clock, w.Waiter, Arrival{
						Flow: string(rune('a' + r.IntN(3))), Tier: r.IntN(3), Tokens: stock.Tokens(1 + r.IntN(9)),
						Placement: x.placement(w.lane...), Path: &fairqueue.Path{Class: []string{"x", "y"}[r.IntN(2)]},
					})
				case n < 16:
					w := some()
					x.Told(w.Waiter)
					x.Complete(x.clock, w.Granted(), fairqueue.UnknownCost)
				case n == 16:
					x.Cancel(x.clock, some().Waiter, OutcomeClientCancelled)
				case n == 17:
					x.TrueUp(x.clock, some().Granted(), 1, stock.Tokens(1+r.IntN(9)))
				case n == 18:
					x.ServedElsewhere(x.clock, some().Granted(), Endpoint(r.IntN(3)), 200)
				default:
					cfg := x.Config()
					change(&cfg)
					if err := x.Configure(x.clock, cfg); err != nil {
						t.Fatal(err)
					}
				}
				for x.Preemptor() != nil {
					if r.IntN(4) == 0 {
						x.PreemptorGone(x.clock, OutcomeClientCancelled)
					} else {
						x.Preempt(x.clock)
					}
				}
				x.follow()
				for _, w := range x.all {
					x.Told(w.Waiter)
				}
			}
			for _, w := range x.all {
				x.Cancel(x.clock, w.Waiter, OutcomeClientCancelled)
				x.Complete(x.clock, w.Granted(), fairqueue.UnknownCost)
				for x.Preemptor() != nil {
					x.Preempt(x.clock)
				}
			}
			for _, n := range x.Preemptions() {
				preempted += n
			}
		})
	}
	if preempted < 100 {
		t.Errorf("%d preemptions: too few to show anything", preempted)
	}
}
