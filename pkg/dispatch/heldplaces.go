package dispatch

import (
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/stock"
)

// heldPlace is a slot held by a failure. It counts for its tenant's caps.
type heldPlace struct {
	tenant *tenant
	until  time.Time
}

// hold holds a slot for a tenant's failure, unless the tenant already holds most.
func (m *Machine) hold(f *failing, t *tenant, until time.Time, most int) {
	for i := range f.held {
		if f.held[i].tenant == t {
			most--
		}
	}
	if most <= 0 {
		return
	}
	f.held = append(f.held, heldPlace{t, until})
	m.countPlace(f.endpoint, t, 1)
}

// letGo ends the held slots that are over, or all of them.
func (m *Machine) letGo(f *failing, all bool) {
	f.held = slices.DeleteFunc(f.held, func(h heldPlace) bool {
		over := all || !h.until.After(m.now)
		if over {
			m.countPlace(f.endpoint, h.tenant, -1)
			m.touch(h.tenant)
		}
		return over
	})
}

// countPlace adds a held slot to its tenant's caps, or removes it.
func (m *Machine) countPlace(e Endpoint, t *tenant, change int32) {
	t.places += change
	t.byEndpoint.change(e, change, 0, m.endpointLimit())
	m.flows.listFull(t)
}

// withhold counts fictitious requests at an endpoint, so that real ones stay away.
func (m *Machine) withhold(f *failing) {
	bounds, ready := m.ledger.Bounds(stock.BackendID(f.endpoint))
	if !ready {
		return
	}
	n := len(f.held)
	switch {
	case f.shut(m.now):
		n = min(bounds.Requests.Upper.Ceil(), stock.MaxPerBackend)
		m.shut.Add(f.endpoint)
	case f.circuit.State() == stock.CircuitHalfOpen: // one slot is free as soon as not all are taken
		n = max(n, int(bounds.Requests.Lower/stock.One)-1-f.leases.Len())
		fallthrough
	default:
		m.shut.Remove(f.endpoint)
	}
	if n != f.withheld {
		f.withheld = n
		m.tellForeign(f)
	}
}

// withheldAt returns the number of fictitious requests to count at an endpoint.
func (m *Machine) withheldAt(e Endpoint) int {
	if f := m.failing[e]; f != nil {
		return f.withheld
	}
	return 0
}

// tellForeign passes an endpoint's foreign stock, plus its fictitious requests, to the ledger and the placer.
func (m *Machine) tellForeign(f *failing) {
	held := stock.Amount{Requests: f.foreign.Requests + f.withheld, Tokens: f.foreign.Tokens}
	if counts, ready := m.ledger.SetForeign(stock.Foreign{ID: stock.BackendID(f.endpoint), Held: held}); ready {
		m.placer.SetForeign(f.endpoint, counts.Requests, int64(counts.Tokens))
		m.roomAt(f.endpoint)
	}
}
