package dispatch

import (
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/quota"
	"github.com/weir-epp/weir/pkg/stock"
)

// scenes are the configurations of TestExplore.
func scenes() []*scene {
	six := kinds(3, "a", "b")
	return append([]*scene{
		// These are small enough for whole lives.
		{
			name: "to-the-end", depth: wholeLives, requests: 3, kinds: six, crowd: []int8{2}, pool: oneEndpoint(), start: 2,
			config: func(c *Config) { threeTiers(c, 100_000); c.Tiers[0].ReservedFloor = 1 },
		},
		{
			name: "four-lives", depth: wholeLives, requests: 4, crowd: []int8{2}, pool: oneEndpoint(), start: 2,
			kinds:  []arrivalKind{{0, "a", ""}, {1, "a", ""}, {2, "a", ""}},
			config: func(c *Config) { threeTiers(c, 100_000); c.Tiers[0].ReservedFloor = 1 },
		},
		{
			name: "three-lives-in-classes", depth: wholeLives, requests: 3, crowd: []int8{1}, pool: twoEndpoints(), start: 2,
			lower: 1, upper: 1,
			kinds:  []arrivalKind{{0, "a/x", ""}, {1, "a/x", ""}, {1, "a/y", ""}, {1, "b/y", "1"}},
			config: func(c *Config) { inClasses(c) },
		},
		{
			name: "usage-in-classes", depth: wholeLives, requests: 3, crowd: []int8{1}, pool: [][]int{{1}},
			usage: everyUse,
			kinds: []arrivalKind{{0, "a/x", ""}, {1, "a/x", ""}, {1, "a/y", ""}},
			config: func(c *Config) {
				inClasses(c)
				unstarved(c)
				c.VictimOrder = LeastCostFirst
			},
		},
		{
			name: "matches", depth: wholeLives, requests: 4, crowd: []int8{1}, pool: twoEndpoints(), start: 2,
			kinds: []arrivalKind{{0, "a", "A"}, {0, "a", "B"}, {0, "b", "A"}, {0, "b", "B"}},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				unstarved(c)
				perBackend(c, 1, 1)
				c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:1], []TierConfig{{}}
				c.Queue.Discipline, c.Queue.Order, c.Queue.LocalityQuantum = fairqueue.VTC, fairqueue.Locality, 1
			},
		},
		{
			name: "usage-in-weighted-tiers", depth: wholeLives, requests: 4, crowd: []int8{1}, pool: [][]int{{2}},
			usage: []op{truesUp, completesDear},
			kinds: []arrivalKind{{0, "a", ""}, {1, "a", ""}},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				unstarved(c)
				c.Queue.TierMode = fairqueue.Weighted
				c.Queue.Tiers[0].Weight = 3 * fairqueue.WeightOne
				c.Stock.Tokens = stock.TokensConfig{Watermark: 2, Lower: 2, Upper: 2}
			},
		},
		{
			name: "usage-of-giants", depth: 8, requests: 4, crowd: []int8{1}, pool: [][]int{{2, 0}, {2, 2}}, start: 1,
			usage: []op{raises, completesDear},
			kinds: []arrivalKind{{0, "a", ""}, {0, "a", "1"}},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				unstarved(c)
				c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:1], []TierConfig{{}}
				c.Stock.Tokens = stock.TokensConfig{Watermark: 2, Lower: 2, Upper: 3}
			},
		},
		{
			name: "usage-and-victims", depth: 7, requests: 4, crowd: []int8{2}, pool: [][]int{{2, 0}, {2, 2}}, start: 1,
			usage:  []op{raises, completesDear},
			kinds:  []arrivalKind{{0, "a", ""}, {0, "b", "1"}, {1, "a", ""}, {1, "c", "0"}},
			config: tokensOfTwoTiers,
		},
		{
			name: "usage-of-tenants-and-victims", depth: 6, requests: 4, crowd: []int8{2}, pool: [][]int{{2, 0}, {2, 2}}, start: 1,
			usage:  []op{raises, completesDear},
			kinds:  []arrivalKind{{0, "a", ""}, {0, "b", ""}, {1, "a", ""}, {1, "c", "0"}},
			config: func(c *Config) { tokensOfTwoTiers(c); c.MaxInFlightPerFlowPerBackend = 1 },
		},
		{
			name: "usage-of-roused-tenants", depth: 6, requests: 6, crowd: []int8{1, 3, 4}, pool: [][]int{{2, 2}},
			usage:  []op{raises},
			kinds:  []arrivalKind{{0, "a", ""}, {1, "a", ""}, {1, "b", ""}, {1, "b", "0"}, {1, "c", ""}},
			config: func(c *Config) { tokensOfTwoTiers(c); c.MaxInFlightPerFlowPerBackend = 1 },
		},
		{
			name: "usage-in-flows", depth: wholeLives, requests: 3, crowd: []int8{1}, pool: [][]int{{1}},
			usage: []op{raises, truesUp, completesDear},
			kinds: []arrivalKind{{0, "a", ""}, {0, "b", ""}, {1, "b", ""}},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				unstarved(c)
				c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:2], []TierConfig{{CanPreempt: true}, {}}
				c.Queue.Discipline = fairqueue.VTC
			},
		},
		{
			name: "usage-in-finish-tags", depth: wholeLives, requests: 3, crowd: []int8{1}, pool: [][]int{{1}},
			usage: []op{truesUp, completesDear},
			kinds: []arrivalKind{{0, "a", ""}, {0, "b", ""}, {1, "b", ""}},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				unstarved(c)
				c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:2], []TierConfig{{CanPreempt: true}, {}}
			},
		},
		{
			name: "classes", depth: 5, requests: 6, crowd: []int8{1, 2, 3, 4}, pool: twoEndpoints(), start: 2, lower: 1, upper: 2,
			kinds: []arrivalKind{
				{0, "a/x", ""}, {0, "b/y", "0"}, {1, "a/x", ""}, {1, "a/y", "1"}, {1, "b/y", ""},
			},
			config: func(c *Config) {
				inClasses(c)
				perBackend(c, 1, 2)
				c.Queue.Cursor, c.ReleaseSpacing = fairqueue.Advance, tick/2
			},
		},
		{
			name: "four-lives-in-lanes", depth: wholeLives, requests: 4, crowd: []int8{2}, pool: [][]int{{1, 0}, {1, 1}}, start: 1,
			lower: 1, upper: 1,
			kinds: []arrivalKind{{0, "a", "0"}, {1, "a", ""}, {1, "b", "1"}},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				perBackend(c, 1, 1)
				c.Queue.Tiers = c.Queue.Tiers[:2]
				c.Tiers = []TierConfig{{CanPreempt: true}, {}}
				c.MaxInFlightPerFlow = 1
				c.ReleaseSpacing = tick / 2
			},
		},
		{
			name: "lives-of-models", depth: wholeLives, requests: 3, crowd: []int8{1}, pool: [][]int{{1, 1}, {1, 1}, {1, 1}}, start: 1,
			lower: 1, upper: 1,
			listed: [][2]string{{"mn", "m"}, {"mn", "mn"}, {"m", "n"}},
			kinds:  []arrivalKind{{0, "a", "m"}, {1, "a", "m"}, {1, "a", "n"}},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				perBackend(c, 1, 1)
				c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:2], []TierConfig{{CanPreempt: true}, {}}
			},
		},
		{
			name: "models", depth: 4, requests: 6, crowd: []int8{1, 2, 3, 4}, pool: [][]int{{0, 1}, {1, 1}, {1, 1}, {1, 1}}, start: 2,
			lower: 1, upper: 2,
			listed: [][2]string{{"mn", "m"}, {"mn", "m"}, {"mn", "mn"}, {"m", "n"}},
			kinds: []arrivalKind{
				{0, "a", "n"}, {1, "a", "m"}, {1, "a", "n"}, {1, "b", "n"}, {1, "b", ""},
			},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				perBackend(c, 1, 2)
				c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:2], []TierConfig{{CanPreempt: true}, {}}
				c.Queue.Discipline, c.MaxInFlightPerFlowPerBackend = fairqueue.VTC, 1
			},
		},
		{
			name: "reservations", depth: 6, requests: 6, kinds: six, crowd: []int8{2, 4, 4, 5}, pool: oneEndpoint(), start: 2,
			config: func(c *Config) { threeTiers(c, 100_000); c.Tiers[0].ReservedFloor = 1 },
		},
		{
			name: "unlimited-promotion", depth: 5, requests: 6, kinds: six, crowd: []int8{2, 4, 4, 5}, pool: oneEndpoint(), start: 2,
			config: func(c *Config) {
				threeTiers(c, 1_000_000)
				c.VictimOrder, c.Queue.TieBreak = LeastCostFirst, fairqueue.NewcomerFirst
			},
		},
		{
			name: "counters", depth: 4, requests: 6, crowd: []int8{2, 4, 5, 6}, pool: twoEndpoints(), start: 2, lower: 1, upper: 2,
			kinds: []arrivalKind{
				{0, "a", "0"}, {0, "b", "1"}, {1, "a", ""}, {1, "b", "1"}, {2, "a", "0"}, {2, "b", "1"}, {2, "b", ""},
			},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				perBackend(c, 1, 2)
				c.Queue.Discipline, c.Queue.TieBreak, c.MaxInFlightPerFlow = fairqueue.VTC, fairqueue.NewcomerFirst, 1
			},
		},
		{
			name: "fair-shares", depth: 4, requests: 6, crowd: []int8{1, 2, 3, 4}, pool: twoEndpoints(), start: 2, lower: 1, upper: 2,
			usage: []op{raises, completesDear},
			kinds: []arrivalKind{{0, "a", "0"}, {0, "b", "1"}, {1, "a", ""}, {1, "b", "1"}, {1, "c", ""}},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				perBackend(c, 1, 2)
				c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:2], []TierConfig{{CanPreempt: true}, {}}
				c.Queue.Discipline, c.MaxInFlightPerFlow = fairqueue.FairShare, 1
				c.Queue.FairShare.Window, c.Queue.FairShare.WaitBonus = 30*tick, fairqueue.MaxWaitBonus
			},
		},
		{
			name: "weighted", depth: 5, requests: 6, kinds: six, crowd: []int8{2, 4, 4, 5}, pool: oneEndpoint(), start: 2,
			config: func(c *Config) {
				threeTiers(c, 100_000)
				c.Queue.TierMode = fairqueue.Weighted
				for i, w := range []fairqueue.Weight{70, 20, 10} {
					c.Queue.Tiers[i].Weight = w * fairqueue.WeightOne
				}
			},
		},
		{
			name: "lives-of-users", depth: wholeLives, requests: 3, crowd: []int8{1}, pool: oneEndpoint(), start: 2,
			kinds:  []arrivalKind{{0, "a.u", ""}, {1, "a.u", ""}, {1, "a.v", ""}, {1, "b.u", ""}},
			config: func(c *Config) { ofUsers(c, fairqueue.WFQ) },
		},
		{
			name: "users-in-lanes", depth: 4, requests: 6, crowd: []int8{2, 3, 4, 5}, pool: twoEndpoints(), start: 2, lower: 1, upper: 2,
			kinds: []arrivalKind{
				{0, "a.u", "0"}, {0, "b.u", "1"}, {1, "a.u", ""}, {1, "a.v", "0"}, {1, "b.u", "1"}, {1, "a.v", ""},
			},
			config: func(c *Config) {
				ofUsers(c, fairqueue.VTC)
				perBackend(c, 1, 2)
				c.MaxInFlightPerFlowPerBackend = 1
			},
		},
		{
			name: "capped-users-of-capped-tenants", depth: 5, requests: 6, crowd: []int8{1, 3, 4, 5}, pool: twoEndpoints(), start: 2, lower: 1, upper: 2,
			kinds: []arrivalKind{
				{0, "a.u", ""}, {0, "a.v", "1"}, {1, "a.u", "0"}, {1, "a.v", ""}, {1, "b.u", ""}, {1, "a.w", "1"},
			},
			config: func(c *Config) {
				ofUsers(c, fairqueue.FairShare)
				perBackend(c, 1, 2)
				c.MaxInFlightPerFlow = 2
			},
			reload: func(c *Config) {
				ofUsers(c, fairqueue.FairShare)
				perBackend(c, 1, 2)
				c.Levels[1].MaxInFlight, c.MaxInFlightPerFlow = 2, 1
			},
		},
		{
			name: "caps", depth: 6, requests: 6, kinds: six, crowd: []int8{2, 4, 4, 5}, pool: oneEndpoint(), start: 2,
			config: func(c *Config) { threeTiers(c, 100_000); c.MaxInFlightPerFlow = 1 },
		},
		{
			name: "lanes", depth: 5, requests: 6, crowd: []int8{2, 4, 5, 6}, pool: twoEndpoints(), start: 2, lower: 1, upper: 1,
			kinds: []arrivalKind{
				{0, "a", "0"}, {0, "b", "1"}, {0, "a", ""}, {1, "a", "1"}, {2, "a", "0"}, {2, "b", "1"}, {2, "b", ""},
			},
			config: func(c *Config) { threeTiers(c, 100_000); perBackend(c, 1, 1) },
		},
		{
			name: "lanes-in-a-band", depth: 5, requests: 6, crowd: []int8{2, 4, 4, 5}, pool: twoEndpoints(), start: 2, lower: 1, upper: 2,
			kinds: []arrivalKind{
				{0, "a", "0"}, {0, "b", "1"}, {1, "a", "0"}, {1, "b", ""}, {2, "a", "0"}, {2, "b", "1"},
			},
			config: func(c *Config) { threeTiers(c, 100_000); perBackend(c, 1, 2) },
		},
		{
			name: "others", depth: 6, requests: 5, crowd: []int8{2, 3, 0}, pool: twoEndpoints(), start: 2, lower: 1, upper: 2,
			kinds: []arrivalKind{
				{0, "a", "0"}, {0, "b", ""}, {1, "a", "0"}, {1, "b", "1"}, {1, "b", ""},
			},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				perBackend(c, 1, 2)
				c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:2], []TierConfig{{CanPreempt: true}, {}}
			},
			others: 2,
		},
		{
			name: "three-lives-and-others", depth: wholeLives, requests: 3, crowd: []int8{1}, pool: [][]int{{1, 0}, {1, 1}}, start: 1,
			lower: 1, upper: 1,
			kinds: []arrivalKind{{0, "a", "0"}, {1, "a", ""}},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				perBackend(c, 1, 1)
				c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:2], []TierConfig{{CanPreempt: true}, {}}
			},
			others: 1,
		},
	}, scenesOfChanges()...)
}

