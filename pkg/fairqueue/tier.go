package fairqueue

import "time"

// tier is one priority level.
type tier struct {
	id         int // stable; a rank changes when tiers are added or removed
	rank       int // 0 is the highest
	config     TierConfig
	removed    bool // takes no arrivals any more, and drains
	discipline discipline
	class      class
	flows      flowTable
	queued     int
	reserved   int    // Σ capacity of the tracked flows
	weights    Weight // Σ weight of the tracked flows
	deficit    int64  // weighted mode: the service that it is owed, in cost; see weighted.go
	reset      uint64 // the number of the last charge when deficit was last reset
	promoted   uint64
	shed       sheddingOrder

	freeFlowLanes []*flowLane
	freeLanes     []*classLane
}

func newTier(id int, cfg TierConfig, d discipline) *tier {
	return &tier{
		id: id, config: cfg, discipline: d,
		class: class{lanes: map[Lane]*classLane{}},
		flows: newFlowTable(),
	}
}

// couldGo is the number of waiters that could go if there were room.
func (t *tier) couldGo() int { return t.queued - t.class.stuck }

func (t *tier) ttl(c *Config) time.Duration {
	if t.config.QueueTimeout > 0 {
		return t.config.QueueTimeout
	}
	return c.QueueTTL
}

func (t *tier) weight() Weight {
	if t.config.Weight > 0 {
		return t.config.Weight
	}
	return WeightOne
}

// TierSet is a set of tiers by their identifiers.
type TierSet uint64

// AllTiers holds every tier.
const AllTiers = ^TierSet(0)

// Has says whether the tier is in the set.
func (s TierSet) Has(id int) bool { return s&(1<<id) != 0 }

// With is the set and the tier.
func (s TierSet) With(id int) TierSet { return s | 1<<id }
