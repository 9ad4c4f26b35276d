package extproc

import "sync/atomic"

// presence estimates whether there is a first-token gate behind the main filter. No message from Envoy states it, a
// setting could be forgotten or become wrong, and several Envoys may differ, so Weir observes it. The first stream of
// any gate shows that there is one: from then on every request gets an ID. After gateRun consecutive responses bypass
// the gate, Weir assumes that it is gone, until the next stream of a gate.
//
// The estimate only avoids unused IDs of requests that cannot be preempted. A preemptible request always has an ID (ADR
// 0024): before the first response, and with several Envoys of which some have a gate, any estimate is wrong for some
// requests, and without an ID the gate would release a victim's response headers. For other requests a wrong estimate
// costs the measurement of their time to first token, or a few bytes of metadata that Envoy drops.
type presence struct {
	// seen is set while a gate is assumed.
	seen atomic.Bool
	// run is the number of consecutive responses that came through a gate, or, below zero, that bypassed it.
	run atomic.Int32
}

// gateRun is the number of consecutive responses that change the estimate.
const gateRun = 64

// likely reports whether a gate is assumed.
func (p *presence) likely() bool { return p.seen.Load() }

// certain reports whether the last gateRun responses all came through a gate.
func (p *presence) certain() bool { return p.seen.Load() && p.run.Load() >= gateRun }

// appeared records a stream of a gate, and reports whether none was assumed before.
func (p *presence) appeared() (news bool) {
	if p.seen.Load() {
		return false
	}
	p.run.Store(0)
	return p.seen.CompareAndSwap(false, true)
}

// passed records a response that came through a gate.
func (p *presence) passed() { p.count(1) }

// missed records a response that bypassed the gate.
func (p *presence) missed() {
	if p.count(-1) <= -gateRun {
		p.seen.Store(false)
	}
}

// count extends the run by a step of 1 or -1, or begins a run of the other kind.
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