// kinds are the requests of every tier and flow, for the whole pool.
func kinds(tiers int, flows ...string) (all []arrivalKind) {
	for tier := range tiers {
		for _, flow := range flows {
			all = append(all, arrivalKind{tier, flow, ""})
		}
	}
	return all
}

// oneEndpoint has 0, 1 or 2 slots; each of twoEndpoints is ready or not.
func oneEndpoint() [][]int { return [][]int{{0}, {1}, {2}} }

func twoEndpoints() [][]int { return [][]int{{0, 0}, {1, 0}, {1, 1}} }

// threeTiers sets three tiers that may preempt, except the lowest; a waiter starves after a tick.
func threeTiers(c *Config, budget int64) {
	c.EnqueueAll = true
	c.Queue.CapacityMode, c.Queue.TotalCapacity, c.Queue.FlowCapacity = fairqueue.Shared, 100, 100
	c.Queue.PromotionBudget = budget
	c.Queue.Tiers = nil
	for _, name := range []string{"high", "middle", "low"} {
		c.Queue.Tiers = append(c.Queue.Tiers, fairqueue.TierConfig{Name: name, QueueSize: -1, StarvationThreshold: tick})
	}
	c.Tiers = []TierConfig{{CanPreempt: true}, {CanPreempt: true}, {}}
}

