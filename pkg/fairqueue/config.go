package fairqueue

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/weir-epp/weir/pkg/invalid"
)

// CapacityMode says how flows divide the queue's room.
type CapacityMode uint8

const (
	// Reserved is the seed's: each tracked flow reserves its flowCapacity out of totalCapacity.
	Reserved CapacityMode = iota
	// Shared lets flows fill totalCapacity together; when it is full, a more entitled arrival displaces.
	Shared
)

// TierMode says how tiers share the releases.
type TierMode uint8

const (
	// Strict serves the highest tier first, with a starvation guard.
	Strict TierMode = iota
	// Weighted gives each backlogged tier its weight's share.
	Weighted
)

// Discipline says how flows share their class.
type Discipline uint8

const (
	// WFQ is weighted fair queueing by finish tags, the seed's.
	WFQ Discipline = iota
	// OneFlow puts all requests of a class into one flow: first come, first served.
	OneFlow
)

// TieBreak says which flow goes first of those whose heads have the same tag.
type TieBreak uint8

const (
	// ByArrival is the one whose head arrived first.
	ByArrival TieBreak = iota
	// NewcomerFirst is one that has not been served since it became backlogged, and among several such, or none, the one
	// whose head arrived first. With equal weights and costs a flow that begins to wait has the tag of whoever is next:
	// so it mostly does not wait for those that always have more.
	NewcomerFirst
)

// Config is the queue's configuration. Every field but TierMode, CapacityMode, Discipline and Levels can change at run
// time.
type Config struct {
	// TotalCapacity is the largest number of waiting requests, FlowCapacity that of one flow; both at least 1, and
	// FlowCapacity <= TotalCapacity. FlowCapacities overrides it by flow key.
	TotalCapacity  int
	FlowCapacity   int
	FlowCapacities map[string]int
	CapacityMode   CapacityMode
	// QueueTTL is the longest wait of a tier that has no QueueTimeout of its own; more than 0.
	QueueTTL time.Duration
	// Weights by flow key; a flow that is not listed has WeightOne.
	Weights    map[string]Weight
	Discipline Discipline
	TieBreak   TieBreak // a change counts for flows that become backlogged from then on
	TierMode   TierMode
	// PromotionBudget is the share of dispatches, in millionths, that starved heads may take; a million: unlimited.
	PromotionBudget int64
	// GuaranteedTop makes the highest tier guaranteed in shared mode: never displaced, each of its flows with its
	// capacity reserved. Otherwise it is like the others. In Weighted mode none is: each has its share of the queue.
	GuaranteedTop bool
	// Tiers, highest first; at least one.
	Tiers []TierConfig
	// Classes share each tier, in this order where their turns are equal; none: no tier is shared. A request that names
	// none of them is of the first. At most MaxClasses.
	Classes []ClassConfig
	// Cursor says where the turn of the classes goes on.
	Cursor Cursor
	// Priorities: requests name a Path.Strict and a Path.Priority.
	Priorities bool
	// Levels is how many flows a request names, each under the one before: 1 for Request.Flow alone, up to
	// MaxFlowLevels; 0 counts as 1. Weights, capacities and caps are those of the first; those under one have equal
	// weights and share its places.
	Levels int
}

// ClassConfig is one class's.
type ClassConfig struct {
	// Name is unique and not empty.
	Name string
	// Quantum is its share of its tier, in cost for each round; 1 to MaxCost.
	Quantum Cost
	// Order of the requests of its flows.
	Order Order
}

// MaxClasses is the most classes, and MaxFlowLevels the most flows that a request names.
const (
	MaxClasses    = 64
	MaxFlowLevels = maxLevels - 1
)

// TierConfig is one tier's.
type TierConfig struct {
	// Name is unique and not empty.
	Name string
	// Weight is its share in Weighted mode; 0 counts as WeightOne.
	Weight Weight
	// QueueSize is the largest number of requests that wait in the tier; 0: it never queues; NoLimit: it has no limit of
	// its own.
	QueueSize int
	// QueueTimeout takes the place of QueueTTL; 0: QueueTTL.
	QueueTimeout time.Duration
	// StarvationThreshold is the age at which its oldest waiter counts as starved; 0: never.
	StarvationThreshold time.Duration
}

// NoLimit is the QueueSize of a tier that only the queue's capacity limits.
const NoLimit = -1

// DefaultConfig is the seed's: one tier, 1000 waiting requests, 100 a flow, 30 s.
func DefaultConfig() Config {
	return Config{
		TotalCapacity:   1000,
		FlowCapacity:    100,
		QueueTTL:        30 * time.Second,
		PromotionBudget: 100_000,
		Tiers:           []TierConfig{{Name: "default", QueueSize: NoLimit}},
	}
}

// MaxTiers is the largest number of tiers. Ranks go up to maxTiers, so that a TierSet holds them all with room for
// removed tiers that still drain.
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

// decimal is the weight for messages; it decides nothing.
func (w Weight) decimal() invalid.Shown {
	return invalid.Shown(strconv.FormatFloat(float64(w)/float64(WeightOne), 'f', -1, 64))
}

// checkSharing checks the levels below the tiers.
func (c *Config) checkSharing(ps *invalid.Problems) {
	invalid.Within(ps, invalid.At("Levels"), c.Levels, 0, MaxFlowLevels)
	if n := len(c.Classes); n > MaxClasses {
		ps.Add(invalid.At("Classes"), invalid.Shown(fmt.Sprintf("%d classes", n)), "must be at most %d", MaxClasses)
	}
	var names invalid.Names
	for i, class := range c.Classes {
		names.Check(ps, invalid.At("Classes", i, "Name"), class.Name)
		invalid.Within(ps, invalid.At("Classes", i, "Quantum"), class.Quantum, 1, MaxCost)
	}
}

func (c *Config) levels() int { return max(1, c.Levels) }

func (c *Config) weight(flow string) Weight {
	if w, ok := c.Weights[flow]; ok {
		return w
	}
	return WeightOne
}

// mostWaiting is what a capacity beyond it counts as: more requests than memory can hold, and few enough that the
// capacities of all flows can be added.
const mostWaiting = 1 << 36

func (c *Config) totalCapacity() int { return min(c.TotalCapacity, mostWaiting) }

func (c *Config) flowCapacity(flow string) int {
	n, ok := c.FlowCapacities[flow]
	if !ok {
		n = c.FlowCapacity
	}
	return min(n, mostWaiting)
}
