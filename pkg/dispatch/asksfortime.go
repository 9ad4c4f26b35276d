package dispatch

import "time"

// timeAsked is the state of an endpoint that has answered 429 with Retry-After.
//
// The engine, or a gateway before it, may limit single tenants, and then has room for others. So the answer to one
// tenant shuts the endpoint only while no other tenant has requests, and until another's next arrival. Answers to two
// tenants shut it for the whole time.
type timeAsked struct {
	busy   time.Time // end of the time without requests
	tenant string    `graph:"key"` // tenant of the last such answer
	until  time.Time // end of the time in that answer
	sole   int       // 1 + the index in Machine.sole while one tenant's answers shut the endpoint; else 0
}

// askedFor notes a 429 with Retry-After to a tenant.
func (m *Machine) askedFor(f *failing, t *tenant, wait time.Duration) {
	until := m.now.Add(min(wait, mostRetryAfter))
	others := f.asked.tenant != t.key && m.now.Before(f.asked.until)
	f.asked.tenant, f.asked.until = t.key, until
	switch {
	case !m.mayShut(f.endpoint):
		return
	case others:
		m.dropSole(f)
	case !m.isAlone(t):
		return
	case f.asked.sole == 0 && m.now.Before(f.asked.busy): // two tenants have shut it: one does not extend that
		return
	case f.asked.sole == 0:
		m.sole = append(m.sole, f)
		f.asked.sole = len(m.sole)
	}
	if until.After(f.asked.busy) {
		f.asked.busy = until
	}
}

// isAlone reports whether no other tenant has requests, waiting or in flight.
func (m *Machine) isAlone(t *tenant) bool {
	return t.waiting == m.queue.Len() && t.inflight == m.ledger.Stock()
}

// dropSole removes an endpoint from Machine.sole, if it is there.
func (m *Machine) dropSole(f *failing) {
	if f.asked.sole == 0 {
		return
	}
	n := len(m.sole) - 1
	last := m.sole[n]
	m.sole[f.asked.sole-1], last.asked.sole = last, f.asked.sole
	m.sole[n], f.asked.sole = nil, 0
	m.sole = m.sole[:n]
}

// arrivesBeside reopens the endpoints that one tenant's answers have shut, if w is another's. All have the same tenant,
// which had no other beside it at each answer.
func (m *Machine) arrivesBeside(w *Waiter) {
	if len(m.sole) == 0 || m.sole[0].asked.tenant == w.queued.Flow {
		return
	}
	for len(m.sole) > 0 {
		f := m.sole[len(m.sole)-1]
		m.dropSole(f)
		f.asked.busy = time.Time{}
		m.remind(f)
		m.withhold(f)
	}
	m.tidy()
}
