package dispatch

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// flowAccount is the machine's account of a live flow: one with a request waiting or in flight.
type flowAccount struct {
	tier     int
	tenant   *tenant
	waiting  int // being admitted or in the queue
	inflight int
	tokens   stock.Tokens // of the requests in flight
	pace     pace
	told     time.Time // its last place in the drain schedule
	victims  []*Lease  // its leases that may be preempted, by age, if flows are capped
	resting  bool      // it is in flowAccounts.resting
}

func (a *flowAccount) live() bool { return a.waiting+a.inflight > 0 }

// tenant has the holdings of all flows with one key, in all tiers and classes, which the caps count. A tenant's user
// has an account of its own (users.go). A tenant is live while one of its flows is live, and known while one is known.
// With thousands of tenants each cache line costs a miss, so the account of the first flow, for most tenants the only
// one, is a part of the struct, and the fields for caps come last.
type tenant struct {
	flows    []*flowAccount // the known ones, one for each tier
	one      [1]*flowAccount
	live     int // number of live ones
	waiting  int // sums over its flows
	inflight int
	tokens   stock.Tokens
	own      flowAccount // the first one's

	key        string            `graph:"key"`
	since      uint64            // its number among all tenants that became live
	byEndpoint tally             // its leases by endpoint, if those are capped
	answers    *answered         // its last answers, since the first failure; nil: none
	places     int32             // held by its failures
	parked     bool              // some of its waiters are parked, or were at the last look
	swaps      fairqueue.TierSet // the tiers for which Machine.swaps has it
	changed    bool              // since the last look, and not only by being roused
	rousing    []Endpoint        // where it was told of room since the last look
	roused     []Endpoint        // where it was roused, and some of its waiters could go
	fullIndex  int               // 1-based index in flowAccounts.full; 0: it is not there
	role       string            // the role of its requests with the least cap
	besides    []string          // its requests' other roles since it was last idle
	user       *userName         // nil if it is a tenant
}

// in returns the tenant's account in a tier, or nil if it is not known.
func (t *tenant) in(tier int) *flowAccount {
	for _, a := range t.flows {
		if a.tier == tier {
			return a
		}
	}
	return nil
}

// mostResting is the number of accounts that stay known without a request.
const mostResting = 1024

// flowAccounts holds the accounts of live flows and their tenants. It is bounded by the requests in the system. A flow
// often gets its next request soon after its last one has left, and adding and deleting an account is the dearest
// operation on it, so the last mostResting idle accounts stay known. They count for nothing, and start from zero with
// their next request.
type flowAccounts struct {
	known   map[string]*tenant `graph:"key"` // by flow's key
	n       int                // number of live accounts
	begun   uint64             // how often a tenant became live
	resting []*flowAccount     // a ring; some may be live again
	oldest  int                // its index in resting, once that is full
	full    []*tenant          // those at their cap at some endpoint
	free    []*flowAccount
	gone    []*tenant // free as well
}

// find returns the account of a flow, or nil if it is not known.
func (f *flowAccounts) find(tier int, key string) *flowAccount {
	if t := f.known[key]; t != nil {
		return t.in(tier)
	}
	return nil
}

// tenants iterates over the live tenants in no particular order.
func (f *flowAccounts) tenants() iter.Seq[*tenant] {
	return func(yield func(*tenant) bool) {
		for _, t := range f.known {
			if t.live > 0 && !yield(t) {
				return
			}
		}
	}
}

// inOrder returns the live tenants, the oldest first.
func (f *flowAccounts) inOrder() []*tenant {
	return slices.SortedFunc(f.tenants(), func(a, b *tenant) int { return cmp.Compare(a.since, b.since) })
}

// countWaiter counts w as a waiting request of its flow; it is idempotent.
func (m *Machine) countWaiter(w *Waiter) {
	if !w.waiting {
		w.flow = m.flows.addWaiter(w.queued.Tier, w.queued.Flow)
		w.waiting = true
		if m.users.on {
			m.countUser(w)
		}
	}
}

// countWaiterAgain counts w as waiting after its grant was undone.
func (m *Machine) countWaiterAgain(w *Waiter) {
	w.flow.waiting++
	w.flow.tenant.waiting++
	w.waiting = true
	if u := userOf(w); u != nil {
		u.waiting++
		u.tenant.waiting++
	}
}

// uncountWaiter stops counting w as waiting; it is idempotent.
func (m *Machine) uncountWaiter(w *Waiter) {
	if w.waiting {
		t := w.flow.tenant // the account may be another's after this
		w.waiting = false
		m.flows.removeWaiter(w.flow)
		if m.users.on {
			m.uncountUser(w)
		}
		if m.cappedAt { // else nobody is roused
			m.leftQueue(t)
		}
	}
}

