package dispatch

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Limit is the limit that rejected a request.
type Limit struct {
	// Name is one of the names below; it never changes. Value is the limit.
	Name  string `json:"name"`
	Value int64  `json:"value,omitempty"`
	// Holders are the flows that hold most of it, at most MostHolders, the largest first.
	Holders []Holder `json:"holders,omitempty"`
}

// The names of limits. Clients and pages see them.
const (
	LimitFlowCapacity  = "flow-capacity"  // requests that wait, of one flow
	LimitUserCapacity  = "user-capacity"  // of one user of a tenant
	LimitTotalCapacity = "total-capacity" // of all flows
	LimitQueueSize     = "queue-size"     // of a tier
	LimitTierShare     = "tier-share"     // of a tier, as its weight gives it a share of the total
	LimitQueueTTL      = "queue-ttl"      // milliseconds in the queue, of a request whose flow and user were below their caps

	// Caps on what a tenant, or a user of it, has in flight, at the end of a request's TTL.
	LimitFlowInFlight = "flow-in-flight" // requests
	LimitFlowTokens   = "flow-tokens-in-flight"
	LimitUserInFlight = "user-in-flight" // requests
	LimitUserTokens   = "user-tokens-in-flight"

	LimitUpperBound = "upper-bound" // requests in flight
	LimitRate       = "rate"        // requests in a thousand seconds
	LimitQuota      = "quota"       // tokens of a tenant in its window

	// Limits of the streams, checked before the queue.
	LimitMaxHeaders        = "max-headers"
	LimitMaxHeaderBytes    = "max-header-bytes"
	LimitMaxBodyBytes      = "max-body-bytes"
	LimitMaxBodyBytesTotal = "max-body-bytes-total" // of all bodies held
	LimitBodyTimeout       = "body-timeout"         // milliseconds of the body's arrival
)

// limitsOfClasses are the names of the limits of a class.
var limitsOfClasses = [fairqueue.NumLimits]string{
	fairqueue.LimitRequests: "class-requests", fairqueue.LimitRawTokens: "class-raw-tokens", fairqueue.LimitCachedTokens: "class-cached-tokens",
}

// Holder is a flow, by its key, with its part of a limit: waiting requests, for upper-bound and queue-ttl requests in
// flight, for a quota tokens.
type Holder struct {
	Flow string `json:"flow"`
	Held int64  `json:"held"`
	// User is the user of the flow that holds it; empty: all of them.
	User string `json:"user,omitempty"`
}

// Text returns the limit's value with its unit, for people.
func (l *Limit) Text() string {
	switch l.Name {
	case LimitQueueTTL, LimitBodyTimeout:
		return (time.Duration(l.Value) * time.Millisecond).String()
	case LimitRate:
		return strconv.FormatFloat(float64(l.Value)/1000, 'g', -1, 64) + " requests/s"
	case LimitQuota:
		return strconv.FormatInt(l.Value, 10) + " tokens"
	}
	return strconv.FormatInt(l.Value, 10)
}

// MostHolders is the largest number of holders of a limit.
const MostHolders = 3

// ByStock reports whether requests in flight, rather than waiting ones, hold the limit.
func (l *Limit) ByStock() bool { return l.Name == LimitUpperBound || l.Name == LimitQueueTTL }

// Shared reports whether other flows' requests can hold the limit, in the queue or in the stock.
func (l *Limit) Shared() bool {
	switch l.Name {
	case LimitFlowCapacity, LimitUserCapacity, LimitQuota, LimitRate,
		LimitFlowInFlight, LimitFlowTokens, LimitUserInFlight, LimitUserTokens,
		LimitMaxHeaders, LimitMaxHeaderBytes, LimitMaxBodyBytes, LimitMaxBodyBytesTotal, LimitBodyTimeout:
		return false
	}
	return true
}

// Limit returns the limit that rejected the request, with the request's own flow as the only holder; nil without such a
// limit.
func (w *Waiter) Limit() *Limit {
	if w.stage != StageEnded {
		return nil
	}
	switch w.outcome {
	case OutcomeTTLExpired:
		if w.rare != nil && w.rare.met.Name != "" {
			l := w.rare.met
			return &l
		}
		return &Limit{Name: LimitQueueTTL, Value: w.MaxWait().Milliseconds()}
	case OutcomeQuotaExceeded:
		s := w.rare.standing
		return &Limit{Name: LimitQuota, Value: s.Limit, Holders: []Holder{{Flow: w.queued.Flow, Held: s.Limit - s.Remaining}}}
	case OutcomeFlowFull, OutcomeQueueFull, OutcomeShed, OutcomeDisplaced:
		if w.rare == nil || w.rare.met.Name == "" {
			return nil
		}
		l := w.rare.met
		return &l
	default:
		return nil
	}
}

