package dispatch

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-epp/weir/internal/heap"
	"github.com/weir-epp/weir/pkg/stock"
)

// An engine that fails at once is always the emptiest, so it would get nearly all requests. Config.Circuits protects
// requests from it (ADR 0125):
//
//   - A failure continues to hold its slot for a while, as if the request had run normally.
//   - An engine with failures for half of its last answers gets nothing until its circuit permits a trial
//     (stock.Circuit).
//   - A 429 with Retry-After to two tenants, or to one without others, closes the room at its endpoint for that time, up
//     to mostRetryAfter.
//   - If Envoy skipped an endpoint for its last passes requests, and other endpoints answered them well, the endpoint
//     gets nothing for 30 s, and then one request as a trial (ADR 0207). Envoy does not know it, or cannot connect to
//     it.
//
// A flow whose requests also fail at other endpoints is itself to blame: its failures hold no slot and open no circuit.
// A shut endpoint counts as full, by fictitious foreign stock. At most half of the ready endpoints of the pool, and of
// each lane with waiters, are shut, and never the last endpoint that an arrival may use.

const (
	leastHold      = 100 * time.Millisecond
	holdPart       = 8 // of the mean service time, and of a bound for each tenant: an eighth
	mostRetryAfter = 30 * time.Second
	passes         = 8  // requests in a row that Envoy served elsewhere
	flowAnswers    = 16 // a tenant's answers kept
	fewFailures    = 2  // so many of these may fail elsewhere without blaming the tenant
)

// Answer is the known part of a model server's answer.
type Answer struct {
	// Status is its HTTP status; 0 if the client left before the answer, which does not count against the engine.
	Status int
	// RetryAfter is the engine's Retry-After with a 429; 0: none.
	RetryAfter time.Duration
}

// failing has the machine's record of the answers of an endpoint's engine.
type failing struct {
	endpoint Endpoint
	circuit  stock.Circuit
	asked    timeAsked    // by its Retry-After
	held     []heldPlace  // in no order
	passed   int          // requests in a row that Envoy served elsewhere
	since    time.Time    // when the first of these was sent
	foreign  stock.Amount // the counted stock of others there
	withheld int          // fictitious requests that also count there

	answers [6]uint64               // by the first digit of their status
	service time.Duration           // mean time of successful requests; 0: none yet
	leases  heap.Heap[*oldestLease] // those in flight
	due     time.Duration           // when the next part of this is over, after Machine.born; 0: never
	number  int32                   // in Machine.mends; 0: it is not there
}

func (f *failing) Key() heap.Key {
	return heap.Key{Value: uint64(f.due), Seq: uint64(f.endpoint)}
}

func (f *failing) Handle() *int32 { return &f.number }

// oldestLease is a lease in the heap of its endpoint's leases, the oldest first.
type oldestLease Lease

func (l *oldestLease) Key() heap.Key {
	return heap.Key{Value: uint64(l.begun) << 32, Seq: (*Waiter)(l).number}
}

func (l *oldestLease) Handle() *int32 { return &l.ageNumber }

// shut reports whether the endpoint gets no request now, and failed whether it gets none, or one as a trial.
func (f *failing) shut(now time.Time) bool { return f.circuit.Shut() || now.Before(f.asked.busy) }

func (f *failing) failed(now time.Time) bool {
	return f.circuit.State() != stock.CircuitClosed || now.Before(f.asked.busy)
}

// answered is a ring of a tenant's last answers: their endpoints, and whether they were failures.
type answered struct {
	at     [flowAnswers]Endpoint
	failed [flowAnswers]bool
	n      int
}

func (a *answered) add(e Endpoint, failed bool) {
	a.at[a.n%flowAnswers], a.failed[a.n%flowAnswers] = e, failed
	a.n++
}

// elsewhere returns the number of answers of other endpoints than e, and of failures among them.
func (a *answered) elsewhere(e Endpoint) (n, failures int) {
	for i := range min(a.n, flowAnswers) {
		if a.at[i] != e {
			n++
			if a.failed[i] {
				failures++
			}
		}
	}
	return n, failures
}

