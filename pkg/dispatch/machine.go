package dispatch

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// Machine is the state of all decisions. It is not safe for concurrent use: its owner has a lock.
type Machine struct {
	config  Config
	placer  Placer
	reacher Reacher // the placer, if it is one
	random  *rand.Rand

	queue   *fairqueue.FairRequestQueue
	ledger  *stock.Ledger
	ready   []stock.Backend // as the ledger knows them
	inOrder bool            // of ID, and so none is there twice
	flows   flowAccounts

	now      time.Time // of the present event
	arrived  uint64    // requests, ever
	draining bool
	released time.Time // the last release from the queue that came to something; zero: the next may follow at once
	spaced   bool      // the last run left a head waiting for Config.ReleaseSpacing
	pace     pace      // at which the queue drains
	places   places    // of rejected clients in the drain schedule
	counts   counts

	// Who is next, and who may take whose place.
	ranks    []int // identifiers of the configured tiers, highest first
	byRank   []int // of all tiers, with those that drain
	preempts fairqueue.TierSet
	victims  victims
	lanes    laneNotes
	parked   []*flowAccount // flows at their cap at endpoints; some may be parked no more

	// The present event.
	asking    *Waiter   // for whom the placer is asked; nil: nobody
	preemptor *Waiter   // who may preempt, if its client is still there
	pending   pending   // what is still to be done
	verdicts  []*Waiter // on others than the event's own
	retryAt   time.Time // after too many panics; zero: none

	// Reused.
	expired []*fairqueue.Request
	heads   []*fairqueue.Request
}

// counts are the machine's counters.
type counts struct {
	attempts, successes uint64 // of releases
	promotions          [stock.MaxTiers]uint64
	panics              uint64
	preempted           map[[2]int]uint64 // by victim's and preemptor's tier
	displaced           [stock.MaxTiers]uint64
}

// New returns a machine without backends; they come with SetBackends. random spreads the time of retries only.
func New(cfg Config, placer Placer, random *rand.Rand) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	queue, err := fairqueue.New(cfg.Queue)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	m := &Machine{config: cfg, placer: placer, random: random, queue: queue, ledger: stock.New(cfg.Stock)}
	m.reacher, _ = placer.(Reacher)
	m.lanes.reset()
	m.counts.preempted = map[[2]int]uint64{}
	m.victims.order = cfg.VictimOrder
	m.rankTiers()
	return m, nil
}

// rankTiers derives what depends on the tiers: their ranks, who may preempt, and the reservations, of which a tier that
// drains has none.
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

// tierOf is the identifier of the tier of a rank; the lowest one's when there is none.
func (m *Machine) tierOf(rank int) int {
	if rank < 0 || rank >= len(m.ranks) {
		return m.ranks[len(m.ranks)-1]
	}
	return m.ranks[rank]
}

// begin starts an event.
func (m *Machine) begin(now time.Time) {
	m.now = now
	m.pending.failures = 0
	clear(m.verdicts)
	m.verdicts = m.verdicts[:0]
}

// Verdicts are the requests that the present event, with the Failed, Preempt and PreemptorGone that belong to it, has
// granted, ended or preempted, other than by name. The slice is valid until the next event.
func (m *Machine) Verdicts() []*Waiter { return m.verdicts }

// Preemptor is a waiter that can take another's lease, if its client is still there: answer with Preempt or PreemptorGone before
// any other event. nil: there is none.
func (m *Machine) Preemptor() *Waiter { return m.preemptor }

// Arrive decides on a request that has arrived: when it returns, w is sent (bypass), granted (by the release of others),
// waiting or ended.
func (m *Machine) Arrive(now time.Time, w *Waiter, a Arrival) {
	m.begin(now)
	m.offer(w, a)
	m.pending.arrival = w
	m.run()
}

// PassOn decides on a request that does not queue, since it is known to be no inference: when it returns, w is sent or
// ended. Its lease counts as stock like any other.
func (m *Machine) PassOn(now time.Time, w *Waiter, a Arrival) {
	m.begin(now)
	m.offer(w, a)
	m.pending.arrival, m.pending.passedOn = w, true
	m.run()
}

// Refuse is told of a request that ends before it arrives here (malformed, too large, late, no memory, no endpoint), and
// returns when its client should come back; 0: say nothing. key is its flow, or the model where that is not known.
func (m *Machine) Refuse(now time.Time, key string, o Outcome) (retryAfter time.Duration) {
	m.begin(now)
	return m.refusal(key, o)
}

// Told is told that the stream of a granted request knows its destination.
func (m *Machine) Told(w *Waiter) {
	if w.stage == StageGranted {
		w.stage = StageSent
	}
}

