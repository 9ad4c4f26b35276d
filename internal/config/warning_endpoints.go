package config

import (
	"fmt"
	"strings"

	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// EndpointWarnings returns the document's statements about models and slots that these endpoints, ready or not,
// contradict. Without endpoints nothing is known of them, and nothing is said.
func (d Document) EndpointWarnings(endpoints []scheduling.Endpoint) []Problem {
	var ws []Problem
	warn := func(path, format string, args ...any) {
		ws = append(ws, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	d.unlistedModels(warn, endpoints)
	if d.RequestQueueController.unbounded() {
		n := 0
		for _, e := range endpoints {
			n += min(e.Slots, 1)
		}
		if n > 0 {
			warn("requestQueueController.slotsPerBackend", "%s: the slots that %d of %d endpoints report have no effect", unbounded, n,
				len(endpoints))
		}
	}
	return ws
}

// unlistedModels is about models and targets that no endpoint serves, where all of them say which they do.
func (d Document) unlistedModels(warn warner, endpoints []scheduling.Endpoint) {
	listed := map[string]bool{}
	for _, e := range endpoints {
		if len(e.Models) == 0 {
			return // it serves any model
		}
		for _, model := range e.Models {
			listed[model] = true
		}
	}
	if len(endpoints) == 0 {
		return
	}
	const reason = "%q: no endpoint lists this model: its requests get 503 (no-endpoint) until one does"
	for i, m := range d.Models {
		if len(m.Targets) == 0 && !listed[m.Name] {
			warn(index("models", i)+".name", reason, m.Name)
		}
		for j, target := range m.Targets {
			if !listed[target.Name] {
				warn(index(index("models", i)+".targets", j)+".name", reason, target.Name)
			}
		}
	}
}

// ReservationWarnings returns the reservations of tiers that these endpoints have no room for, if all of them are ready.
func (d Document) ReservationWarnings(endpoints []scheduling.Endpoint) []Problem {
	cfg := d.FlowcontrolConfig()
	ready := make([]stock.Backend, len(endpoints))
	for i, e := range endpoints {
		ready[i] = stock.Backend{ID: stock.BackendID(i), Slots: int32(min(e.Slots, stock.MaxPerBackend))}
	}
	if !cfg.Enabled {
		return nil
	}
	if held := ClampedReservations(cfg, ready); held != "" {
		return []Problem{{Path: "tiers", Message: "the reservations are more than the capacity of the endpoints: they are filled " +
			"from the highest tier down (" + held + ")"}}
	}
	return nil
}

// ClampedReservations describes how much of its reservation each tier gets with these backends; "" if all get everything,
// no backend is ready, or the stock is unbounded.
func ClampedReservations(cfg flowcontrol.Config, ready []stock.Backend) string {
	if len(ready) == 0 || cfg.Stock.Unbounded {
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