// noteFull notes the queue's limit that rejects an arrival.
func (m *Machine) noteFull(w *Waiter, err error) {
	if limit := new(fairqueue.LimitError); errors.As(err, &limit) {
		w.rarely().met = Limit{Name: limitsOfClasses[limit.Limit], Value: limit.Most}
		return
	}
	by, most := m.queue.FullBy(&w.queued)
	l := Limit{Name: LimitTotalCapacity, Value: int64(most)}
	switch by {
	case fairqueue.FullFlow:
		l.Name = LimitFlowCapacity
		l.Holders = []Holder{{Flow: w.queued.Flow, Held: l.Value}}
	case fairqueue.FullUnder:
		l.Name = LimitUserCapacity
		l.Holders = []Holder{{Flow: w.queued.Flow, User: userIn(w), Held: l.Value}}
	case fairqueue.FullTier:
		l.Name = LimitQueueSize
	case fairqueue.FullTierShare:
		l.Name = LimitTierShare
	case fairqueue.FullTotal:
	}
	w.rarely().met = l
}

// noteCap notes the cap of w's user or tenant, if it is at one when its TTL ends.
func (m *Machine) noteCap(w *Waiter) {
	t, inFlight, inTokens, h := w.flow.tenant, LimitFlowInFlight, LimitFlowTokens, Holder{Flow: w.queued.Flow}
	if m.userAtCap(w) {
		t, inFlight, inTokens, h.User = userOf(w).tenant, LimitUserInFlight, LimitUserTokens, userIn(w)
	}
	if !m.capped || !m.atCap(t) {
		return
	}
	most := m.limitOf(t)
	l := Limit{Name: inFlight, Value: int64(most.requests)}
	h.Held = int64(t.inflight) + int64(t.places)
	if most.requests == 0 || h.Held < l.Value {
		l.Name, l.Value, h.Held = inTokens, int64(most.tokens), int64(t.tokens)
	}
	l.Holders = []Holder{h}
	w.rarely().met = l
}

// userIn returns the name of w's user within its tenant; empty without one.
func userIn(w *Waiter) string {
	if p := w.queued.Path; p != nil && len(p.Under) > 0 {
		return p.Under[len(p.Under)-1]
	}
	return ""
}

// noteShed notes that the stock's upper bound rejects an arrival.
func (m *Machine) noteShed(w *Waiter) {
	w.rarely().met = Limit{Name: LimitUpperBound, Value: int64(m.ledger.Capacity())}
}

// noteRate notes that the limiter rejects an arrival.
func (m *Machine) noteRate(w *Waiter) {
	w.rarely().met = Limit{Name: LimitRate, Value: m.config.Limiter.Rate / 1000}
}

// noteDisplaced notes the limit that displaced a request.
func (m *Machine) noteDisplaced(w *Waiter) {
	l := Limit{Name: LimitTotalCapacity, Value: int64(m.config.Queue.TotalCapacity)}
	if m.queue.Len() < m.config.Queue.TotalCapacity {
		l = Limit{Name: LimitQueueSize}
		for _, t := range m.config.Queue.Tiers {
			if m.queue.TierID(t.Name) == w.queued.Tier {
				l.Value = int64(t.QueueSize)
			}
		}
	}
	w.rarely().met = l
}

// HoldersOf returns the flows that hold most of a limit. It visits all live flows, so only a replay calls it.
func (m *Machine) HoldersOf(l *Limit) []Holder {
	if !l.Shared() {
		return l.Holders
	}
	var top []Holder
	for t := range m.flows.tenants() {
		held := t.waiting
		if l.ByStock() {
			held = t.inflight
		}
		top = TopHolders(top, Holder{Flow: t.key, Held: int64(held)})
	}
	return top
}

// TopHolders inserts a holder into the sorted top holders and returns them.
func TopHolders(top []Holder, h Holder) []Holder {
	if h.Held <= 0 {
		return top
	}
	i, _ := slices.BinarySearchFunc(top, h, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Held, a.Held), cmp.Compare(a.Flow, b.Flow))
	})
	if i == MostHolders {
		return top
	}
	top = slices.Insert(top, i, h)
	return top[:min(len(top), MostHolders)]
}