// Cancel ends a request that waits, or is granted and does not know it yet: its client is gone (OutcomeClientCancelled) or
// its client's deadline is over (OutcomeDeadlineExceeded; OutcomeTTLExpired if the TTL was over before). Whatever else has
// become of it stays.
func (m *Machine) Cancel(now time.Time, w *Waiter, o Outcome) {
	m.begin(now)
	m.cancel(w, o)
}

func (m *Machine) cancel(w *Waiter, o Outcome) {
	switch w.stage {
	case StageWaiting:
		m.queue.Remove(&w.queued)
		m.leaves(w)
	case StageGranted:
		// There is nobody to be told the destination: it goes to the next one. When a proxy dies, all that wait become free
		// one after the other, and most grants would go to its own.
		m.settle(w)
		m.queue.Requeue(&w.queued) // for the refund
		m.queue.Remove(&w.queued)
		m.released = time.Time{}
	case StageNew, StageSent, StageStreaming, StageEnded:
		return
	}
	if o == OutcomeDeadlineExceeded && w.queued.TTLOver(m.now) {
		o = OutcomeTTLExpired
	}
	m.reject(w, o)
	m.run()
}

// FirstByte is told before the answer's headers go on to the client: from now on the lease is not preempted. It reports
// whether they may; false: the lease was preempted before.
func (m *Machine) FirstByte(l *Lease) (goesOn bool) {
	w := l.waiter
	if w.stage == StageSent {
		w.stage = StageStreaming
		m.victims.remove(l)
	}
	return w.stage != StageEnded || w.outcome != OutcomePreempted
}

// ServedElsewhere is told that the endpoint that serves the request is another than the one picked: Envoy had gone on to
// a fallback. The lease, and with it the endpoint's stock, moves there.
func (m *Machine) ServedElsewhere(now time.Time, l *Lease, e Endpoint) {
	m.begin(now)
	if !l.held.Held() || e == l.Endpoint() {
		return
	}
	w := l.waiter
	m.asking = w
	serves := m.placer.CanServe(w.placement, e)
	var r Reservation
	if serves {
		r = m.placer.PlaceAt(w.placement, e)
	}
	m.asking = nil
	if !serves {
		return
	}
	victim, counted, left := l.victimAt > 0, l.counted, l.reservation
	m.victims.remove(l)
	m.uncount(l)
	l.reservation = r
	if counted {
		m.count(l)
	}
	if victim {
		m.victims.add(l)
		m.newVictim(e)
	}
	m.gaveBack(left)
	m.touch(w.flow)
	m.run()
}

// Complete settles the lease: the stock falls, and whoever waits for it is released. Only the first call counts; it
// reports whether this one did. While nobody waits now may be zero.
func (m *Machine) Complete(now time.Time, l *Lease) (settled bool) {
	m.begin(now)
	w := l.waiter
	if w.stage != StageSent && w.stage != StageStreaming {
		return false
	}
	w.stage, w.outcome = StageEnded, OutcomeDispatched
	m.queue.Completed(&w.queued)
	m.settle(w)
	m.run()
	return true
}

// Drain rejects whatever waits, and every request from now on, with OutcomeDraining. Leases run to their end.
func (m *Machine) Drain(now time.Time) {
	m.begin(now)
	m.draining = true
	for _, r := range m.queue.Drain(nil) {
		w := waiterOf(r)
		m.leaves(w)
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

// Preempt lets the Preemptor take the lease that it can have.
func (m *Machine) Preempt(now time.Time) {
	m.now = now
	w := m.preemptor
	m.preemptor = nil
	m.asking = w
	if v := m.victimOf(w); v != nil {
		m.takeOver(w, v)
		m.grant(m.queue.Claim(&w.queued), w)
	}
	m.asking = nil
	m.run()
}

// Advance does what is due at now.
func (m *Machine) Advance(now time.Time) {
	m.begin(now)
	if now.Before(m.retryAt) {
		m.expire()
		return
	}
	m.retryAt = time.Time{}
	m.run()
}

// Next is when Advance is due if no event comes before; false: nobody waits.
func (m *Machine) Next(now time.Time) (at time.Time, ok bool) {
	if m.queue.Len() == 0 {
		return at, false
	}
	at = now.Add(m.config.ExpiryCleanupInterval)
	if d, ok := m.queue.NextDeadline(); ok && d.Before(at) {
		at = d
	}
	if s, ok := m.queue.NextStarvation(now); ok && s.Before(at) {
		at = s
	}
	if !m.retryAt.IsZero() && m.retryAt.Before(at) {
		at = m.retryAt
	}
	if m.spaced {
		if soon := m.released.Add(m.config.ReleaseSpacing); soon.Before(at) {
			at = soon
		}
	}
	return at, true
}