// began notes that a request is at its endpoint from now on, if Config.Circuits.
func (m *Machine) began(l *Lease) {
	e := l.Endpoint()
	f := m.failing[e]
	if f == nil {
		f = &failing{endpoint: e, foreign: m.ledger.ForeignAt(stock.BackendID(e))}
		m.failing[e] = f
	}
	m.stamp(l)
	f.leases.Push((*oldestLease)(l))
	if f.circuit.State() == stock.CircuitHalfOpen {
		f.circuit.Try(m.now)
		m.remind(f)
	}
	m.withhold(f)
}

// stamp notes when a request was sent to its endpoint.
func (m *Machine) stamp(l *Lease) {
	if m.born.IsZero() {
		m.born = m.now
	}
	l.begun = m.sinceBorn(m.now) + 1
}

// Judges reports whether the caller must call Answered instead of Complete for an answer with a known status.
func (m *Machine) Judges() bool { return m.config.Circuits || m.times }

// isTimely reports whether the time of an answer with this status is meaningful; failures are fast.
func isTimely(status int) bool { return status >= 200 && status < 300 }

// sinceBorn returns a time in ms after the first request, modulo 2^32.
func (m *Machine) sinceBorn(t time.Time) uint32 { return uint32(t.Sub(m.born) / time.Millisecond) }

// sentAt returns when a request in flight was sent, to the millisecond. For a request sent before times were kept, it
// is the first known time.
func (m *Machine) sentAt(now time.Time, l *Lease) time.Time {
	return now.Add(-time.Duration(m.sinceBorn(now)+1-l.begun) * time.Millisecond)
}

// left notes that a request with an ageNumber has left its endpoint.
func (m *Machine) left(l *Lease) {
	f := m.failing[l.Endpoint()]
	f.leases.Remove((*oldestLease)(l))
	if f.circuit.State() == stock.CircuitHalfOpen {
		m.withhold(f)
	}
}

// judge updates an engine's record by the answer to a request whose lease is settled.
func (m *Machine) judge(w *Waiter, t *tenant, a Answer) {
	e := w.reservation.Endpoint()
	f := m.failing[e]
	bounds, ready := m.ledger.Bounds(stock.BackendID(e))
	if f == nil || !ready || a.Status <= 0 || w.strayed() {
		return
	}
	f.answers[min(a.Status/100, len(f.answers)-1)]++
	sent := m.sentAt(m.now, (*Lease)(w))
	if !sent.Before(f.since) {
		f.passed = 0
	}
	failure := stock.FailureOf(a.Status)
	if a.Status < 400 && w.begun != 0 {
		if took := m.now.Sub(sent); f.service == 0 {
			f.service = max(1, took)
		} else {
			f.service += (took - f.service) / 8
		}
	}
	if failure != stock.NoFailure && t.answers == nil {
		t.answers = &answered{}
	}
	if t.answers != nil {
		t.answers.add(e, failure != stock.NoFailure)
	}
	if f.circuit.Answered(m.now, sent, t.key, failure) && m.blames(f, m.now.Sub(sent)) && m.mayShut(e) {
		f.circuit.Open(m.now)
	}
	switch {
	case failure == stock.HalfFailure && a.RetryAfter > 0:
		m.askedFor(f, t, a.RetryAfter)
	case failure == stock.FullFailure && !f.shut(m.now):
		if _, failures := t.answers.elsewhere(e); failures <= fewFailures {
			m.hold(f, t, m.now.Add(max(leastHold, f.service/holdPart)), max(1, bounds.Requests.Upper.Ceil()/holdPart))
		}
	}
	m.remind(f)
	m.withhold(f)
}

// strayed reports whether an endpoint unknown to the machine answered the request.
func (w *Waiter) strayed() bool { return w.rare != nil && w.rare.strayed }

// passedBy notes that another endpoint answered a request. Failed answers do not count: an Envoy that retries them
// skips reachable engines. It does not open the circuit while more of the requests sent since may be running at the
// endpoint.
func (m *Machine) passedBy(l *Lease, status int) {
	f, sent := m.failing[l.Endpoint()], m.sentAt(m.now, l)
	if f == nil || status < 200 || status >= 400 || l.Waiter().strayed() || !f.circuit.Concerns(sent) {
		return
	}
	if f.passed == 0 {
		f.since = sent
	}
	if f.passed++; f.passed < passes || m.runningSince(f, l) > f.passed {
		return
	}
	if !m.mayShut(f.endpoint) {
		f.passed = 0 // judged again after as many
		return
	}
	f.circuit.OpenLong(m.now)
	m.remind(f)
	m.withhold(f)
}

