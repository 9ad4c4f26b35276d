package dispatch

import (
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// Raise raises the charge of a request in flight to a cost, and its stock to tokens, because its answer has outgrown
// the estimate. Neither is ever lowered. A settled lease does not change.
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

// TrueUp corrects the charge of a request in flight to its actual cost, and its stock to its actual tokens. Both may
// fall. tokens below 1 are unknown. A settled lease does not change.
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

// adjust changes the tokens of a held lease. A victim may change its position, since tokens may decide the order.
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
