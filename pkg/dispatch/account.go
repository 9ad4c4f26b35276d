package dispatch

import (
	"cmp"
	"iter"
	"slices"

	"github.com/weir-epp/weir/pkg/stock"
)

// flowAccount is what the machine keeps of a flow while it has a request waiting or in flight.
type flowAccount struct {
	tier       int
	flow       string
	since      uint64 // the number of accounts made before it
	waiting    int    // being admitted or in the queue
	inflight   int
	pace       pace
	byEndpoint tally // its leases by endpoint, if those are capped
	listed     bool  // it is in Machine.parked
}

// flowAccounts holds the accounts of live flows. It is bounded by the requests in the system: an account without a
// request is dropped.
type flowAccounts struct {
	live [stock.MaxTiers]map[string]*flowAccount // by tier's identifier and flow's key; nil: none yet
	n    int                                     // number of live accounts
	made uint64                                  // number of accounts ever made
	free []*flowAccount
}

// find returns the account of a live flow, or nil.
func (f *flowAccounts) find(tier int, flow string) *flowAccount { return f.live[tier][flow] }

// all iterates over the live accounts in no particular order.
func (f *flowAccounts) all() iter.Seq[*flowAccount] {
	return func(yield func(*flowAccount) bool) {
		for tier := range f.live {
			if len(f.live[tier]) == 0 {
				continue
			}
			for _, a := range f.live[tier] {
				if !yield(a) {
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

// addWaiter counts a request of the flow as waiting, and makes the flow's account if there is none.
func (f *flowAccounts) addWaiter(tier int, flow string) *flowAccount {
	a := f.live[tier][flow]
	if a == nil {
		if n := len(f.free); n > 0 {
			a = f.free[n-1]
			f.free = f.free[:n-1]
		} else {
			a = new(flowAccount)
		}
		f.made++
		a.byEndpoint.empty()
		*a = flowAccount{tier: tier, flow: flow, since: f.made, byEndpoint: a.byEndpoint}
		if f.live[tier] == nil {
			f.live[tier] = map[string]*flowAccount{}
		}
		f.live[tier][flow] = a
		f.n++
	}
	a.waiting++
	return a
}

// removeWaiter counts one waiting request fewer. For a granted request, call addLease first, so that the account stays.
func (f *flowAccounts) removeWaiter(a *flowAccount) {
	a.waiting--
	f.dropIfIdle(a)
}

func (f *flowAccounts) addLease(a *flowAccount) { a.inflight++ }

func (f *flowAccounts) removeLease(a *flowAccount) {
	a.inflight--
	f.dropIfIdle(a)
}

func (f *flowAccounts) dropIfIdle(a *flowAccount) {
	if a.waiting == 0 && a.inflight == 0 {
		delete(f.live[a.tier], a.flow)
		f.n--
		a.listed = false
		f.free = append(f.free, a)
	}
}
