package dispatch

import (
	"fmt"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/invalid"
	"github.com/weir-epp/weir/pkg/stock"
)

// Configurable returns Configure's error for the configuration, as invalid.Problems, or nil. It changes nothing.
func (m *Machine) Configurable(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	var ps invalid.Problems
	ps.Under(invalid.At("Queue"), m.queue.Reconfigurable(cfg.Queue, fairqueue.TierSet(m.ledger.InUse())))
	return ps.Err()
}

// Configure changes the whole configuration, or nothing if it returns an error. Waiters keep their places and
// deadlines; leases and counters stay. A removed tier keeps its rank, accepts no arrivals and drains. The tier mode,
// the capacity mode and the discipline cannot change.
func (m *Machine) Configure(now time.Time, cfg Config) error {
	if err := m.Configurable(cfg); err != nil {
		return err
	}
	m.begin(now)
	// From here on nothing is refused. Drained tiers make room for new ones.
	m.queue.Forget(fairqueue.TierSet(m.ledger.InUse()))
	m.forgetCounts()
	if err := m.queue.Reconfigure(cfg.Queue); err != nil {
		panic(fmt.Sprintf("dispatch: a configuration that was checked is refused: %v", err))
	}
	m.adopt(cfg)
	m.reviseRoles()
	m.times = m.placer.Times()
	m.recountLeases()
	m.ledger.Configure(cfg.Stock)
	m.refollow()
	m.refail()
	m.tellBounds()
	m.victims.reorder(cfg.VictimOrder)
	m.rankTiers()
	m.reopen()
	m.run() // with Enabled false this releases all waiters
	return nil
}

// forgetCounts drops the counters of unused tier identifiers, so that the next tiers with them start at zero.
func (m *Machine) forgetCounts() {
	var known fairqueue.TierSet
	for _, t := range m.queue.Tiers() {
		known = known.With(t.ID)
	}
	for id := range stock.MaxTiers {
		if !known.Has(id) {
			m.counts.displaced[id], m.counts.promotions[id] = 0, 0
		}
	}
	for pair := range m.counts.preempted {
		if !known.Has(pair[0]) || !known.Has(pair[1]) {
			delete(m.counts.preempted, pair)
		}
	}
}