// leftQueue makes a roused tenant rouse the next one, after one of its requests has stopped waiting.
func (m *Machine) leftQueue(t *tenant) {
	switch {
	case len(t.roused)+len(t.rousing) == 0:
	case t.waiting > 0:
		m.touch(t)
	default:
		t.changed = true
		m.rouseNext(t, false)
	}
}

// addWaiter counts a request of the flow as waiting.
func (f *flowAccounts) addWaiter(tier int, key string) *flowAccount {
	t := f.known[key]
	if t == nil {
		t = f.addTenant(key)
	}
	a := t.in(tier)
	if a == nil {
		a = f.add(tier, t)
	}
	if !a.live() {
		f.n++
		a.pace = pace{}
		if t.live == 0 {
			f.begun++
			t.since = f.begun
			if t.places == 0 {
				t.byEndpoint.empty()
			}
		}
		t.live++
	}
	a.waiting++
	t.waiting++
	return a
}

// addTenant makes the account of a tenant that is not known.
func (f *flowAccounts) addTenant(key string) (t *tenant) {
	if n := len(f.gone); n > 0 {
		t = f.gone[n-1]
		f.gone = f.gone[:n-1]
	} else {
		t = new(tenant)
	}
	t.key = key
	if f.known == nil {
		f.known = map[string]*tenant{}
	}
	f.known[key] = t
	return t
}

// add makes the account of a tenant's flow that is not known.
func (f *flowAccounts) add(tier int, t *tenant) (a *flowAccount) {
	switch n := len(f.free); {
	case t.own.tenant == nil:
		if a = &t.own; t.flows == nil {
			t.flows = t.one[:0]
		}
	case n > 0:
		a = f.free[n-1]
		f.free = f.free[:n-1]
	default:
		a = new(flowAccount)
	}
	a.tier, a.tenant, a.told = tier, t, time.Time{}
	t.flows = append(t.flows, a)
	return a
}

// removeWaiter counts one waiting request fewer. For a granted request, call addLease first, so that the account stays.
func (f *flowAccounts) removeWaiter(a *flowAccount) {
	a.waiting--
	a.tenant.waiting--
	f.restIfIdle(a)
}

func (f *flowAccounts) addLease(a *flowAccount, tokens stock.Tokens) {
	a.inflight++
	a.tenant.inflight++
	a.addTokens(tokens)
}

// removeLease counts one lease fewer; the caller calls restIfIdle then.
func (a *flowAccount) removeLease(tokens stock.Tokens) {
	a.inflight--
	a.tenant.inflight--
	a.addTokens(-tokens)
}

// addTokens changes the tokens of the requests in flight.
func (a *flowAccount) addTokens(by stock.Tokens) {
	a.tokens += by
	a.tenant.tokens += by
}

// restIfIdle makes an account without a request idle. It is inlined.
func (f *flowAccounts) restIfIdle(a *flowAccount) {
	if !a.live() {
		f.idle(a)
	}
}

// idle stops counting an account as live. The account stays known; if too many rest, the one that has rested longest is
// forgotten.
func (f *flowAccounts) idle(a *flowAccount) {
	f.n--
	a.tenant.live--
	if a.resting {
		return
	}
	a.resting = true
	if len(f.resting) < mostResting {
		f.resting = append(f.resting, a)
		return
	}
	gone := f.resting[f.oldest]
	f.resting[f.oldest] = a
	f.oldest = (f.oldest + 1) % mostResting
	gone.resting = false
	if gone.live() {
		return
	}
	t := gone.tenant
	if gone.tenant = nil; gone != &t.own {
		f.free = append(f.free, gone)
	}
	at := slices.Index(t.flows, gone)
	if t.flows = slices.Delete(t.flows, at, at+1); len(t.flows) == 0 {
		delete(f.known, t.key)
		if t.places > 0 {
			return // its leases refer to it
		}
		t.key, t.answers, t.user = "", nil, nil
		f.gone = append(f.gone, t)
	}
}

// listFull lists the tenant among tenants at their cap at some endpoint exactly if it is.
func (f *flowAccounts) listFull(t *tenant) {
	full, last := t.byEndpoint.full.Len() > 0, len(f.full)-1
	switch {
	case full == (t.fullIndex > 0):
	case full:
		f.full = append(f.full, t)
		t.fullIndex = len(f.full)
	default:
		f.full[last].fullIndex = t.fullIndex
		f.full[t.fullIndex-1] = f.full[last]
		f.full[last] = nil
		f.full, t.fullIndex = f.full[:last], 0
	}
}
