package fairqueue

import "time"

// tier is one priority level.
type tier struct {
	rings    []*ring  // in configured order, then those that drain; at least one
	next     *ring    // whose turn is next
	classes  []*class // of all rings: in configured order, then those that drain; at least one
	queue    *FairRequestQueue
	id       int // stable, unlike the rank, which changes when tiers are added or removed
	rank     int // 0 is the highest
	config   TierConfig
	removed  bool // accepts no arrivals, and drains
	queued   int
	stuck    int    // Σ stuck of the lanes of its classes
	reserved int    // Σ capacity of the tracked flows
	deficit  int64  // weighted mode: the service owed to it, in units of cost; see weighted.go
	reset    uint64 // number of the last charge when deficit was reset
	promoted uint64
	visits   uint64 // classes visited by turns
}

func newTier(q *FairRequestQueue, id int, cfg TierConfig) *tier {
	t := &tier{queue: q, id: id, config: cfg}
	var list []*class
	for i, cc := range q.config.classes() {
		c := newClass(t, cc, q)
		c.number = q.config.numberOf(i)
		list = append(list, c)
	}
	t.arrange(list)
	return t
}

// couldGo returns the number of waiters that could go if there were room.
func (t *tier) couldGo() int { return t.queued - t.stuck }

// canGo reports whether a waiter could go below the lower bound, given the present state of the lanes.
func (t *tier) canGo() bool {
	for _, c := range t.classes {
		if c.open.Len() > 0 {
			return true
		}
	}
	return false
}

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

// TierSet is a set of tiers, by identifier.
type TierSet uint64

// AllTiers holds every tier.
const AllTiers = ^TierSet(0)

// Has reports whether the tier is in the set.
func (s TierSet) Has(id int) bool { return s&(1<<id) != 0 }

// With returns the set with the tier added.
func (s TierSet) With(id int) TierSet { return s | 1<<id }
