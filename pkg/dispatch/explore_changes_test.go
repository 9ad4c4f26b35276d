package dispatch

import (
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// scenesOfChanges are the scenes with failing or shrinking engines, reloads, deadlines, and limits of classes.
func scenesOfChanges() []*scene {
	six := kinds(3, "a", "b")
	return []*scene{
		{
			name: "an-engine-fails", depth: 6, requests: 5, crowd: []int8{0, 0, 1}, pool: twoEndpoints(), start: 2, lower: 1, upper: 1,
			kinds:    []arrivalKind{{0, "a", ""}, {0, "b", "0"}, {1, "b", ""}},
			suspects: []string{"x", "y", "z"},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				perBackend(c, 1, 1)
				c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:2], []TierConfig{{CanPreempt: true}, {}}
				c.Circuits = true
			},
		},
		{
			name: "a-tenant-fails", depth: 6, requests: 5, crowd: []int8{0, 0, 1}, pool: [][]int{{2, 0}, {2, 2}}, start: 1, lower: 2, upper: 2,
			kinds:    []arrivalKind{{0, "a", ""}, {0, "b", "0"}, {0, "a", "1"}},
			suspects: []string{"a"},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				unstarved(c)
				perBackend(c, 2, 2)
				c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:1], []TierConfig{{}}
				c.MaxInFlightPerFlow, c.MaxInFlightPerFlowPerBackend = 3, 2
				c.Circuits = true
			},
			reload: func(c *Config) {
				threeTiers(c, 100_000)
				unstarved(c)
				perBackend(c, 2, 2)
				c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:1], []TierConfig{{}}
				c.MaxInFlightPerFlowPerBackend = 1
			},
		},
		{
			name: "shrinks", depth: 6, requests: 6, crowd: []int8{3, 3, 2, 3}, pool: [][]int{{0, 2}, {1, 2}, {2, 2}}, start: 2,
			kinds: []arrivalKind{{0, "a", ""}, {0, "b", "0"}, {1, "a", "1"}, {1, "b", ""}},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:2], []TierConfig{{CanPreempt: true, ReservedFloor: 1}, {}}
			},
		},
		{
			name: "shrinks-and-caps", depth: 6, requests: 5, crowd: []int8{1, 1, 0, 1}, pool: [][]int{{1, 2}, {2, 1}, {2, 2}}, start: 2,
			kinds: []arrivalKind{{0, "a", ""}, {1, "b", ""}},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:2], []TierConfig{{CanPreempt: true}, {}}
				c.MaxInFlightPerFlowPerBackend = 1
			},
		},
		{
			name: "caps-and-others", depth: 4, requests: 4, crowd: []int8{0, 0, 1}, pool: twoEndpoints(), start: 2, lower: 1, upper: 2,
			kinds: []arrivalKind{{0, "a", ""}, {0, "b", "0"}},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				perBackend(c, 1, 2)
				c.MaxInFlightPerFlowPerBackend = 1
			},
			limit: 1, others: 1,
		},
		{
			name: "caps-by-endpoint", depth: 5, requests: 6, crowd: []int8{4, 4, 5, 2}, pool: twoEndpoints(), start: 2, lower: 1, upper: 2,
			kinds: []arrivalKind{
				{0, "a", "0"}, {0, "b", "0"}, {1, "a", ""}, {1, "b", ""}, {2, "a", "0"}, {2, "b", ""},
			},
			config: func(c *Config) { threeTiers(c, 100_000); perBackend(c, 1, 2); c.MaxInFlightPerFlowPerBackend = 1 },
			limit:  1,
		},
		{
			name: "displacement", depth: 6, requests: 6, kinds: six, crowd: []int8{2, 4, 4, 5}, pool: oneEndpoint(), start: 1,
			config: func(c *Config) {
				threeTiers(c, 100_000)
				c.Queue.GuaranteedTop, c.Queue.TotalCapacity, c.Queue.FlowCapacity = true, 3, 2
			},
		},
		{
			name: "expiry", depth: 5, requests: 6, kinds: six, crowd: []int8{2, 4, 4, 5}, pool: oneEndpoint(), start: 1,
			config: func(c *Config) {
				threeTiers(c, 100_000)
				c.Queue.Tiers[1].QueueTimeout, c.Queue.Tiers[2].QueueTimeout = tick, 2*tick
			},
		},
		{
			name: "spacing", depth: 6, requests: 6, kinds: six, crowd: []int8{2, 4, 4, 5}, pool: oneEndpoint(), start: 2,
			config: func(c *Config) { threeTiers(c, 100_000); c.ReleaseSpacing = tick / 2 },
		},
		{
			name: "reload", depth: 5, requests: 6, kinds: six, crowd: []int8{2, 4, 4, 5}, pool: oneEndpoint(), start: 2,
			config: func(c *Config) { threeTiers(c, 100_000); c.MaxInFlightPerFlow = 1 },
			reload: func(c *Config) { // removes the middle tier and the cap
				threeTiers(c, 1_000_000)
				c.Queue.Tiers = append(c.Queue.Tiers[:1], c.Queue.Tiers[2])
				c.Tiers = []TierConfig{{CanPreempt: true, ReservedFloor: 1}, {}}
			},
		},
		{
			name: "reload-of-classes", depth: 6, requests: 4, crowd: []int8{1}, pool: [][]int{{1}},
			usage:  []op{truesUp, completesDear},
			kinds:  []arrivalKind{{0, "a", ""}, {1, "a/x", ""}, {1, "a/y", ""}},
			config: func(c *Config) { inClasses(c); unstarved(c) },
			reload: func(c *Config) { // y is the first, and x has another name
				inClasses(c)
				unstarved(c)
				c.Queue.Classes = []fairqueue.ClassConfig{{Name: "y", Quantum: 1}, {Name: "z", Quantum: 2}}
			},
		},
		{
			name: "deadlines", depth: 5, requests: 6, crowd: []int8{4, 1, 2, 2, 3}, pool: [][]int{{1}, {2}}, start: 0,
			kinds: []arrivalKind{{0, "a@2", ""}, {1, "a", ""}, {1, "a@1", ""}, {1, "a@4", ""}, {1, "b@3", ""}},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				c.Queue.Tiers = c.Queue.Tiers[:2]
				c.Tiers = []TierConfig{{CanPreempt: true}, {}}
				c.Queue.Order, c.Queue.QueueTTL = fairqueue.EDF, 3*tick
			},
		},
		{
			name: "expiring-together", depth: 5, requests: 6, crowd: []int8{0, 1, 1, 2, 2}, pool: [][]int{{1}, {2}}, batch: 1,
			kinds: []arrivalKind{{0, "a", ""}, {1, "a", ""}, {1, "b@1", ""}},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				c.Queue.Tiers = c.Queue.Tiers[:2]
				c.Tiers = []TierConfig{{CanPreempt: true}, {}}
				c.Queue.QueueTTL = tick
			},
		},
		{
			name: "poison", depth: 4, requests: 6, crowd: []int8{3, 4, 5, 6}, pool: twoEndpoints(), start: 2, lower: 1, upper: 1,
			kinds: []arrivalKind{
				{0, "a", "0"}, {0, "b", "1"}, {1, "a", "0"}, {1, "a", "1"}, {2, "a", "0"}, {2, "a", "1"}, {2, "b", ""},
			},
			config: func(c *Config) { threeTiers(c, 100_000); perBackend(c, 1, 1); c.MaxInFlightPerFlowPerBackend = 1 },
			poison: "1",
		},
		{
			name: "emergency", depth: 4, requests: 6, crowd: []int8{2, 4, 5, 6}, pool: twoEndpoints(), start: 2, lower: 1, upper: 2,
			kinds: []arrivalKind{
				{0, "a", "0"}, {0, "b", "1"}, {1, "a", ""}, {1, "b", "1"}, {2, "a", "0"}, {2, "b", "1"}, {2, "b", ""},
			},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				perBackend(c, 1, 2)
				c.MaxInFlightPerFlow = 1
				c.ReleaseSpacing = tick / 2
			},
			reload: func(c *Config) {
				threeTiers(c, 100_000)
				perBackend(c, 1, 2)
				c.MaxInFlightPerFlow = 1
				c.Enabled = false
			},
		},
		{
			name: "uncharged", depth: 6, requests: 3, crowd: []int8{1}, pool: [][]int{{1}}, passOn: true,
			usage:  []op{raises, truesUp, completesDear},
			kinds:  []arrivalKind{{0, "a", ""}, {1, "a", ""}},
			config: func(c *Config) { preemptingCounters(c) },
			reload: func(c *Config) { preemptingCounters(c); c.Enabled = false },
		},
		{
			name: "busy", depth: 5, requests: 4, crowd: []int8{1}, pool: twoEndpoints(), start: 2, lower: 2, upper: 2,
			kinds: []arrivalKind{{0, "a/x", ""}, {0, "a/y", "1"}, {1, "b/x", "0"}, {1, "b/y", ""}},
			config: func(c *Config) {
				inClasses(c)
				perBackend(c, 2, 2)
				c.Tiers[0].CanPreempt = false
				c.Classes = []ClassConfig{ // of x one request at one of the endpoints, of y two at each
					{Busy: scheduling.BusyRule{PrefillTokens: new(int64(0)), WorkerRatio: 500_000}},
					{Busy: scheduling.BusyRule{PrefillTokens: new(int64(promptTokens))}},
				}
			},
		},
		{
			name: "three-busy-lives", depth: wholeLives, requests: 3, crowd: []int8{1}, pool: [][]int{{2}},
			kinds: []arrivalKind{{0, "a/x", ""}, {0, "a/y", ""}, {0, "b/x", ""}},
			config: func(c *Config) {
				inClasses(c)
				unstarved(c)
				perBackend(c, 2, 2)
				c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:1], []TierConfig{{}}
				c.Classes = []ClassConfig{{Busy: scheduling.BusyRule{PrefillTokens: new(int64(0))}}, {}}
			},
			reload: func(c *Config) { // x has no rule, y has x's
				inClasses(c)
				unstarved(c)
				perBackend(c, 2, 2)
				c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:1], []TierConfig{{}}
				c.Classes = []ClassConfig{{Busy: scheduling.BusyRule{PrefillTokens: new(int64(promptTokens))}}, {Busy: scheduling.BusyRule{PrefillTokens: new(int64(0))}}}
			},
		},
		{
			name: "quotas", depth: 5, requests: 5, crowd: []int8{0, 1}, pool: [][]int{{1}, {2}},
			kinds:  []arrivalKind{{0, "a=2", ""}, {1, "a=3", ""}, {1, "a=6", ""}, {1, "b", ""}},
			config: func(c *Config) { quotaOfA(c, 4) },
			reload: func(c *Config) { quotaOfA(c, 3) },
		},
		{
			name: "roles", depth: 5, requests: 5, crowd: []int8{1, 2, 3}, pool: [][]int{{2}, {3}},
			kinds: []arrivalKind{{0, "a^s", ""}, {0, "a^t", ""}, {1, "a^t", ""}, {1, "b^t", ""}, {1, "b", ""}},
			config: func(c *Config) {
				preemptingCounters(c)
				c.MaxInFlightPerFlow = 3
				c.Roles = map[string]RoleConfig{"s": {MaxInFlight: 1}, "t": {MaxInFlight: 2}}
				c.Queue.Roles = map[string]fairqueue.RoleConfig{"s": {Weight: fairqueue.WeightOne}, "t": {Weight: 3 * fairqueue.WeightOne}}
			},
		},
		{
			name: "needs", depth: wholeLives, requests: 3, crowd: []int8{1}, pool: [][]int{{1, 1}, {1, 1}, {1, 1}}, start: 1,
			lower: 1, upper: 1,
			listed: [][2]string{{"m-", "m"}, {"m", "m"}, {"m", "mn-"}},
			kinds:  []arrivalKind{{0, "a", "m+"}, {1, "a", "m"}, {1, "a", "m+"}},
			config: func(c *Config) {
				threeTiers(c, 100_000)
				perBackend(c, 1, 1)
				c.Queue.Tiers, c.Tiers = c.Queue.Tiers[:2], []TierConfig{{CanPreempt: true}, {}}
			},
		},
		{
			name: "unbounded", depth: 5, requests: 6, kinds: six, crowd: []int8{2, 4, 4, 5}, pool: oneEndpoint(), start: 0,
			config: func(c *Config) {
				threeTiers(c, 100_000)
				c.Tiers[0].ReservedFloor, c.Tiers[1].ReservedPerSlot = 1, stock.One/2
				c.Stock.Unbounded = true
			},
			reload: func(c *Config) { threeTiers(c, 100_000) },
		},
		{
			name: "none-is-held", depth: 4, requests: 6, crowd: []int8{2, 4, 5, 6}, pool: twoEndpoints(), start: 2, lower: 1, upper: 1,
			kinds: []arrivalKind{
				{0, "a", "0"}, {0, "b", "1"}, {1, "a", ""}, {1, "b", "1"}, {2, "a", "0"}, {2, "b", "1"}, {2, "b", ""},
			},
			config: func(c *Config) { threeTiers(c, 100_000); perBackend(c, 1, 1); c.HoldWhenEmpty = false },
		},
	}
}
