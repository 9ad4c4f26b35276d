package dispatch

import "time"

// Facts are the machine's knowledge of a request at its decision, before its charge: when it got its lease, or ended
// without one. They are also JSON.
type Facts struct {
	// Number counts the arrivals up to this one; 0 if the request ended before it arrived. Arrived is the time of
	// arrival.
	Number  uint64    `json:"number,omitempty"`
	Arrived time.Time `json:"arrived,omitzero"`
	Flow    string    `json:"flow"`
	Tier    string    `json:"tier,omitempty"`
	Cost    int64     `json:"cost,omitempty"`
	// Waited is the time in the queue, in seconds. Bypassed and Promoted are true for leases taken that way.
	Waited   float64 `json:"waitedSeconds"`
	Bypassed bool    `json:"bypassed,omitempty"`
	Promoted bool    `json:"promoted,omitempty"`
	// Weight is the flow's weight, and Role the tenant's role; empty: none.
	Weight float64 `json:"weight,omitempty"`
	Role   string  `json:"role,omitempty"`
	// Waiting and InFlight are numbers of the flow's requests. Waiting includes the request itself if it waited.
	Waiting  int `json:"waiting"`
	InFlight int `json:"inFlight"`
	// Class is the request's class within the tier, and ClassDeficit the class's earned and unspent credit, in units of
	// cost; Quantum is its credit per round. Empty and 0 without classes.
	Class        string `json:"class,omitempty"`
	ClassDeficit int64  `json:"classDeficit,omitempty"`
	Quantum      int64  `json:"quantum,omitempty"`
	// FairShare is nil without the discipline fairshare, Quota if no quota counts the request.
	FairShare *FairShare  `json:"fairshare,omitempty"`
	Quota     *QuotaFacts `json:"quota,omitempty"`
	// Limit is the limit that rejected the request; nil: none.
	Limit *Limit `json:"limit,omitempty"`
}

// FairShare is the state of a flow by discipline fairshare, in units of cost: the service owed to it, its recent use,
// and its credits from idle time. Factor lowers its priority; 1 does not.
type FairShare struct {
	Deficit      int64   `json:"deficit"`
	Recent       int64   `json:"recentUse"`
	BurstCredits int64   `json:"burstCredits"`
	Factor       float64 `json:"factor"`
}

// QuotaFacts are the rest of a tenant's quota, in tokens, and the time until the whole quota is free, in seconds.
type QuotaFacts struct {
	Limit     int64   `json:"limit"`
	Remaining int64   `json:"remaining"`
	Reset     float64 `json:"resetSeconds"`
}

// Explain asks for the Facts of a request that is not decided yet.
func (w *Waiter) Explain() {
	if r := w.rarely(); r.facts == nil {
		r.facts = new(Facts)
	}
}

// Facts returns the facts of the request as of its decision; nil without Explain. They do not change, so the stream may
// read them during other events.
func (w *Waiter) Facts() *Facts {
	if w.rare == nil || w.rare.facts == nil {
		return nil
	}
	f := *w.rare.facts
	f.Arrived = f.Arrived.Round(0).UTC()
	f.Number, f.Flow, f.Waited, f.Bypassed = w.number, w.queued.Flow, w.waited.Seconds(), w.way == atOnce
	if s, ok := w.Quota(); ok {
		f.Quota = &QuotaFacts{Limit: s.Limit, Remaining: s.Remaining, Reset: s.Reset.Seconds()}
	}
	f.Limit = w.Limit()
	return &f
}

// asksFacts reports whether Explain was called for w.
func (w *Waiter) asksFacts() bool { return w.rare != nil && w.rare.facts != nil }

// noteFacts notes the facts of a request that is about to get a lease, or to end without one.
func (m *Machine) noteFacts(w *Waiter, promoted bool) {
	f := w.rare.facts
	v := m.queue.ShareOf(m.now, &w.queued)
	*f = Facts{
		Arrived: f.Arrived, Tier: v.Tier, Cost: int64(w.queued.Cost), Promoted: promoted,
		Weight: float64(v.Weight) / 1e6, Role: roleOf(w), Waiting: v.Queued,
		Class: v.Class, ClassDeficit: v.ClassDeficit, Quantum: v.Quantum,
	}
	if a := m.flows.find(w.queued.Tier, w.queued.Flow); a != nil {
		f.InFlight = a.inflight
	}
	if v.Fair {
		f.FairShare = &FairShare{Deficit: v.Deficit, Recent: v.Recent, BurstCredits: v.BurstCredits, Factor: float64(v.Factor) / 1e6}
	}
}