// runningSince returns the number of requests, except l, sent to an endpoint since f.since that it may still answer.
func (m *Machine) runningSince(f *failing, l *Lease) (n int) {
	for other := range f.leases.All() {
		o := (*Lease)(other)
		if o != l && !o.Waiter().strayed() && !m.sentAt(m.now, o).Before(f.since) {
			n++
		}
	}
	return n
}

// blames reports whether the engine is at fault: it fails for many flows, or for flows that succeed elsewhere. took is
// the time of the last failed request.
func (m *Machine) blames(f *failing, took time.Duration) bool {
	flows, enough := f.circuit.Suspects()
	if enough {
		return true
	}
	return !slices.ContainsFunc(flows, func(flow string) bool {
		t := m.flows.known[flow]
		if t == nil || t.answers == nil {
			return false
		}
		n, failures := t.answers.elsewhere(f.endpoint)
		return failures > fewFailures || n == failures && !m.outlives(t, f, took)
	})
}

// outlives reports whether a tenant has a request at another endpoint that has run for at least leastHold and twice as
// long as the failed one.
func (m *Machine) outlives(t *tenant, f *failing, took time.Duration) bool {
	for _, other := range m.failing { // in any order: one is enough
		if other == f {
			continue
		}
		for l := range other.leases.All() {
			if l.flow.tenant == t && m.now.Sub(m.sentAt(m.now, (*Lease)(l))) >= max(leastHold, 2*took) {
				return true
			}
		}
	}
	return false
}

// mayShut reports whether an endpoint may be shut: at least half of the pool, and of each lane with waiters, must still
// get requests.
func (m *Machine) mayShut(e Endpoint) bool {
	if f := m.failing[e]; f != nil && f.failed(m.now) {
		return true
	}
	shut := 1
	for _, f := range m.failing { // counted, so in any order
		if f.failed(m.now) {
			shut++
		}
	}
	if 2*shut > m.ledger.Ready() {
		return false
	}
	defer func() { m.asking = nil }()
	for _, n := range m.lanesWith(e) {
		if m.heads = m.queue.InLane(n.lane, renew(m.heads)); len(m.heads) == 0 {
			continue // no request waits in the lane any more
		}
		m.asking = waiterOf(m.heads[0])
		if ready, open := m.openBeside(n, m.asking, e); 2*open < ready {
			return false
		}
	}
	return true
}

// lanesWith returns the notes of the lanes with an endpoint, except whole lanes.
func (m *Machine) lanesWith(e Endpoint) []*laneNote {
	if list := m.lanes.has[e]; list != nil {
		return list.all
	}
	return nil
}

// openBeside returns the number of ready endpoints of w's lane, and how many of them except e get requests.
func (m *Machine) openBeside(n *laneNote, w *Waiter, e Endpoint) (ready, open int) {
	for _, other := range n.endpoints {
		if !m.placer.CanServe(w.placement, other) {
			continue
		}
		ready++
		if f := m.failing[other]; other != e && (f == nil || !f.failed(m.now)) {
			open++
		}
	}
	return ready, open
}

// relent reopens the endpoints that an arrival may use if all of them are shut. The caller has found that some
// endpoints are.
func (m *Machine) relent(w *Waiter) {
	m.asking = w
	defer func() { m.asking = nil }()
	if m.placer.HasReady(w.placement, &m.shut) {
		return
	}
	for _, f := range m.inOrderOfEndpoints() {
		if f.shut(m.now) && m.placer.CanServe(w.placement, f.endpoint) {
			m.unshut(f)
		}
	}
	m.tidy() // other requests may go there now
}