// tokensOfTwoTiers bounds the tokens at each endpoint to 3; the higher tier may preempt.
func tokensOfTwoTiers(c *Config) {
	threeTiers(c, 100_000)
	unstarved(c)
	c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:2], []TierConfig{{CanPreempt: true}, {}}
	c.Stock.Tokens = stock.TokensConfig{Watermark: 3, Lower: 3, Upper: 3}
}

// unstarved disables starvation.
func unstarved(c *Config) {
	for i := range c.Queue.Tiers {
		c.Queue.Tiers[i].StarvationThreshold = 0
	}
}

// inClasses sets two tiers, each shared by classes x and y; the higher tier may preempt.
func inClasses(c *Config) {
	threeTiers(c, 100_000)
	perBackend(c, 1, 1)
	c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:2], []TierConfig{{CanPreempt: true}, {}}
	c.Queue.Classes = []fairqueue.ClassConfig{{Name: "x", Quantum: 2}, {Name: "y", Quantum: 1}}
}

// preemptingCounters sets two tiers with flows by vtc; the higher tier may preempt.
func preemptingCounters(c *Config) {
	threeTiers(c, 100_000)
	unstarved(c)
	c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:2], []TierConfig{{CanPreempt: true}, {}}
	c.Queue.Discipline = fairqueue.VTC
}

