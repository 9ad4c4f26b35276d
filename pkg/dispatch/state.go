package dispatch

import (
	"math"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// State is a copy of the machine's accounts.
type State struct {
	Queued       int          // waiting requests
	Flows        int          // flows with waiting requests
	Stock        int          // leases held
	Tokens       stock.Tokens // Σ tokens of the leases held
	Ready        int          // ready backends
	LowerBound   float64      // this and the next two are infinite if the stock is unbounded
	Watermark    float64
	UpperBound   float64
	Capacity     int  // upper bound rounded up
	Unbounded    bool // the stock has no bound in requests, and Capacity none either
	LiveFlows    int  // flows with requests waiting or in flight
	Draining     bool
	Attempts     uint64 // to release a waiter
	Panics       uint64 // in the machine's decisions
	Successes    uint64 // releases
	PromotedHeld int    // leases granted by promotion
	Metered      int    // tenants whose use of a quota is known
}

// Config returns the configuration in use. The caller must not change the values that it refers to.
func (m *Machine) Config() Config { return m.config }

// State returns the current accounts.
func (m *Machine) State() State {
	band := m.ledger.Band()
	unbounded := m.ledger.Unbounded()
	bound := func(b stock.Micro) float64 {
		if unbounded {
			return math.Inf(1)
		}
		return b.Float()
	}
	return State{
		Queued: m.queue.Len(), Flows: m.queue.Flows(), Stock: m.ledger.Stock(), Tokens: m.ledger.Tokens(),
		Ready:      m.ledger.Ready(),
		LowerBound: bound(band.Lower), Watermark: bound(band.Watermark), UpperBound: bound(band.Upper),
		Capacity: m.ledger.Capacity(), Unbounded: unbounded, LiveFlows: m.flows.n, Draining: m.draining,
		Panics: m.counts.panics, Attempts: m.counts.attempts, Successes: m.counts.successes,
		PromotedHeld: m.ledger.Promoted(), Metered: m.quotas.Len(),
	}
}

// Waiting returns the number of waiting requests.
func (m *Machine) Waiting() int { return m.queue.Len() }

// CountsIdle reports whether time counts while nothing waits and nothing is in flight.
func (m *Machine) CountsIdle() bool { return m.queue.CountsIdle() }

// Arrived is the number of requests that have ever arrived: the last one's number.
func (m *Machine) Arrived() uint64 { return m.arrived }

// ArrivedAt returns the arrival time of a request that waits or has waited.
func (m *Machine) ArrivedAt(w *Waiter) time.Time { return m.queue.Arrived(&w.queued) }

// TierState is the state of one tier.
type TierState struct {
	ID                    int
	Name                  string
	Queued, InFlight      int // requests
	Reserved              int // leases reserved for it at the present capacity
	Limit                 int // the largest number of requests that may wait in it
	Displaced, Promotions uint64
	// Withheld is true if all stock that is free now is reserved for higher tiers.
	Withheld bool
}

// Tiers appends the state of every tier to tiers, by rank.
func (m *Machine) Tiers(tiers []TierState) []TierState {
	limits, withheld := map[string]int{}, m.withheld()
	for _, t := range m.config.Queue.Tiers {
		limits[t.Name] = t.QueueSize
	}
	for _, t := range m.queue.Tiers() {
		limit, listed := limits[t.Name]
		if !listed || limit < 0 {
			limit = m.config.Queue.TotalCapacity
		}
		tiers = append(tiers, TierState{
			ID: t.ID, Name: t.Name, Queued: t.Queued, InFlight: m.ledger.Inflight(t.ID), Reserved: m.ledger.Reserved(t.ID),
			Limit: limit, Displaced: m.counts.displaced[t.ID], Promotions: m.counts.promotions[t.ID], Withheld: withheld.Has(t.ID),
		})
	}
	return tiers
}

// Preemptions returns the numbers of preempted leases, by the victim's and the preemptor's tier.
func (m *Machine) Preemptions() map[[2]string]uint64 {
	names := m.tierNames()
	counts := map[[2]string]uint64{}
	for pair, n := range m.counts.preempted {
		counts[[2]string{names[pair[0]], names[pair[1]]}] += n
	}
	return counts
}

func (m *Machine) tierNames() map[int]string {
	names := map[int]string{}
	for _, t := range m.queue.Tiers() {
		names[t.ID] = t.Name
	}
	return names
}

// Fairness compares the service of a tier's continuously backlogged flows by their last ended requests: the largest
// difference of two flows in cost over weight, and the bound on it.
type Fairness struct {
	Tier       string
	Gap, Bound float64
}

// Fairness returns one element for each tier with discipline VTC or FairShare.
func (m *Machine) Fairness() (tiers []Fairness) {
	names := m.tierNames()
	for _, f := range m.queue.Fairness() {
		tiers = append(tiers, Fairness{Tier: names[f.Tier], Gap: f.Gap, Bound: f.Bound})
	}
	return tiers
}

// ClassState is the state of one class.
type ClassState struct {
	Tier string `json:"tier"`
	// Ring and Class are its names; both are empty without configured classes.
	Ring  string `json:"ring,omitempty"`
	Class string `json:"class,omitempty"`
	// Waiting is the number of its waiting requests, RawTokens and CachedTokens are the lengths of their prompts.
	Waiting      int   `json:"waiting"`
	RawTokens    int64 `json:"rawTokens"`
	CachedTokens int64 `json:"cachedTokens"`
	// Deficit is its earned and unspent service, in units of cost; a negative one is a debt.
	Deficit int64 `json:"deficit"`
	Quantum int64 `json:"quantum"`
}

// Classes returns the state of every class, by rank of its tier and in the order of the rings.
func (m *Machine) Classes() (states []ClassState) {
	names := m.tierNames()
	for _, c := range m.queue.Classes() {
		states = append(states, ClassState{
			Tier: names[c.Tier], Ring: c.Ring, Class: c.Class, Waiting: c.Queued, RawTokens: c.RawTokens,
			CachedTokens: c.CachedTokens, Deficit: c.Deficit, Quantum: int64(c.Quantum),
		})
	}
	return states
}

// ClassOf returns the names of the ring and the class of w, which has arrived; both are empty without configured
// classes.
func (m *Machine) ClassOf(w *Waiter) (ring, class string) { return m.queue.ClassOf(&w.queued) }

// FlowState is the state of one flow with waiting requests. It is also JSON.
type FlowState struct {
	Flow string `json:"flow"`
	Tier string `json:"tier"`
	// Class is its class within the tier; empty without configured classes.
	Class string `json:"class,omitempty"`
	// Waiting and InFlight are numbers of requests; WaitingCost is the cost of the waiting ones.
	Waiting     int   `json:"waiting"`
	WaitingCost int64 `json:"waitingCost"`
	InFlight    int   `json:"inFlight"`
	// Since is its oldest waiter's time in the queue, in seconds.
	Since float64 `json:"sinceSeconds"`
	// Weight is its weight. Entitled is its fair share of the tier in this class, 0 to 1.
	Weight   float64 `json:"weight"`
	Entitled float64 `json:"entitledShare"`
	// Why is the reason of its wait: "stock" (the stock has to fall), "cap" (its tenant, or each waiting user of it, is
	// at a cap), "endpoint" (none of its endpoints is ready or has room), "reservation" (the free stock is reserved for
	// higher tiers), "busy" (the endpoints are too busy for its class) or "spacing" (Config.ReleaseSpacing since the
	// last release).
	Why string `json:"why"`
	// Users is the number of the tenant's users with waiting requests, and Capped the number of its waiting requests
	// whose tenant or user is at a cap; both are 0 where tenants have no users.
	Users  int `json:"users,omitempty"`
	Capped int `json:"capped,omitempty"`
	// User is the state of a request's own user, of FlowOf; nil where tenants have no users.
	User *UserState `json:"user,omitempty"`
}

// UserState is the state of one user of a tenant, in one tier and class.
type UserState struct {
	User string `json:"user"`
	// Waiting and InFlight are numbers of requests.
	Waiting  int `json:"waiting"`
	InFlight int `json:"inFlight"`
	// Weight is its weight among the users of the tenant, Entitled its fair share of the tier, 0 to 1.
	Weight   float64 `json:"weight"`
	Entitled float64 `json:"entitledShare"`
	// Capped is true while its requests wait because it is at its cap.
	Capped bool `json:"capped"`
}

// Flows returns the states of up to limit flows with waiting requests, roughly in order of expiry. A flow that waits in
// several classes has a state for each.
func (m *Machine) Flows(now time.Time, limit int) []FlowState {
	names, withheld := m.tierNames(), m.withheld()
	states := []FlowState{}
	for _, v := range m.queue.View(limit) {
		states = append(states, m.flowState(now, &v, names[v.Tier], withheld))
	}
	return states
}

// FlowOf returns the state of the flow of w, which must be waiting, with that of its user.
func (m *Machine) FlowOf(now time.Time, w *Waiter) FlowState {
	v := m.queue.ViewOf(&w.queued)
	s := m.flowState(now, &v, m.tierNames()[v.Tier], m.withheld())
	if of, ok := m.queue.ViewUnder(&w.queued); ok {
		s.User = &UserState{
			User: of.Flow, Waiting: of.Queued, Weight: float64(of.Weight) / 1e6, Entitled: float64(of.Entitled) / 1e6, Capped: m.userAtCap(w),
		}
		if u := userOf(w); u != nil {
			s.User.InFlight = u.inflight
		}
	}
	return s
}

// FlowsOf returns the states of one flow: by tier and class where it waits, and by tier where it only has requests in flight,
// without its share. It visits the tiers, and the lanes in which the flow waits.
func (m *Machine) FlowsOf(now time.Time, flow string) (states []FlowState) {
	withheld := m.withheld()
	for _, t := range m.queue.Tiers() {
		views := m.queue.ViewsOf(t.ID, flow)
		for i := range views {
			states = append(states, m.flowState(now, &views[i], t.Name, withheld))
		}
		if a := m.flows.find(t.ID, flow); len(views) == 0 && a != nil && a.inflight > 0 {
			states = append(states, FlowState{Flow: flow, Tier: t.Name, InFlight: a.inflight})
		}
	}
	return states
}

// withheld returns the tiers without stock only because it is reserved for higher tiers.
func (m *Machine) withheld() fairqueue.TierSet {
	if !m.belowLower() {
		return 0
	}
	return ^fairqueue.TierSet(m.ledger.AvailableTo())
}

func (m *Machine) flowState(now time.Time, v *fairqueue.FlowView, tier string, withheld fairqueue.TierSet) FlowState {
	s := FlowState{
		Flow: v.Flow, Tier: tier, Class: v.Class, Waiting: v.Queued, WaitingCost: v.Cost,
		Since: now.Sub(v.Oldest).Seconds(), Weight: float64(v.Weight) / 1e6, Entitled: float64(v.Entitled) / 1e6,
		Why: "stock",
	}
	if a := m.flows.find(v.Tier, v.Flow); a != nil {
		s.InFlight = a.inflight
	}
	if v.Under > 0 {
		s.Users, s.Capped = v.Under, v.Capped
	}
	switch {
	case m.spaced && !v.Parked && !v.Closed:
		s.Why = "spacing"
	case v.Parked:
		s.Why = "cap"
	case v.Blocked:
		s.Why = "busy"
	case v.Closed:
		s.Why = "endpoint"
	case withheld.Has(v.Tier):
		s.Why = "reservation"
	}
	return s
}
