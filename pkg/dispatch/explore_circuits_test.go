package dispatch

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-epp/weir/pkg/stock"
)

// In scenes with circuits an engine may answer 500, or 429 with Retry-After. Each engine has already failed seven
// times, for the scene's suspects, so one more failure may open its circuit. Exploring all eight failures would take
// too many requests.

// asksFor is the Retry-After of a 429.
const asksFor = 2 * tick

// answers ends a stream with a status, and an unknown cost.
func (w *world) answers(s *subject, status int) {
	s.outcome, s.told, s.failed = OutcomeDispatched, true, status >= 500
	if s.preempted {
		s.outcome = OutcomePreempted
	}
	s.answeredAt = w.clock
	a := Answer{Status: status}
	if status == 429 {
		a.RetryAfter = asksFor
	}
	w.event(func() { w.Answered(w.clock, s.w.Granted(), -1, a) })
	w.event(func() { w.Answered(w.clock, s.w.Granted(), -1, Answer{Status: 500}) })
}

// prime makes engines without known answers look as if they had failed before.
func (w *world) prime() {
	for _, f := range w.failing {
		if f.circuit != (stock.Circuit{}) {
			continue
		}
		for i := range 7 {
			f.circuit.Answered(w.clock, w.clock, w.scene.suspects[i%len(w.scene.suspects)], stock.FullFailure)
		}
	}
}

// circuitInputs returns the possible answers of failing engines.
func (w *world) circuitInputs() (in []input) {
	for i, s := range w.subjects {
		if s.w.stage == StageSent && w.scene.suspects != nil {
			in = append(in, input{fails, int8(i)}, input{asks, int8(i)})
		}
	}
	return in
}

// engineGlance is an engine's state before the input, for the checks.
type engineGlance struct {
	known bool
	state stock.CircuitState
	until time.Time
	busy  time.Time
}

func (g *engineGlance) failed(now time.Time) bool {
	return g.state != stock.CircuitClosed || now.Before(g.busy)
}

func (g *engineGlance) shut(now time.Time) bool {
	return (g.state == stock.CircuitOpen || g.state == stock.CircuitTrial) && now.Before(g.until) || now.Before(g.busy)
}

func (w *world) lookAtEngines() (all [2]engineGlance) {
	for e, f := range w.failing {
		all[e] = engineGlance{true, f.circuit.State(), f.circuit.Until(), f.asked.busy}
	}
	return all
}

// placesOf returns the number of slots held by a tenant's failures at an endpoint, or anywhere.
func (w *world) placesOf(tenant string, e Endpoint) (n int) {
	for at, f := range w.failing {
		for _, h := range f.held {
			if h.tenant.key == tenant && (e == NoEndpoint || at == e) {
				n++
			}
		}
	}
	return n
}

// circuitsAgree checks the documented behavior of circuits.
func (w *world) circuitsAgree(g glance) error {
	if w.scene.suspects == nil {
		return nil
	}
	now, engines := w.clock, w.lookAtEngines()
	shutOf := func(r reach) (shut, ready int) {
		for _, e := range w.fleet.ready(r) {
			if ready++; engines[e].failed(now) {
				shut++
			}
		}
		return shut, ready
	}
	if shut, ready := shutOf(""); 2*shut > ready {
		return fmt.Errorf("%d of %d ready endpoints are shut", shut, ready)
	}
	for _, s := range w.subjects {
		if !s.waits() {
			continue
		}
		if shut, ready := shutOf(s.kind.lane); 2*shut > ready {
			return fmt.Errorf("%v waits, and %d of the %d endpoints of its lane are shut", s, shut, ready)
		}
	}
	for e := range Endpoint(2) {
		before, after := g.engines[e], engines[e]
		went := 0
		for _, s := range w.subjects {
			if s.holds() && s.w.reservation.Endpoint() == e && (!s.wasHeld || s.wasAt != e) {
				went++
			}
		}
		switch {
		case g.in.op == passesOn || g.in.op == isServed || !w.config.Enabled || went == 0:
		case before.shut(now) && after.shut(now) && before == after:
			return fmt.Errorf("%d go to endpoint %d, which is shut", went, e)
		case before.failed(now) && after.failed(now) && went > 1:
			return fmt.Errorf("%d go to endpoint %d as a trial", went, e)
		}
	}
	return w.placesAgree(g)
}

