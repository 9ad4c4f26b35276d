package dispatch_test

import (
	"slices"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// smallerThan returns scenes smaller than s, the much smaller ones first.
func smallerThan(s *scene) (all []*scene) {
	add := func(change func(*scene)) {
		c := *s
		c.loads, c.changes, c.pool = slices.Clone(s.loads), slices.Clone(s.changes), slices.Clone(s.pool)
		change(&c)
		all = append(all, &c)
	}
	for i := range s.loads {
		add(func(c *scene) { c.loads = slices.Delete(c.loads, i, i+1) })
	}
	if s.illness != nil {
		for e := range s.illness.broken {
			ill := *s.illness
			if ill.broken[e], ill.busy[e] = (spell{}), 0; ill != *s.illness {
				add(func(c *scene) { c.illness = &ill })
			}
		}
		if s.illness.bad != "" {
			ill := *s.illness
			ill.bad = ""
			add(func(c *scene) { c.illness = &ill })
		}
	}
	for i := range s.changes {
		add(func(c *scene) { c.changes = slices.Delete(c.changes, i, i+1) })
	}
	if n := len(s.pool); n > 1 {
		add(func(c *scene) { c.pool = c.pool[:n-1] })
	}
	for _, simpler := range simplerConfigs {
		cfg := s.config
		before := describeConfig(cfg)
		if simpler(&cfg); describeConfig(cfg) == before {
			continue
		}
		add(func(c *scene) {
			c.config = cfg
			for i := range c.changes {
				if c.changes[i].config != nil {
					other := *c.changes[i].config
					simpler(&other)
					c.changes[i].config = &other
				}
			}
		})
	}
	for i, l := range s.loads {
		if l.clients > 1 {
			add(func(c *scene) { c.loads[i].clients /= 2 })
			add(func(c *scene) { c.loads[i].clients-- })
		}
		if l.fates != (fates{}) {
			add(func(c *scene) { c.loads[i].fates = fates{} })
			for _, fate := range []func(*fates){
				func(f *fates) { f.leave = 0 }, func(f *fates) { f.abandon = 0 }, func(f *fates) { f.slow = 0 },
				func(f *fates) { f.deadline = 0 }, func(f *fates) { f.grow, f.early, f.never = 0, 0, 0 },
				func(f *fates) { f.move = 0 }, func(f *fates) { f.passOn = 0 }, func(f *fates) { f.hurried = 0 },
			} {
				f := l.fates
				if fate(&f); f != l.fates {
					add(func(c *scene) { c.loads[i].fates = f })
				}
			}
		}
		if l.path != nil {
			add(func(c *scene) { c.loads[i].path = nil })
		}
		if l.cost > 1 || l.spread > 1 {
			add(func(c *scene) {
				c.loads[i].cost, c.loads[i].spread, c.loads[i].estimates, c.loads[i].factor = 1, 1, exact, 1
			})
		}
		if l.ask.Subset.Set {
			add(func(c *scene) { c.loads[i].ask.Subset = scheduling.Subset{} })
		}
		if l.begins > 0 {
			add(func(c *scene) { c.loads[i].begins = 0 })
		}
	}
	if s.length > 200_000_000 {
		add(func(c *scene) { c.length = c.length * 3 / 4 })
	}
	return all
}

// simplerConfigs turn off a part of the configuration each.
var simplerConfigs = []func(*dispatch.Config){
	func(c *dispatch.Config) { c.Queue.Classes, c.Classes = nil, nil },
	func(c *dispatch.Config) { c.Classes = nil },
	func(c *dispatch.Config) {
		c.Queue.Classes = slices.Clone(c.Queue.Classes)
		for i := range c.Queue.Classes {
			c.Queue.Classes[i].Limits = fairqueue.ClassLimits{}
		}
	},
	func(c *dispatch.Config) { c.Quotas.Tenants, c.Quotas.Roles = nil, nil },
	func(c *dispatch.Config) { c.Roles = nil },
	func(c *dispatch.Config) { c.Queue.Roles = nil },
	func(c *dispatch.Config) { c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:1], c.Tiers[:1] },
	func(c *dispatch.Config) {
		n := max(1, len(c.Tiers)-1)
		c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:n], c.Tiers[:n]
	},
	func(c *dispatch.Config) { c.MaxInFlightPerFlow, c.MaxTokensInFlightPerFlow = 0, 0 },
	func(c *dispatch.Config) { c.MaxInFlightPerFlowPerBackend, c.MaxTokensInFlightPerFlowPerBackend = 0, 0 },
	func(c *dispatch.Config) { c.Stock.Tokens = stock.TokensConfig{} },
	func(c *dispatch.Config) { c.ReleaseSpacing = 0 },
	func(c *dispatch.Config) { c.Queue.Priorities = false },
	func(c *dispatch.Config) { c.Queue.Order = fairqueue.FCFS },
	func(c *dispatch.Config) { c.Queue.Weights = nil },
	func(c *dispatch.Config) { c.Queue.Levels = 0 },
	func(c *dispatch.Config) { c.EnqueueAll = true },
	func(c *dispatch.Config) { c.HoldWhenEmpty = true },
	func(c *dispatch.Config) { c.Queue.PromotionBudget = 0 },
	func(c *dispatch.Config) { c.Queue.TotalCapacity, c.Queue.FlowCapacity = 1000, 100 },
	func(c *dispatch.Config) { c.Queue.CapacityMode = fairqueue.Reserved },
	func(c *dispatch.Config) {
		c.Tiers = slices.Clone(c.Tiers)
		for i := range c.Tiers {
			c.Tiers[i].ReservedFloor, c.Tiers[i].ReservedPerSlot = 0, 0
		}
	},
	func(c *dispatch.Config) {
		c.Tiers = slices.Clone(c.Tiers)
		for i := range c.Tiers {
			c.Tiers[i].CanPreempt = false
		}
	},
}
