package dispatch

import (
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// Raise raises what a request in flight is charged to a cost, and what it takes of the stock to so many tokens, because
// its answer has outgrown the estimate. Each stays if it is no less already. A lease that is settled stays as it was.
func (m *Machine) Raise(now time.Time, l *Lease, to fairqueue.Cost, tokens stock.Tokens) {
	m.begin(now)
	if !l.held.Held() {
		return
	}
	if tokens > l.held.Tokens() {
		m.adjust(l, tokens)
	}
	m.follow(l.Waiter())
	m.queue.Adjust(now, &l.queued, to)
	m.run()
}

// TrueUp corrects what a request in flight is charged to its actual cost, and what it takes of the stock to its actual
// tokens, which may be less than before; tokens less than 1 mean that these are not known. A lease that is settled stays
// as it was.
func (m *Machine) TrueUp(now time.Time, l *Lease, to fairqueue.Cost, tokens stock.Tokens) {
	m.begin(now)
	if !l.held.Held() {
		return
	}
	if tokens >= 1 {
		m.adjust(l, tokens)
	}
	m.follow(l.Waiter())
	m.queue.TrueUp(now, &l.queued, to)
	m.run()
}

// adjust changes the tokens of a lease that is held. A victim changes its position, since they may be its rank.
func (m *Machine) adjust(l *Lease, to stock.Tokens) {
	victim, before := l.victimIndex > 0, l.held.Tokens()
	m.victims.remove(l)
	m.ledger.Adjust(&l.held, to)
	m.countTokens(l, l.held.Tokens()-before)
	if change := l.held.Tokens() - before; change != 0 {
		m.addTokensAt(l, change)
	}
	if victim {
		m.victims.add(l)
	}
}
