package extproc

import "sync/atomic"

// presence says whether a first-token gate stands behind the main filter. No message of Envoy's tells, a setting could
// be forgotten or go stale, and several Envoys may differ; so it is seen. The first stream of a gate, even one that
// names nobody, shows that there is one: from then on all requests are given names. Once so many answers in a row have
// come past the main stream and by no gate, there is none any more, until the next gate's stream.
//
// A request that can be preempted has a name in any case (ADR 0024): before the first answer, and behind several Envoys
// of which some have a gate, any belief is wrong for some, and without a name the gate lets the headers of a victim
// through. What is learned only saves the name for the others, for whom a gate has nothing to hold back: there it costs
// the time to the first token. A name that nobody asks for is a few bytes of metadata that Envoy drops; and the main
// stream decides by its own response headers in any case, unless they were skipped, which takes a request that can never
// be preempted.
type presence struct {
	// run counts the answers in a row that came by a gate, or, below zero, that did not. seen says that it counts.
	seen atomic.Bool
	run  atomic.Int32
}

// gateRun is how many answers in a row make a habit.
const gateRun = 64

// likely says that there seems to be a gate.
func (p *presence) likely() bool { return p.seen.Load() }

// certain says that the last answers all came by a gate.
func (p *presence) certain() bool { return p.seen.Load() && p.run.Load() >= gateRun }

// appeared is told of each stream of a gate; it says whether that is news.
func (p *presence) appeared() (news bool) {
	if p.seen.Load() {
		return false
	}
	p.run.Store(0)
	return p.seen.CompareAndSwap(false, true)
}

// passed is told of an answer that came by a gate.
func (p *presence) passed() { p.count(1) }

// missed is told of an answer that came by none.
func (p *presence) missed() {
	if p.count(-1) <= -gateRun {
		p.seen.Store(false)
	}
}

// count continues the run, or begins one of the other kind.
func (p *presence) count(step int32) int32 {
	for {
		old := p.run.Load()
		now := old + step
		switch {
		case old*step < 0:
			now = step
		case now > gateRun || now < -gateRun:
			return old
		}
		if p.run.CompareAndSwap(old, now) {
			return now
		}
	}
}
