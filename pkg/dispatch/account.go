package dispatch

import (
	"cmp"
	"iter"
	"slices"

	"github.com/weir-epp/weir/pkg/stock"
)

// flowAccount is what the machine keeps of a flow while it is live: while it has a request waiting or in flight.
type flowAccount struct {
	tier       int
	flow       string
	since      uint64 // its number among all that became live
	waiting    int    // being admitted or in the queue
	inflight   int
	tokens     stock.Tokens // of what is in flight
	pace       pace
	byEndpoint tally // its leases by endpoint, if those are capped
	listed     bool  // it is in Machine.parked
	resting    bool  // it is in flowAccounts.resting
	fullIndex  int   // 1-based index in flowAccounts.full; 0: it is not there
}

func (a *flowAccount) live() bool { return a.waiting > 0 || a.inflight > 0 }

// mostResting is the number of accounts that stay known without a request.
const mostResting = 1024

// flowAccounts holds the accounts of live flows. It is bounded by the requests in the system. A flow that has lost its
// last request often gets the next one soon, and adding and deleting its account costs more than all else that an
// account does, so the last mostResting stay known. They count for nothing, and begin anew with their next request.
type flowAccounts struct {
	known   [stock.MaxTiers]map[string]*flowAccount // by tier's identifier and flow's key; nil: none yet
	n       int                                     // number of live accounts
	begun   uint64                                  // how often an account became live
	resting []*flowAccount                          // a ring; some may be live again
	oldest  int                                     // its index in resting, once that is full
	full    []*flowAccount                          // those at their cap at some endpoint
	free    []*flowAccount
}

// find returns the account of a flow, or nil if it is not known.
func (f *flowAccounts) find(tier int, flow string) *flowAccount { return f.known[tier][flow] }

// all iterates over the live accounts in no particular order.
func (f *flowAccounts) all() iter.Seq[*flowAccount] {
	return func(yield func(*flowAccount) bool) {
		for tier := range f.known {
			if len(f.known[tier]) == 0 {
				continue
			}
			for _, a := range f.known[tier] {
				if a.live() && !yield(a) {
					return
				}
			}
		}
	}
}

// inOrder returns the live accounts, the oldest first.
func (f *flowAccounts) inOrder() []*flowAccount {
	return slices.SortedFunc(f.all(), func(a, b *flowAccount) int { return cmp.Compare(a.since, b.since) })
}

// countWaiter counts w as a waiting request of its flow; it is idempotent.
func (m *Machine) countWaiter(w *Waiter) {
	if !w.waiting {
		w.flow = m.flows.addWaiter(w.queued.Tier, w.queued.Flow)
		w.waiting = true
	}
}

// countWaiterAgain counts w as waiting after its grant came to nothing.
func (m *Machine) countWaiterAgain(w *Waiter) {
	w.flow.waiting++
	w.waiting = true
}

// uncountWaiter stops counting w as waiting; it is idempotent.
func (m *Machine) uncountWaiter(w *Waiter) {
	if w.waiting {
		w.waiting = false
		m.flows.removeWaiter(w.flow)
	}
}

// addWaiter counts a request of the flow as waiting.
func (f *flowAccounts) addWaiter(tier int, flow string) *flowAccount {
	a := f.known[tier][flow]
	if a == nil {
		a = f.add(tier, flow)
	}
	if !a.live() {
		f.n++
		f.begun++
		a.since, a.pace = f.begun, pace{}
		a.byEndpoint.empty()
	}
	a.waiting++
	return a
}

// add makes the account of a flow that is not known.
func (f *flowAccounts) add(tier int, flow string) (a *flowAccount) {
	if n := len(f.free); n > 0 {
		a = f.free[n-1]
		f.free = f.free[:n-1]
	} else {
		a = new(flowAccount)
	}
	a.tier, a.flow = tier, flow
	if f.known[tier] == nil {
		f.known[tier] = map[string]*flowAccount{}
	}
	f.known[tier][flow] = a
	return a
}

// removeWaiter counts one waiting request fewer. For a granted request, call addLease first, so that the account stays.
func (f *flowAccounts) removeWaiter(a *flowAccount) {
	a.waiting--
	f.restIfIdle(a)
}

func (f *flowAccounts) addLease(a *flowAccount, tokens stock.Tokens) {
	a.inflight++
	a.tokens += tokens
}

func (f *flowAccounts) removeLease(a *flowAccount, tokens stock.Tokens) {
	a.inflight--
	a.tokens -= tokens
	f.restIfIdle(a)
}

func (f *flowAccounts) restIfIdle(a *flowAccount) {
	if a.live() {
		return
	}
	f.n--
	a.listed = false
	if !a.resting {
		f.rest(a)
	}
}

// rest keeps an account without a request known, and forgets the one that has rested longest if there are too many.
func (f *flowAccounts) rest(a *flowAccount) {
	a.resting = true
	if len(f.resting) < mostResting {
		f.resting = append(f.resting, a)
		return
	}
	gone := f.resting[f.oldest]
	f.resting[f.oldest] = a
	f.oldest = (f.oldest + 1) % mostResting
	gone.resting = false
	if !gone.live() {
		delete(f.known[gone.tier], gone.flow)
		gone.flow = ""
		f.free = append(f.free, gone)
	}
}

// listFull lists the account among those at their cap at some endpoint exactly if it is.
func (f *flowAccounts) listFull(a *flowAccount) {
	full, last := a.byEndpoint.full.Len() > 0, len(f.full)-1
	switch {
	case full == (a.fullIndex > 0):
	case full:
		f.full = append(f.full, a)
		a.fullIndex = len(f.full)
	default:
		f.full[last].fullIndex = a.fullIndex
		f.full[a.fullIndex-1] = f.full[last]
		f.full[last] = nil
		f.full, a.fullIndex = f.full[:last], 0
	}
}