// placesAgree: only fresh failures hold slots, at most the allowed number.
func (w *world) placesAgree(g glance) error {
	for e, f := range w.failing {
		if f.withheld != w.fleet.foreign[e] && w.fleet.slots[e] > 0 {
			return fmt.Errorf("%d are withheld at endpoint %d, which knows of %d", f.withheld, e, w.fleet.foreign[e])
		}
	}
	overdue := w.queue.Len() == 0 // then a free slot may go unnoticed
	for key, t := range w.flows.known {
		if n := w.placesOf(key, NoEndpoint); n != int(t.places) {
			return fmt.Errorf("%d failures of %s hold places, %d count for its cap", n, key, t.places)
		}
		for e := range Endpoint(2) {
			fresh := 0
			for _, s := range w.subjects {
				if s.failed && s.kind.key() == key && s.w.Granted().Endpoint() == e && (overdue || w.clock.Sub(s.answeredAt) < longestHold) {
					fresh++
				}
			}
			if n := w.placesOf(key, e); n > fresh || n > max(1, w.most(e)/8) {
				return fmt.Errorf("%d failures of %s hold places at endpoint %d, and %d are fresh", n, key, e, fresh)
			}
		}
	}
	if g.in.op != fails {
		return nil
	}
	s := w.subjects[g.in.index]
	e := s.w.Granted().Endpoint()
	elsewhere := slices.ContainsFunc(w.subjects, func(o *subject) bool { return o.failed && o.w.Granted().Endpoint() != e })
	if f := w.failing[e]; f != nil && g.engines[e].known && w.fleet.slots[e] > 0 && !f.shut(w.clock) && !elsewhere && w.placesOf(s.kind.key(), e) == 0 {
		return fmt.Errorf("%v has failed, and holds no place", s)
	}
	return nil
}

// longestHold is the longest time for which a failure holds a slot: an eighth of a request's time in a scene.
const longestHold = 8 * tick / 8

// appendEngines appends the state of failing engines that decides later events. It includes past times unchanged, so
// worlds with such engines are rarely equal.
func (w *world) appendEngines(b []byte) []byte {
	if w.scene.suspects == nil {
		return b
	}
	for e := range Endpoint(2) {
		f := w.failing[e]
		if f == nil {
			continue
		}
		b = fmt.Append(b, e, f.circuit, f.service, f.withheld, max(0, f.asked.busy.Sub(w.clock)), f.asked.sole > 0, f.asked.tenant, max(0, f.asked.until.Sub(w.clock)))
		for _, h := range f.held {
			b = fmt.Append(b, h.tenant.key, max(0, h.until.Sub(w.clock)))
		}
		for _, s := range w.subjects {
			if l := s.w.Granted(); s.holds() && l.Endpoint() == e {
				b = fmt.Append(b, s.kind, s.w.stage, w.sinceBorn(w.clock)-l.begun)
			}
		}
		if f.circuit.State() != stock.CircuitClosed {
			b = fmt.Append(b, w.clock)
		}
	}
	for _, key := range [...]string{"a", "b"} {
		if t := w.flows.known[key]; t != nil && t.answers != nil {
			b = fmt.Append(b, key, *t.answers)
		}
	}
	return b
}

// mended: a minute later no failure holds a slot, and each engine gets requests.
func (w *world) mended() error {
	if w.scene.suspects == nil {
		return nil
	}
	later := w.clock.Add(time.Minute)
	w.event(func() { w.Advance(later) })
	for _, s := range w.Engines(later, nil) {
		if s.Held > 0 || s.Busy || s.Circuit == stock.CircuitOpen || s.Circuit == stock.CircuitTrial {
			return fmt.Errorf("at the end: %+v", s)
		}
	}
	for key, t := range w.flows.known {
		if t.places != 0 {
			return fmt.Errorf("at the end failures of %s hold %d places", key, t.places)
		}
	}
	return nil
}
