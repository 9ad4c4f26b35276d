package fairqueue

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
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

// Config is the queue's configuration. Every field but TierMode, CapacityMode and Discipline can change at run time.
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
}

// TierConfig is one tier's.
type TierConfig struct {
	// Name is unique and not empty.
	Name string
	// Weight is its share in Weighted mode; 0 counts as WeightOne.
	Weight Weight
	// QueueSize is the largest number of requests that wait in the tier; negative: no limit of its own; 0: it never
	// queues.
	QueueSize int
	// QueueTimeout takes the place of QueueTTL; 0: QueueTTL.
	QueueTimeout time.Duration
	// StarvationThreshold is the age at which its oldest waiter counts as starved; 0: never.
	StarvationThreshold time.Duration
}

// DefaultConfig is the seed's: one tier, 1000 waiting requests, 100 a flow, 30 s.
func DefaultConfig() Config {
	return Config{
		TotalCapacity:   1000,
		FlowCapacity:    100,
		QueueTTL:        30 * time.Second,
		PromotionBudget: 100_000,
		Tiers:           []TierConfig{{Name: "default", QueueSize: -1}},
	}
}

// maxTiers bounds the ranks, so that a TierSet holds them all with room for removed tiers that still drain.
const maxTiers = 64

// Validate reports every problem at once; the names are those of the configuration file.
func (c *Config) Validate() error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if c.TotalCapacity < 1 {
		bad("fairRequestQueue.totalCapacity: %d: want at least 1", c.TotalCapacity)
	}
	capacity := func(field string, n int) {
		switch {
		case n < 1:
			bad("%s: %d: want at least 1", field, n)
		case n > c.TotalCapacity:
			bad("%s: %d: want at most totalCapacity %d", field, n, c.TotalCapacity)
		}
	}
	capacity("fairRequestQueue.flowCapacity", c.FlowCapacity)
	for _, flow := range slices.Sorted(maps.Keys(c.FlowCapacities)) {
		capacity(fmt.Sprintf("flows.capacities[%q]", flow), c.FlowCapacities[flow])
	}
	for _, flow := range slices.Sorted(maps.Keys(c.Weights)) {
		if w := c.Weights[flow]; w < MinWeight || w > MaxWeight {
			bad("flows.weights[%q]: %g: want 0.001 to 1000000", flow, float64(w)/float64(WeightOne))
		}
	}
	if c.QueueTTL <= 0 {
		bad("fairRequestQueue.queueTTL: %v: want more than 0", c.QueueTTL)
	}
	if c.PromotionBudget < 0 || c.PromotionBudget > budgetUnlimited {
		bad("fairRequestQueue.promotionBudget: %g: want 0 to 1", float64(c.PromotionBudget)/budgetUnlimited)
	}
	if len(c.Tiers) == 0 || len(c.Tiers) > maxTiers/2 {
		bad("tiers: %d tiers: want 1 to %d", len(c.Tiers), maxTiers/2)
	}
	seen := map[string]bool{}
	for i, t := range c.Tiers {
		field := fmt.Sprintf("tiers[%d]", i)
		if t.Name == "" || seen[t.Name] {
			bad("%s.name: %q: want a name that is not empty and unique", field, t.Name)
		}
		seen[t.Name] = true
		if t.Weight != 0 && (t.Weight < MinWeight || t.Weight > MaxWeight) {
			bad("%s.weight: %g: want 0.001 to 1000000", field, float64(t.Weight)/float64(WeightOne))
		}
		if t.QueueTimeout < 0 {
			bad("%s.queueTimeout: %v: want more than 0", field, t.QueueTimeout)
		}
		if t.StarvationThreshold < 0 {
			bad("%s.starvationThreshold: %v: want more than 0", field, t.StarvationThreshold)
		}
		if t.QueueSize > math.MaxInt32 {
			bad("%s.queueSize: %d: too large", field, t.QueueSize)
		}
	}
	return errors.Join(problems...)
}

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
