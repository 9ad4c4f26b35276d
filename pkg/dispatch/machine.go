package dispatch

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-epp/weir/internal/heap"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/quota"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// Machine is the state behind all decisions. It is not safe for concurrent use: its owner has a lock.
type Machine struct {
	config Config
	placer Placer
	random *rand.Rand

	queue   *fairqueue.FairRequestQueue
	ledger  *stock.Ledger
	ready   []stock.Backend      // equal to the ledger's
	engines map[Endpoint]*engine // the engines with bounds that follow them; empty: none
	inOrder bool                 // ascending by ID, so without duplicates
	flows   flowAccounts
	users   users
	quotas  *quota.Accounts
	limiter limiter

	// Derived from the configuration.
	capped   bool // tenants have caps, in total or at each endpoint
	cappedAt bool // at each endpoint

	times bool // the placer asks for times (Placer.Times), as of the last change of the backends or the configuration

	// Engines that fail, if Config.Circuits.
	failing map[Endpoint]*failing // the endpoints that have had a request; nil without circuits
	mends   heap.Heap[*failing]   // those of them with a due time
	shut    EndpointSet           // the endpoints that get no request
	sole    []*failing            // those of them that 429 with Retry-After to a single tenant has shut
	born    time.Time             // of the first request with circuits

	now      time.Time // of the current event
	arrived  uint64    // number of requests that ever arrived
	draining bool
	released time.Time // the last completed release from the queue; zero: the next may follow at once
	spaced   bool      // the last run left a head waiting for Config.ReleaseSpacing
	pace     pace      // of the queue
	places   places    // of rejected clients in the drain schedule
	counts   counts

	// Ranks, and fields for preemption.
	ranks    []int // identifiers of the configured tiers, highest first
	byRank   []int // of all tiers, including those that drain
	preempts fairqueue.TierSet
	victims  victims
	lanes    laneNotes
	swaps    [stock.MaxTiers][]*tenant   // by tier: tenants whose parked waiters must search for a victim of their own
	roomier  [stock.MaxTiers][]*laneNote // by tier: lanes that may be below their upper bound, where some may swap then
	// awaitsTokens has the tenants whose waiters have a victim of their own, but whose victim's endpoint would still
	// have too many tokens. Some no longer wait.
	awaitsTokens map[Endpoint]*tenantSet

	// The current event.
	asking    *Waiter   // the request of the current call of the placer; nil if none
	preemptor *Waiter   // the waiter that may preempt if its client is still there
	pending   pending   // work that remains to be done
	verdicts  []*Waiter // on requests other than the event's own
	retryAt   time.Time // after too many panics; zero if none

	mostExpired int // the constant, but in tests

	// Whether requests take others' turns (matches), those of other flows included (competes).
	matches, competes bool
	limited           bool // some class has limits

	// Busy rules: whether there are any, and the number of each class's own, by its own number.
	busies    bool
	mayTurn   bool // endpoints may have become busy or free since the last check, in this event or by its last placement
	ruleOf    []int
	turned    []Endpoint           // reused
	ofLane    []*fairqueue.Request // reused
	overtaken []Overtaken          // in the current event
	saved     int64                // by the present match, in tokens

	// Reused.
	changed  []Endpoint
	traits   []scheduling.Trait
	expired  []*fairqueue.Request
	heads    []*fairqueue.Request
	names    []fairqueue.Lane
	moves    []fairqueue.Move
	rivals   []*laneNote
	beside   []*fairqueue.Request
	barred   []Endpoint // endpoints with victims where the tenant of the last request asked for is at its cap
	awaiting []*fairqueue.Request
}

// counts are the machine's counters.
type counts struct {
	attempts, successes uint64 // of releases
	promotions          [stock.MaxTiers]uint64
	panics              uint64
	preempted           map[[2]int]uint64 // by victim's and preemptor's tier
	displaced           [stock.MaxTiers]uint64
}

// New returns a machine without backends; set them with SetBackends. random only spreads the times of retries.
func New(cfg Config, placer Placer, random *rand.Rand) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	queue, err := fairqueue.New(cfg.Queue)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	m := &Machine{placer: placer, random: random, queue: queue, ledger: stock.New(cfg.Stock)}
	m.quotas = quota.New(cfg.Quotas.MostAccounts)
	m.adopt(cfg)
	m.refail()
	m.mostExpired = mostExpired
	m.lanes.reset()
	m.counts.preempted = map[[2]int]uint64{}
	m.victims.order = cfg.VictimOrder
	m.rankTiers()
	return m, nil
}

