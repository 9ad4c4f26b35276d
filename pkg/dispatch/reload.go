package dispatch

import (
	"fmt"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// Configurable reports why Configure would be refused; nil: it would not. It changes nothing.
func (m *Machine) Configurable(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	return m.queue.Reconfigurable(cfg.Queue, fairqueue.TierSet(m.ledger.InUse()))
}

// Configure changes the configuration: all of it, or on an error nothing. Waiters keep their places and deadlines, leases
// and counters stay; a tier that is listed no more keeps its rank, takes no arrivals and drains. The Placer has changed to
// the same bounds already. The tier mode, the capacity mode and the discipline cannot change.
func (m *Machine) Configure(now time.Time, cfg Config) error {
	if err := m.Configurable(cfg); err != nil {
		return err
	}
	m.begin(now)
	// Nothing is refused from here on. Those that are gone make room for new ones.
	m.queue.Forget(fairqueue.TierSet(m.ledger.InUse()))
	m.forgetCounts()
	if err := m.queue.Reconfigure(cfg.Queue); err != nil {
		panic(fmt.Sprintf("dispatch: a configuration that was checked is refused: %v", err))
	}
	m.config = cfg
	m.recount()
	m.ledger.Configure(cfg.Stock)
	m.victims.reorder(cfg.VictimOrder)
	m.rankTiers()
	m.reopen()
	m.run() // with Enabled false it releases everybody
	return nil
}

// forgetCounts drops the counters of identifiers that no tier has any more: the next one to get them starts at zero.
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
