package dispatch

import (
	"slices"
	"time"
)

// timeAsked is an engine's Retry-After.
//
// The engine, or a gateway before it, may limit single tenants, and then asks for time although it has room for others.
// So the word of one tenant shuts its endpoint only while no other tenant has requests, and until another's next
// arrival. Two tenants with the answer shut it for the whole time.
type timeAsked struct {
	busy   time.Time // until then it wants no request
	alone  bool      // busy by the word of one tenant
	tenant string    `graph:"key"` // the one that was told last
	until  time.Time // the end of the time that it was told
}

// soleWord has the endpoints that are shut by the word of one tenant alone. There is at most one such tenant: another's
// arrival reopens them.
type soleWord struct {
	tenant    string     `graph:"key"`
	endpoints []Endpoint // those whose timeAsked.alone is true, and perhaps some whose time is over
}

// askedFor notes a 429 with Retry-After to a tenant.
func (m *Machine) askedFor(f *failing, t *tenant, wait time.Duration) {
	until := m.now.Add(min(wait, mostRetryAfter))
	others := f.asked.tenant != t.key && m.now.Before(f.asked.until)
	f.asked.tenant, f.asked.until = t.key, until
	if !others && !m.isAlone(t) || !m.mayShut(f.endpoint) {
		return
	}
	f.asked.alone = !others && (f.asked.alone || !m.now.Before(f.asked.busy))
	if f.asked.alone && !slices.Contains(m.sole.endpoints, f.endpoint) {
		m.sole.tenant, m.sole.endpoints = t.key, append(m.sole.endpoints, f.endpoint)
	}
	if until.After(f.asked.busy) {
		f.asked.busy = until
	}
}

// isAlone reports whether no other tenant has requests, waiting or in flight.
func (m *Machine) isAlone(t *tenant) bool {
	return t.waiting == m.queue.Len() && t.inflight == m.ledger.Stock()
}

// arrivesBeside reopens the endpoints that are shut by the word of one tenant alone, if w is another's.
func (m *Machine) arrivesBeside(w *Waiter) {
	if len(m.sole.endpoints) == 0 || m.sole.tenant == w.queued.Flow {
		return
	}
	for _, e := range m.sole.endpoints {
		if f := m.failing[e]; f != nil && f.asked.alone {
			f.asked.busy, f.asked.alone = time.Time{}, false
			m.remind(f)
			m.withhold(f)
		}
	}
	m.sole = soleWord{}
	m.tidy()
}