// adopt makes cfg the configuration.
func (m *Machine) adopt(cfg Config) {
	m.limiter.adopt(m.now, &m.config.Limiter, &cfg.Limiter)
	m.config = cfg
	m.limited = cfg.Queue.LimitsClasses()
	m.quotas.SetMost(cfg.Quotas.MostAccounts)
	m.adoptBusy()
	m.matches, m.competes = cfg.Queue.LooksForMatches(), cfg.mayCompete()
	m.users.on = cfg.Queue.Levels > 1
	m.deriveCaps()
	m.victims.listVictims(m.capped, &m.flows, &m.users.flowAccounts)
}

// rankTiers derives the values that depend on the tiers: ranks, the right to preempt, and reservations. A draining tier
// has no reservation.
func (m *Machine) rankTiers() {
	byName := map[string]TierConfig{}
	m.ranks = nil
	for i, t := range m.config.Queue.Tiers {
		byName[t.Name] = m.config.Tiers[i]
		m.ranks = append(m.ranks, m.queue.TierID(t.Name))
	}
	var reservations []stock.Reservation
	m.byRank, m.preempts = nil, 0
	for _, t := range m.queue.Tiers() {
		m.byRank = append(m.byRank, t.ID)
		r := stock.Reservation{Tier: t.ID}
		if !t.Removed {
			cfg := byName[t.Name]
			r.Floor, r.PerSlot = cfg.ReservedFloor, cfg.ReservedPerSlot
			if cfg.CanPreempt {
				m.preempts = m.preempts.With(t.ID)
			}
		}
		reservations = append(reservations, r)
	}
	m.ledger.SetReservations(reservations)
}

// tierOf returns the identifier of the tier with a rank, or of the lowest tier if there is none.
func (m *Machine) tierOf(rank int) int {
	if rank < 0 || rank >= len(m.ranks) {
		return m.ranks[len(m.ranks)-1]
	}
	return m.ranks[rank]
}

// begin starts an event.
func (m *Machine) begin(now time.Time) {
	m.now = now
	m.pending.failures, m.pending.expired, m.pending.overdue = 0, 0, false
	m.mayTurn = m.busies
	if len(m.verdicts) > 0 {
		m.verdicts = renew(m.verdicts)
		if len(m.overtaken) > 0 { // by a granted request
			m.overtaken = renew(m.overtaken)
		}
	}
}

// sinceEpoch returns the time of the event since the queue's epoch.
func (m *Machine) sinceEpoch() time.Duration { return m.queue.Since(m.now) }

// Verdicts returns the requests that the current event, with its Failed, Preempt and PreemptorGone, has granted, ended
// or preempted, except the event's own. The slice is valid until the next event.
func (m *Machine) Verdicts() []*Waiter { return m.verdicts }

// Preemptor returns a waiter that can take another's lease if its client is still there, or nil. The caller must answer
// with Preempt or PreemptorGone before any other event.
func (m *Machine) Preemptor() *Waiter { return m.preemptor }

// Arrive decides an arrival. When it returns, w is sent (bypass), granted (released by the event itself), waiting or
// ended.
func (m *Machine) Arrive(now time.Time, w *Waiter, a Arrival) {
	m.begin(now)
	m.offer(w, &a)
	m.pending.arrival = w
	m.run()
}

// PassOn decides a request that does not queue because it is known not to be inference. When it returns, w is sent or
// ended. Its lease counts as stock like any other, but it is charged nothing and is never a victim.
func (m *Machine) PassOn(now time.Time, w *Waiter, a Arrival) {
	m.begin(now)
	m.offer(w, &a)
	m.pending.arrival, w.way = w, passedOn
	m.run()
}

// Refuse counts a request that ends before it arrives here (malformed, too large, late, no memory, no endpoint), and
// returns the Retry-After of its client; 0 means none.
func (m *Machine) Refuse(now time.Time, o Outcome) (retryAfter time.Duration) {
	m.begin(now)
	return m.refusal(o)
}

// Told means that the stream of a granted request has learned its destination.
func (m *Machine) Told(w *Waiter) {
	if w.stage == StageGranted {
		w.stage = StageSent
	}
}