// relentIn reopens endpoints of w's lane until at least half of them get requests.
func (m *Machine) relentIn(n *laneNote, w *Waiter) {
	if len(m.failing) == 0 || n.whole {
		return // at least half of the whole pool gets requests
	}
	asking := m.asking
	m.asking = w
	ready, open := m.openBeside(n, w, NoEndpoint)
	for _, e := range n.endpoints {
		if f := m.failing[e]; 2*open < ready && f != nil && f.failed(m.now) && m.placer.CanServe(w.placement, e) {
			m.unshut(f)
			open++
		}
	}
	m.asking = asking
}

// unshut reopens an endpoint.
func (m *Machine) unshut(f *failing) {
	f.circuit.Close()
	m.dropSole(f)
	f.asked = timeAsked{}
	m.remind(f)
	m.withhold(f)
}

func (m *Machine) inOrderOfEndpoints() (all []*failing) {
	for _, f := range m.failing {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *failing) int { return cmp.Compare(a.endpoint, b.endpoint) })
	return all
}

// remind schedules mend for an endpoint, at the end of its next held slot or shut time, which may be past.
func (m *Machine) remind(f *failing) {
	f.due = 0
	sooner := func(t time.Time) {
		if due := t.Sub(m.born); f.due == 0 || due < f.due {
			f.due = due
		}
	}
	if f.circuit.Shut() {
		sooner(f.circuit.Until())
	}
	if !f.asked.busy.IsZero() {
		sooner(f.asked.busy)
	}
	for _, h := range f.held {
		sooner(h.until)
	}
	switch {
	case f.due == 0 && f.number != 0:
		m.mends.Remove(f)
	case f.due == 0:
	case f.number != 0:
		m.mends.Fix(f)
	default:
		m.mends.Push(f)
	}
}

// untilMended returns the time from now until the first endpoint in mends is due; mends must not be empty.
func (m *Machine) untilMended(now time.Time) time.Duration {
	return m.mends.Min().due - now.Sub(m.born)
}

// mend ends the held slots and shut times that are over.
func (m *Machine) mend() {
	for n := m.mends.Len(); n > 0 && m.mends.Len() > 0 && m.untilMended(m.now) <= 0; n-- { // once for each, even at the end of time
		f := m.mends.Min()
		f.circuit.Advance(m.now)
		if !m.now.Before(f.asked.busy) {
			f.asked.busy = time.Time{}
			m.dropSole(f)
		}
		m.letGo(f, false)
		m.remind(f)
		m.withhold(f)
	}
}

// forgetFailing forgets endpoints that are not ready, and reopens others until at least half get requests.
func (m *Machine) forgetFailing() {
	if len(m.failing) == 0 {
		return
	}
	var failed []*failing
	for _, f := range m.inOrderOfEndpoints() {
		switch _, ready := m.ledger.Bounds(stock.BackendID(f.endpoint)); {
		case !ready:
			m.shut.Remove(f.endpoint)
			m.letGo(f, true)
			if f.number != 0 {
				m.mends.Remove(f)
			}
			f.forgetLeases()
			m.dropSole(f)
			delete(m.failing, f.endpoint)
		case f.failed(m.now):
			failed = append(failed, f)
			m.withhold(f) // its bound may have changed
		}
	}
	for i, f := range failed {
		if 2*(len(failed)-i) > m.ledger.Ready() {
			m.unshut(f)
		}
	}
}

// forgetLeases empties the list of leases of an endpoint that is being forgotten.
func (f *failing) forgetLeases() {
	for l := range f.leases.All() {
		l.ageNumber = 0
	}
	f.leases = heap.Heap[*oldestLease]{}
}

// refail starts or stops circuits after a change of the configuration, and adapts to changed bounds of shut endpoints.
func (m *Machine) refail() {
	switch {
	case m.config.Circuits && m.failing != nil:
		for _, f := range m.inOrderOfEndpoints() {
			m.withhold(f)
		}
	case m.config.Circuits:
		m.failing = map[Endpoint]*failing{}
	case m.failing != nil:
		for _, f := range m.inOrderOfEndpoints() {
			m.letGo(f, true)
			f.forgetLeases()
			m.unshut(f)
			m.withhold(f)
		}
		m.failing, m.mends, m.sole = nil, heap.Heap[*failing]{}, nil
	}
}
