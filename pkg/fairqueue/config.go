package fairqueue

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/weir-epp/weir/pkg/invalid"
)

// CapacityMode determines how flows share the queue's capacity.
type CapacityMode uint8

const (
	// Reserved reserves each tracked flow's FlowCapacity out of TotalCapacity, as the seed does.
	Reserved CapacityMode = iota
	// Shared lets all flows use TotalCapacity. When the queue is full, an arrival displaces a less entitled waiter.
	Shared
	// Reject lets all flows use TotalCapacity, and reserves nothing. A full queue rejects the arrival, of any flow.
	Reject
)

// TierMode determines how tiers share the releases.
type TierMode uint8

const (
	// Strict serves the highest tier first, with a starvation guard.
	Strict TierMode = iota
	// Weighted gives each backlogged tier its weight's share.
	Weighted
)

// Discipline determines how flows share their class.
type Discipline uint8

const (
	// WFQ is weighted fair queueing by finish tags, as in the seed.
	WFQ Discipline = iota
	// OneFlow puts all requests of a class into one flow: first come, first served.
	OneFlow
	// VTC is start-time fair queueing by counters that are corrected to the actual costs.
	VTC
	// FairShare is MindRouter's fair share over the counters of VTC.
	FairShare
)

// TieBreak determines which of several flows goes first if their heads have the same tag.
type TieBreak uint8

const (
	// ByArrival prefers the flow whose head arrived first.
	ByArrival TieBreak = iota
	// NewcomerFirst prefers a flow that has not been served since it became backlogged; among equals, the earlier
	// arrival goes first. With equal weights and costs a newcomer's tag often equals the next head's, so the newcomer
	// usually goes ahead of flows that are always backlogged.
	NewcomerFirst
)

// Config is the queue's configuration. TierMode, CapacityMode, Discipline and Levels cannot change at run time; the other
// fields can.
type Config struct {
	// TotalCapacity is the largest number of waiting requests, at least 1. FlowCapacity is the largest number of waiting
	// requests of one flow, 1 to TotalCapacity. FlowCapacities overrides FlowCapacity by flow key.
	TotalCapacity  int
	FlowCapacity   int
	FlowCapacities map[string]int `graph:"key"`
	CapacityMode   CapacityMode
	// QueueTTL is the TTL of requests whose tier has no QueueTimeout; above 0.
	QueueTTL time.Duration
	// Weights has weights by flow key. An unlisted flow has the weight of its role if it is its requests' innermost
	// flow, and otherwise WeightOne.
	Weights map[string]Weight `graph:"key"`
	// Roles has the common settings of a role's flows, by the role's name.
	Roles      map[string]RoleConfig
	Discipline Discipline
	FairShare  FairShareConfig // of discipline FairShare; no other reads it
	TieBreak   TieBreak        // a change applies to flows that become backlogged after it
	TierMode   TierMode
	// PromotionBudget is the share of dispatches that starved heads may take, in millionths: 0 (none) to a million
	// (unlimited).
	PromotionBudget int64
	// GuaranteedTop makes the highest tier guaranteed in Shared mode: its waiters are never displaced, and each of its
	// flows has its capacity reserved. Otherwise it is like the other tiers. It has no effect in Weighted mode, where
	// each tier has its share of the queue.
	GuaranteedTop bool
	// Tiers are the tiers, highest first; 1 to MaxTiers.
	Tiers []TierConfig
	// Classes are the classes of each tier, at most MaxClasses in each ring; without any, each tier has a single class.
	// A request that names no class of its ring belongs to the ring's first.
	Classes []ClassConfig
	// Order is the order of the requests within each flow without Classes; each class has an order of its own.
	Order Order
	// Ageing is the ClassConfig.Ageing without Classes.
	Ageing time.Duration
	// LocalityQuantum is the largest lead, in cost over weight, at which a flow may still go before the flow whose turn
	// it is, because its request suits the free slot better; 0 to MaxCost, and 0 with OneFlow.
	LocalityQuantum Cost
	// Cursor is where the next turn of the classes begins.
	Cursor Cursor
	// Priorities makes Path.Strict and Path.Priority count in the order of requests.
	Priorities bool
	// Levels is the number of nested flows that a request names, 1 to MaxFlowLevels; 0 counts as 1. With 1, a request
	// names Request.Flow only. Weights, FlowCapacity and FlowCapacities apply to Request.Flow. Its nested flows share
	// its places, by weight when the queue is full.
	Levels int
	// ByLevel configures the flows by level, outermost first: none, or one for each of Levels. The first level replaces
	// Weights and FlowCapacities, and its Capacity replaces FlowCapacity. Without ByLevel, nested flows have the weight
	// of their role if they are innermost, and otherwise WeightOne, and only the capacity of the flow above.
	ByLevel []LevelConfig
}

