package app

import (
	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/pkg/stock"
)

// noteReservations logs, once for each new result, that the pool is too small for the reservations. The ledger then
// fills the reservations from the highest tier down.
func (p *Pool) noteReservations(ready []stock.Backend) {
	note := config.ClampedReservations(p.flow, ready)
	if note != "" && note != p.clamped {
		p.log.Info("WARNING: the reservations are more than the capacity: they are filled from the highest tier down, and "+
			"the tiers below wait for their starvationThreshold, even while the model servers are idle: lower reservedFloor or "+
			"reservedPerSlot", "held", note)
	}
	p.clamped = note
}
