package recording_test

import (
	"fmt"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/quota"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// someConfig returns a random configuration, in which fields that cannot change at run time are always the same.
func (d *driver) someConfig() dispatch.Config {
	c := dispatch.DefaultConfig()
	c.Queue.CapacityMode = fairqueue.Shared
	c.Queue.TotalCapacity, c.Queue.FlowCapacity = 20+d.lot.IntN(60), 5+d.lot.IntN(15)
	c.Queue.PromotionBudget = int64(d.lot.IntN(3)) * 500_000
	c.Circuits = d.circuits
	c.Queue.Weights = map[string]fairqueue.Weight{"flow-1": fairqueue.WeightOne * fairqueue.Weight(1+d.lot.IntN(5))}
	c.Queue.QueueTTL = time.Duration(1+d.lot.IntN(4)) * time.Second
	c.Queue.Tiers = []fairqueue.TierConfig{
		{Name: "critical", QueueSize: -1},
		{Name: "default", QueueSize: -1, StarvationThreshold: time.Duration(d.lot.IntN(3)) * time.Second},
		{Name: "batch", QueueSize: 5 + d.lot.IntN(20), StarvationThreshold: time.Second},
	}
	c.Tiers = []dispatch.TierConfig{
		{CanPreempt: true, ReservedFloor: d.lot.IntN(3)},
		{CanPreempt: d.chance(2), ReservedPerSlot: stock.One / 10},
		{},
	}
	if d.classes != nil {
		c.Queue.Priorities = d.classes.IntN(2) == 0
		if d.classes.IntN(2) == 0 {
			c.Queue.Order = fairqueue.Locality
			if c.Queue.Discipline != fairqueue.OneFlow {
				c.Queue.LocalityQuantum = fairqueue.Cost(d.classes.IntN(500))
			}
		}
		for _, name := range []string{"a", "b", "c"}[:d.classes.IntN(4)] {
			c.Queue.Classes = append(c.Queue.Classes, fairqueue.ClassConfig{
				Name: name, Quantum: fairqueue.Cost(1 + d.classes.IntN(30)), Order: fairqueue.Order(d.classes.IntN(4)),
			})
		}
		if d.dynamo != nil {
			d.likeDynamo(&c)
		}
	}
	if d.quotas {
		c.Queue.Roles = map[string]fairqueue.RoleConfig{"admin": {Weight: 3 * fairqueue.WeightOne}}
		c.Roles = map[string]dispatch.RoleConfig{"student": {MaxInFlight: 2}}
		c.Quotas.Tenants = map[string]quota.Limit{"flow-1": {Tokens: 200, Window: time.Second}, "flow-2": {Tokens: 900, Window: time.Minute}}
	}
	if d.users {
		c.Queue.Levels = 2
		c.Queue.ByLevel = []fairqueue.LevelConfig{{}, {Weights: map[string]fairqueue.Weight{"user-1": 3 * fairqueue.WeightOne}, Capacity: c.Queue.FlowCapacity}}
		if c.Queue.Discipline != fairqueue.OneFlow {
			c.Levels = []dispatch.LevelCaps{{}, {MaxInFlight: 2 + d.now.Second()%2}}
		}
	}
	c.EnqueueAll = !d.chance(4)
	c.HoldWhenEmpty = !d.chance(4)
	c.Stock.WatermarkPerBackend = 1 + d.lot.IntN(4)
	c.Stock.Follow = d.chance(2)
	if d.chance(3) {
		c.MaxInFlightPerFlow = 3 + d.lot.IntN(5)
	}
	if d.chance(2) {
		c.MaxInFlightPerFlowPerBackend = 1 + d.lot.IntN(2)
	}
	if d.chance(3) {
		c.Stock.Tokens.Watermark = stock.Tokens(5 + d.lot.Int64N(20))
	}
	if d.chance(3) {
		c.MaxTokensInFlightPerFlow, c.MaxTokensInFlightPerFlowPerBackend = stock.Tokens(3+d.lot.Int64N(9)), stock.Tokens(2+d.lot.Int64N(5))
	}
	if d.chance(4) {
		c.ReleaseSpacing = time.Duration(1+d.lot.IntN(20)) * time.Millisecond
	}
	if d.chance(3) {
		c.VictimOrder = dispatch.LeastCostFirst
	}
	return c
}

// likeDynamo gives classes rings, limits, ageing and busy rules.
func (d *driver) likeDynamo(c *dispatch.Config) {
	lot := d.dynamo
	some := func(n int64) *int64 {
		if lot.IntN(2) == 0 {
			return nil
		}
		n = lot.Int64N(n)
		return &n
	}
	busy := lot.IntN(3) == 0
	for i := range c.Queue.Classes {
		class := &c.Queue.Classes[i]
		class.Ring, class.Ageing = []string{"", "r"}[lot.IntN(2)], time.Duration(lot.IntN(2))*time.Second
		if lot.IntN(2) == 0 {
			class.Limits = fairqueue.ClassLimits{Requests: some(5), RawTokens: some(200), CachedTokens: some(90)}
		}
		if busy {
			c.Classes = append(c.Classes, dispatch.ClassConfig{Busy: scheduling.BusyRule{PrefillTokens: some(50)}})
		}
	}
	for i := range c.Tiers {
		c.Tiers[i].CanPreempt = c.Tiers[i].CanPreempt && !busy
	}
}

func (d *driver) someScheduler() *scheduling.Scheduler {
	c := scheduling.DefaultConfig()
	c.TieBreak = []string{scheduling.TieRotate, scheduling.TieRandom, scheduling.TieFirst}[d.lot.IntN(3)]
	c.Fallbacks = d.lot.IntN(3)
	if d.version%4 == 0 {
		c.Policy = scheduling.PolicyMindRouter
	}
	s, err := scheduling.New(c)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// somePool returns a random pool.
func (d *driver) somePool() (*scheduling.Snapshot, []stock.Backend) {
	var endpoints []scheduling.Endpoint
	var ready []stock.Backend
	models := d.chance(3)
	lacking := d.version%3 == 1
	for id := range 6 {
		if d.chance(6) {
			continue
		}
		e := scheduling.Endpoint{
			ID: scheduling.EndpointID(id), Address: fmt.Sprintf("10.0.0.%d:80", id+1), Ready: !d.chance(6), Slots: max(0, d.lot.IntN(8)-4),
			Labels: map[string]string{"zone": string(rune('a' + id%2))},
		}
		if models && id%2 == 0 {
			e.Models = []string{"chat"}
			if v := int(d.version); v%3 == 0 || (id/2+v)%2 == 0 { // sometimes where the other one is, and first of the two
				e.Models = append(e.Models, "agent")
			}
		}
		if d.chance(4) {
			e.MaxInFlight = 1 + d.lot.IntN(6)
		}
		if lacking && id%2 == 1 {
			e.Lacks = scheduling.NeedImage | scheduling.Needs(id)
		}
		endpoints = append(endpoints, e)
		if e.Ready {
			ready = append(ready, stock.Backend{ID: stock.BackendID(id), Slots: int32(e.Slots)})
		}
	}
	d.version++
	return scheduling.NewSnapshot(d.version, endpoints), ready
}