// LevelConfig configures the flows of a level.
type LevelConfig struct {
	// Weights has weights by key, regardless of the flow above. They override the weights of roles.
	Weights map[string]Weight `graph:"key"`
	// Capacity is the largest number of waiting requests of one flow of the level, 1 to TotalCapacity; 0 means
	// FlowCapacity in the first level, and no limit in another. Capacities overrides it by key.
	Capacity   int
	Capacities map[string]int `graph:"key"`
}

// RoleConfig configures a role.
type RoleConfig struct {
	// Weight is the weight of each of its flows; 0 counts as WeightOne.
	Weight Weight
}

// ClassConfig configures a class.
type ClassConfig struct {
	// Name is unique in its ring and not empty, and has at most MaxClassName bytes.
	Name string
	// Quantum is the class's earnings in each round of its tier, in units of cost; 1 to MaxCost.
	Quantum Cost
	// Order is the order of the requests within each of its flows.
	Order Order
	// Ageing is the time in which a request of order WSPT becomes as urgent as a request of 1/e of its cost; 0 means no
	// ageing, otherwise MinAgeing to MaxAgeing.
	Ageing time.Duration
	// Ring is the name of its ring, at most MaxClassName bytes; "" is a valid name. The rings of a tier take turns, one
	// request each, and the classes of a ring share its turns by quantum. A request that names no ring belongs to the
	// first class's ring.
	Ring string
	// Limits bound the waiting requests of the class.
	Limits ClassLimits
}

// MaxClasses is the largest number of classes in a ring, MaxClassesInAll in all rings together, and MaxFlowLevels of
// flows that a request names. MaxClassName is the longest name of a class or a ring, in bytes, since requests name it
// in a header.
const (
	MaxClasses      = 64
	MaxClassesInAll = 256
	MaxFlowLevels   = maxLevels - 1
	MaxClassName    = 256
)

// TierConfig configures a tier.
type TierConfig struct {
	// Name is unique and not empty.
	Name string
	// Weight is the tier's weight in Weighted mode; 0 counts as WeightOne.
	Weight Weight
	// QueueSize is the largest number of requests that wait in the tier. With 0 the tier never queues; with NoLimit it has
	// no limit of its own.
	QueueSize int
	// QueueTimeout is the TTL of the tier's requests; 0 means QueueTTL.
	QueueTimeout time.Duration
	// StarvationThreshold is the age of its oldest waiter at which the tier is starved; 0 means never.
	StarvationThreshold time.Duration
}

// NoLimit is the QueueSize of a tier that only TotalCapacity limits.
const NoLimit = -1

// DefaultConfig returns the seed's defaults: one tier, 1000 waiting requests, 100 per flow, a TTL of 30 s.
func DefaultConfig() Config {
	return Config{
		TotalCapacity:   1000,
		FlowCapacity:    100,
		QueueTTL:        30 * time.Second,
		PromotionBudget: 100_000,
		FairShare:       DefaultFairShare(),
		Tiers:           []TierConfig{{Name: "default", QueueSize: NoLimit}},
	}
}

// MaxTiers is the largest number of configured tiers. A TierSet has room for twice as many, since removed tiers keep
// their identifiers while they drain.
const (
	MaxTiers = maxTiers / 2
	maxTiers = 64
)