// quotaOfA gives tenant a a quota of tokens in two ticks.
func quotaOfA(c *Config, tokens int64) {
	preemptingCounters(c)
	c.Quotas.Tenants = map[string]quota.Limit{"a": {Tokens: tokens, Window: 2 * tick}}
}

// perBackend sets the band of an endpoint.
func perBackend(c *Config, lower, upper int) {
	c.Stock.LowerBoundPerBackend, c.Stock.WatermarkPerBackend, c.Stock.UpperBoundPerBackend = lower, upper, upper
}

// configuration returns the scene's first or its other configuration.
func (w *world) configuration(other bool) Config {
	cfg := DefaultConfig()
	cfg.ExpiryCleanupInterval = 1000 * time.Hour
	cfg.Queue.QueueTTL = 1000 * time.Hour
	if other {
		w.scene.reload(&cfg)
	} else {
		w.scene.config(&cfg)
	}
	return cfg
}

// ofUsers sets two tiers, and tenants whose users may have one request in flight each; the higher tier may preempt.
func ofUsers(c *Config, discipline fairqueue.Discipline) {
	threeTiers(c, 100_000)
	c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:2], []TierConfig{{CanPreempt: true}, {}}
	c.Queue.Discipline, c.Queue.Levels = discipline, 2
	c.Queue.ByLevel = []fairqueue.LevelConfig{{}, {Weights: map[string]fairqueue.Weight{"v": 3 * fairqueue.WeightOne}, Capacity: 2}}
	c.Levels = []LevelCaps{{}, {MaxInFlight: 1}}
}