// Cancel ends a request that waits, or that was granted but not told: its client has gone (OutcomeClientCancelled) or
// its client's deadline has passed (OutcomeDeadlineExceeded; OutcomeTTLExpired if the TTL ended first). It does not
// affect a request in any other stage.
func (m *Machine) Cancel(now time.Time, w *Waiter, o Outcome) {
	m.begin(now)
	m.cancel(w, o)
}

func (m *Machine) cancel(w *Waiter, o Outcome) {
	switch w.stage {
	case StageWaiting:
		m.queue.Remove(&w.queued)
		m.uncountWaiter(w)
	case StageGranted:
		// The client has gone, so the slot goes to the next request. When a proxy dies, its waiters end one after
		// another, and without a requeue most of their grants would go to waiters of the same proxy.
		m.settle(w)
		m.follow(w)
		m.queue.Requeue(&w.queued) // refunds its flow
		m.queue.Remove(&w.queued)
		m.released = time.Time{}
	case StageNew, StageSent, StageStreaming, StageEnded:
		return
	}
	if o == OutcomeDeadlineExceeded && m.queue.TTLOver(m.now, &w.queued) {
		o = OutcomeTTLExpired
	}
	m.reject(w, o)
	m.run()
}

// FirstByte must be called before the answer's headers go to the client: from then on the lease cannot be preempted. It
// reports whether the headers may go; false means that the lease was preempted before.
func (m *Machine) FirstByte(l *Lease) (goesOn bool) {
	w := l.Waiter()
	if w.stage == StageSent {
		w.stage = StageStreaming
		m.victims.remove(l)
		if !m.busies { // by busy rules, a prompt counts until Prefilled: engines send headers before they read
			m.placer.PromptRead(&l.reservation)
		}
	}
	return w.stage != StageEnded || w.outcome != OutcomePreempted
}

// Prefilled means that the first token has come, so the lease's prompt has been read. It frees the lease's slot at a
// prefill engine, if any. An endpoint that reads prompts itself is now less busy. Only the first call has an effect.
func (m *Machine) Prefilled(now time.Time, l *Lease) {
	m.begin(now)
	w := l.Waiter()
	if w.stage != StageSent && w.stage != StageStreaming {
		return
	}
	switch {
	case l.Prefills():
		m.freeReservation(w.placement, l.reservation.Take(scheduling.Prefilling))
		m.run()
	case l.Reads():
		m.placer.PromptRead(&l.reservation)
		m.run()
	}
}

// ServedElsewhere means that another endpoint than the picked one has answered the request, with this status: Envoy
// took a fallback, or does not know the picked endpoint. The lease and its stock move to the other endpoint, unless
// that is unknown (NoEndpoint) or cannot serve the request.
func (m *Machine) ServedElsewhere(now time.Time, l *Lease, e Endpoint, status int) {
	m.begin(now)
	if !l.held.Held() || e == l.Endpoint() {
		return
	}
	w := l.Waiter()
	m.passedBy(l, status)
	m.asking = w
	serves := e != NoEndpoint && m.placer.CanServe(w.placement, e)
	var r Reservation
	if serves {
		r = m.placer.PlaceAt(w.placement, e)
	}
	m.asking = nil
	if !serves {
		w.rarely().strayed = true
		m.run()
		return
	}
	victim, counted := l.victimIndex > 0, l.counted
	if l.ageNumber != 0 {
		m.left(l)
	}
	m.victims.remove(l)
	if l.counted {
		m.uncountLease(l)
	}
	m.addTokensAt(l, -l.held.Tokens())
	if !l.Reads() { // read already, or by another engine
		m.placer.PromptRead(&r)
	}
	left, beside := l.reservation.Take(scheduling.Serving), r.Take(scheduling.Prefilling)
	l.reservation = l.reservation.Join(r) // the prompt is still read where it was placed
	m.ledger.Move(&l.held, stock.BackendID(e))
	switch {
	case m.config.Circuits:
		m.began(l)
	case m.times:
		m.stamp(l)
	}
	m.addTokensAt(l, l.held.Tokens())
	if counted {
		m.countLease(l)
	}
	if victim {
		m.victims.add(l)
		m.addedVictim(e)
	}
	m.freeReservation(w.placement, left)
	if !beside.Empty() {
		m.freeReservation(w.placement, beside)
	}
	m.touchOf(w)
	m.run()
}