// Validate reports every problem at once, as invalid.Problems.
func (c *Config) Validate() error {
	var ps invalid.Problems
	invalid.AtLeast(&ps, invalid.At("TotalCapacity"), c.TotalCapacity, 1)
	c.checkFlowCapacity(&ps, invalid.At("FlowCapacity"), c.FlowCapacity)
	for _, flow := range slices.Sorted(maps.Keys(c.FlowCapacities)) {
		c.checkFlowCapacity(&ps, invalid.At("FlowCapacities", invalid.Key(flow)), c.FlowCapacities[flow])
	}
	for _, flow := range slices.Sorted(maps.Keys(c.Weights)) {
		c.Weights[flow].check(&ps, invalid.At("Weights", invalid.Key(flow)))
	}
	for _, role := range slices.Sorted(maps.Keys(c.Roles)) {
		if w := c.Roles[role].Weight; w != 0 {
			w.check(&ps, invalid.At("Roles", invalid.Key(role), "Weight"))
		}
	}
	invalid.Above(&ps, invalid.At("QueueTTL"), c.QueueTTL, 0)
	if c.PromotionBudget < 0 || c.PromotionBudget > budgetUnlimited {
		ps.Add(invalid.At("PromotionBudget"), float64(c.PromotionBudget)/budgetUnlimited, "must be from 0 to 1")
	}
	switch n := len(c.Tiers); {
	case n == 0:
		ps.Add(invalid.At("Tiers"), invalid.Shown("[]"), "must have at least one tier")
	case n > MaxTiers:
		ps.Add(invalid.At("Tiers"), invalid.Shown(fmt.Sprintf("%d tiers", n)), "must be at most %d", MaxTiers)
	}
	var names invalid.Names
	for i, t := range c.Tiers {
		names.Check(&ps, invalid.At("Tiers", i, "Name"), t.Name)
		t.check(&ps, invalid.At("Tiers", i))
	}
	c.checkSharing(&ps)
	if c.Discipline == FairShare || c.FairShare != (FairShareConfig{}) {
		c.FairShare.check(&ps, invalid.At("FairShare"))
	}
	return ps.Err()
}

func (c *Config) checkFlowCapacity(ps *invalid.Problems, at invalid.Path, n int) {
	if invalid.AtLeast(ps, at, n, 1) && c.TotalCapacity >= 1 && n > c.TotalCapacity {
		ps.Add(at, n, "must be at most %s (%d)", invalid.At("TotalCapacity"), c.TotalCapacity)
	}
}

func (t *TierConfig) check(ps *invalid.Problems, at invalid.Path) {
	if t.Weight != 0 {
		t.Weight.check(ps, at.At("Weight"))
	}
	if t.QueueSize != NoLimit {
		invalid.Within(ps, at.At("QueueSize"), t.QueueSize, 0, math.MaxInt32)
	}
	if t.QueueTimeout != 0 {
		invalid.Above(ps, at.At("QueueTimeout"), t.QueueTimeout, 0)
	}
	if t.StarvationThreshold != 0 {
		invalid.Above(ps, at.At("StarvationThreshold"), t.StarvationThreshold, 0)
	}
}

func (w Weight) check(ps *invalid.Problems, at invalid.Path) {
	if w < MinWeight || w > MaxWeight {
		ps.Add(at, w.decimal(), "must be from %s to %s", MinWeight.decimal(), MaxWeight.decimal())
	}
}

// decimal returns the weight in decimal notation, for messages only.
func (w Weight) decimal() invalid.Shown {
	return invalid.Shown(strconv.FormatFloat(float64(w)/float64(WeightOne), 'f', -1, 64))
}

// checkSharing checks the fields for classes and flows.
func (c *Config) checkSharing(ps *invalid.Problems) {
	c.checkLevels(ps)
	if invalid.Within(ps, invalid.At("LocalityQuantum"), c.LocalityQuantum, 0, MaxCost) && c.LocalityQuantum > 0 && c.Discipline == OneFlow {
		ps.Add(invalid.At("LocalityQuantum"), int64(c.LocalityQuantum), "must be 0 with %s none, which knows no flows", invalid.At("Discipline"))
	}
	c.checkClasses(ps)
	checkAgeing(ps, invalid.At("Ageing"), c.Ageing)
}

// LooksForMatches reports whether any request may take another's turn.
func (c *Config) LooksForMatches() bool {
	return c.LocalityQuantum > 0 || slices.ContainsFunc(c.classes(), func(cc ClassConfig) bool { return cc.Order == Locality })
}

// mostWaiting caps every capacity. It is more than memory can hold, and small enough that the sum of all flows'
// capacities does not overflow.
const mostWaiting = 1<<31 - 1

// totalCapacity returns TotalCapacity, at most mostWaiting.
func (c *Config) totalCapacity() int { return min(c.TotalCapacity, mostWaiting) }

// flowCapacity returns a flow's capacity, at most mostWaiting.
func (c *Config) flowCapacity(flow string) int {
	n, ok := c.FlowCapacities[flow]
	if !ok {
		n = c.FlowCapacity
	}
	if len(c.ByLevel) > 0 {
		n = cmp.Or(c.capacityAt(0, flow), c.FlowCapacity)
	}
	return min(n, mostWaiting)
}
