package app

import (
	"fmt"
	"strings"

	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/stock"
)

// noteReservations logs, once for each new result, that the pool is too small for the reservations. The ledger then
// fills them from the highest tier down.
func (p *Pool) noteReservations(ready []stock.Backend) {
	note := clampedReservations(p.flow, ready)
	if note != "" && note != p.clamped {
		p.log.Info("WARNING: the reservations are more than the capacity: they are filled from the highest tier down, and "+
			"the tiers below wait for their starvationThreshold, even while the model servers are idle: lower reservedFloor or "+
			"reservedPerSlot", "held", note)
	}
	p.clamped = note
}

// clampedReservations describes how much of its reservation each tier gets; "" if all get everything, or no backend is
// ready.
func clampedReservations(cfg flowcontrol.Config, ready []stock.Backend) string {
	if len(ready) == 0 {
		return ""
	}
	wanted := make([]stock.Reservation, len(cfg.Tiers))
	for i, t := range cfg.Tiers {
		wanted[i] = stock.Reservation{Tier: i, Floor: t.ReservedFloor, PerSlot: t.ReservedPerSlot}
	}
	ledger := stock.New(cfg.Stock)
	ledger.SetReservations(wanted)
	ledger.SetBackends(ready)
	clamped := false
	var held []string
	for i, r := range wanted {
		if n := r.Wanted(ledger.Capacity()); n > 0 {
			held = append(held, fmt.Sprintf("%s %d of %d", cfg.Queue.Tiers[i].Name, ledger.Reserved(i), n))
			clamped = clamped || ledger.Reserved(i) < n
		}
	}
	if !clamped {
		return ""
	}
	return fmt.Sprintf("%s; capacity %d", strings.Join(held, ", "), ledger.Capacity())
}