// Complete settles the lease: the stock falls, and waiters for it are released. cost is the real cost of the request;
// unless it is fairqueue.UnknownCost, the same step corrects the charges of its tier, its class and the flows on its
// path. Only the first call has an effect, and reports true. now may be zero if nothing waits, the cost is unknown and
// the queue does not count idle time.
func (m *Machine) Complete(now time.Time, l *Lease, cost fairqueue.Cost) (settled bool) {
	return m.Answered(now, l, cost, Answer{})
}

// Answered is Complete with the model server's answer. With Config.Circuits the answer judges the engine; if the placer
// asks for times, it compares it (Judges). now must not be zero then.
func (m *Machine) Answered(now time.Time, l *Lease, cost fairqueue.Cost, a Answer) (settled bool) {
	m.begin(now)
	w := l.Waiter()
	if w.stage != StageSent && w.stage != StageStreaming {
		return false
	}
	w.stage, w.outcome = StageEnded, OutcomeDispatched
	if len(m.engines) > 0 {
		m.settledAt(l.Endpoint())
	}
	judges := m.Judges()
	var t *tenant
	var e Endpoint
	if judges {
		t, e = w.flow.tenant, l.Endpoint()
	}
	m.settle(w) // first, so that no error in what follows can leave the lease held
	if cost != fairqueue.UnknownCost || w.way == fromQueue && m.queue.CountsAttained() {
		m.follow(w)
	}
	if cost != fairqueue.UnknownCost {
		m.queue.TrueUp(now, &w.queued, cost)
	}
	if m.queue.CountsIdle() {
		m.queue.CompletedAt(now, &w.queued)
	} else {
		m.queue.Completed(&w.queued)
	}
	if judges {
		if m.times && w.begun != 0 && isTimely(a.Status) && !w.strayed() {
			m.placer.Completed(e, now.Sub(m.sentAt(now, l)), max(0, int64(cost)))
		}
		if m.config.Circuits {
			m.judge(w, t, a)
		}
	}
	m.run()
	return true
}

// Drain rejects all waiters, and every later request, with OutcomeDraining. Leases run to their end.
func (m *Machine) Drain(now time.Time) {
	m.begin(now)
	m.draining = true
	for _, r := range m.queue.Drain(nil) {
		w := waiterOf(r)
		m.uncountWaiter(w)
		m.end(w, OutcomeDraining)
	}
	m.run()
}

// PreemptorGone is Cancel for the Preemptor.
func (m *Machine) PreemptorGone(now time.Time, o Outcome) {
	m.now = now
	w := m.preemptor
	m.preemptor = nil
	m.cancel(w, o)
}

// Preempt lets the Preemptor take over its victim's lease.
func (m *Machine) Preempt(now time.Time) {
	m.now = now
	w := m.preemptor
	m.preemptor = nil
	m.asking = w
	if v := m.victimOf(w); v != nil {
		if m.capped {
			m.queue.UnparkFlow(w.queued.Tier, w.queued.Flow) // a tenant at its cap may take over a lease of its own
			if u := userOf(w); u != nil {
				m.queue.UnparkUnder(w.queued.Tier, w.queued.Flow, u.tenant.user.under)
			}
		}
		m.takeOver(w, v)
		claim := m.queue.Claim(&w.queued)
		m.grant(&claim, w)
	}
	m.asking = nil
	m.run()
}

// Advance does everything that is due at now.
func (m *Machine) Advance(now time.Time) {
	m.begin(now)
	if now.Before(m.retryAt) {
		m.expire()
		return
	}
	m.retryAt = time.Time{}
	m.run()
}

// Next returns the time from now until Advance is due if no event comes before; ok is false if nothing waits.
func (m *Machine) Next(now time.Time) (left time.Duration, ok bool) {
	if m.queue.Len() == 0 {
		return 0, false
	}
	left = m.config.ExpiryCleanupInterval
	if d, ok := m.queue.UntilDeadline(now); ok {
		left = min(left, d)
	}
	if s, ok := m.queue.UntilStarvation(now); ok {
		left = min(left, s)
	}
	if !m.retryAt.IsZero() {
		left = min(left, m.retryAt.Sub(now))
	}
	if m.mends.Len() > 0 {
		left = min(left, m.untilMended(now))
	}
	if m.spaced {
		left = min(left, m.released.Add(m.config.ReleaseSpacing).Sub(now))
	}
	return left, true
}
