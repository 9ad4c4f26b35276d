package recording

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// begin reads the rest of an event's record and passes the event to the machine.
func (p *player) begin(k kind, now time.Time) error {
	m := p.machine
	switch k {
	case arrive, passOn:
		return p.arrive(k, now)
	case told:
		return p.about(func(r *request) { m.Told(r.Waiter) })
	case cancel:
		return p.about(func(r *request) {
			p.own = r
			m.Cancel(now, r.Waiter, p.in.outcome())
		})
	case firstByte:
		return p.held(func(l *dispatch.Lease) { m.FirstByte(l) })
	case prefilled:
		return p.held(func(l *dispatch.Lease) { m.Prefilled(now, l) })
	case rated:
		p.atPrefill = p.ratings()
		return nil
	case prompted:
		p.ring, p.prompt = p.in.text(), fairqueue.PromptOf(p.in.signed(), p.in.signed())
		return nil
	case metered:
		p.tenant, p.uses = p.in.key(), p.in.signed()
		return nil
	case titled:
		p.role = p.in.text()
		return nil
	case used:
		return p.held(func(l *dispatch.Lease) { m.Used(now, l, p.in.signed()) })
	case served:
		return p.held(func(l *dispatch.Lease) {
			m.ServedElsewhere(now, l, dispatch.Endpoint(p.in.signed()), int(p.in.signed()))
		})
	case complete, answered:
		return p.complete(k, now)
	case refuse:
		return p.refuse(now)
	case backends:
		return p.backends(now)
	case foreign:
		changes := p.others()
		return p.call(func() { m.SetForeign(now, changes) })
	case signals:
		e := dispatch.Endpoint(p.in.signed())
		s := dispatch.Signals{
			Running: int32(p.in.signed()), Waiting: int32(p.in.signed()), CacheUsed: int32(p.in.signed()), CacheTokens: p.in.signed(),
			Preemptions: p.in.signed(), Produced: p.in.signed(), Slots: int32(p.in.signed()),
		}
		flags := p.in.index(isKnown | isUtilised | isUnloaded + 1)
		if s.Known = flags&isKnown != 0; flags&isUtilised != 0 {
			s.Utilised, s.StatesUtilised = int32(p.in.signed()), true
		}
		if s.Unloaded = p.board.UnloadedBy(e); flags&isUnloaded != 0 {
			s.Unloaded = p.unloaded()
		}
		s.Adapters = p.adapters(e)
		if p.watch != nil && !p.in.broken {
			p.watch.reported(e, s)
		}
		return p.call(func() { m.SetSignals(now, e, s) })
	case raised:
		return p.held(func(l *dispatch.Lease) { m.Raise(now, l, fairqueue.Cost(p.in.signed()), stock.Tokens(p.in.signed())) })
	case trueUp:
		return p.held(func(l *dispatch.Lease) {
			to, tokens := fairqueue.Cost(p.in.signed()), stock.Tokens(p.in.signed())
			if p.watch != nil && !p.in.broken {
				p.watch.expected(l.Waiter(), to)
			}
			m.TrueUp(now, l, to, tokens)
		})
	case configure:
		return p.configure(now)
	case drain:
		return p.call(func() { m.Drain(now) })
	case advance:
		return p.call(func() { m.Advance(now) })
	case noted:
		m.NoteFailure()
		return nil
	default:
		p.in.broken = true
		return nil
	}
}

// unloaded reads an engine's statement of models that are not loaded.
func (p *player) unloaded() *scheduling.Unloaded {
	if !p.in.flag() {
		return nil
	}
	s := &scheduling.Unloaded{}
	for range p.in.count(1) {
		s.Models = append(s.Models, p.in.text())
	}
	return s
}

// adapters reads an engine's statement of its adapters.
func (p *player) adapters(e dispatch.Endpoint) *scheduling.AdapterState {
	if p.in.flag() { // as before
		return p.board.AdapterState(e)
	}
	if !p.in.flag() {
		return nil
	}
	s := &scheduling.AdapterState{Places: p.in.index(math.MaxInt32)}
	for range p.in.count(1) {
		s.Loaded = append(s.Loaded, p.in.text())
	}
	return s
}

// call calls the machine. If the machine panics, the next record must be a panic's.
func (p *player) call(part func()) error {
	if p.in.broken {
		return errBroken
	}
	if p.watch != nil {
		p.watch.event()
	}
	defer func() {
		if v := recover(); v != nil {
			p.panicked = fmt.Errorf("panic: %v", v)
		}
	}()
	part()
	return nil
}

// resume repeats a record of the event before it.
func (p *player) resume(k kind, now time.Time) error {
	m := p.machine
	if k == failed {
		if p.panicked == nil {
			return p.differs("a panic", "none")
		}
		failure := p.panicked
		p.panicked = nil
		return p.call(func() { m.Failed(now, failure) })
	}
	if err := p.unexpected(); err != nil {
		return err
	}
	v := m.Preemptor()
	if v == nil {
		return p.differs("a request that could preempt", "none that could")
	}
	if k == preempt {
		return p.call(func() { m.Preempt(now) })
	}
	o := p.in.outcome()
	r := p.requests[v.Number()]
	delete(p.requests, v.Number())
	err := p.call(func() { m.PreemptorGone(now, o) })
	if p.watch != nil && r != nil && r.Stage() == dispatch.StageEnded {
		p.watch.decided(r, rulingOn(r.Waiter))
	}
	return err
}

// about reads a request's number and calls part with the request.
func (p *player) about(part func(*request)) error {
	number := p.in.number()
	r := p.requests[number]
	switch {
	case p.in.broken:
		return errBroken
	case r == nil:
		return p.differs(fmt.Sprintf("of request %d", number), "there is none of that number")
	}
	if p.watch != nil {
		p.watch.about(r)
	}
	return p.call(func() { part(r) })
}

// held is about for an event of a lease: it calls part with the request's lease, if any.
func (p *player) held(part func(*dispatch.Lease)) error {
	return p.about(func(r *request) {
		if l := r.Lease(); l != nil {
			part(l)
		}
	})
}

// complete repeats a completion, with or without the engine's answer.
func (p *player) complete(k kind, now time.Time) error {
	return p.held(func(l *dispatch.Lease) {
		w := l.Waiter()
		cost := fairqueue.Cost(p.in.signed())
		if p.watch != nil {
			p.watch.completed(w, cost)
		}
		var a dispatch.Answer
		if k == answered {
			a = dispatch.Answer{Status: int(p.in.number()), RetryAfter: time.Duration(p.in.number())}
		}
		p.machine.Answered(now, l, cost, a)
		delete(p.requests, w.Number())
	})
}

// arrive repeats an arrival.
func (p *player) arrive(k kind, now time.Time) error {
	in := &p.in
	flags := in.octet()
	r := &request{Waiter: new(dispatch.Waiter)}
	a := dispatch.Arrival{Flow: in.key(), Tier: int(in.signed()), Cost: fairqueue.Cost(in.signed())}
	a.Tenant, a.Uses, p.tenant, p.uses = p.tenant, p.uses, "", 0
	if flags&hasTokens != 0 {
		a.Tokens = stock.Tokens(in.signed())
	}
	if flags&hasTierName != 0 {
		a.TierName = in.text()
	}
	if flags&hasPath != 0 {
		a.Path = &fairqueue.Path{
			Ring: p.ring, Prompt: p.prompt, Role: p.role, Class: in.text(), Strict: int(in.signed()), Priority: int(in.signed()),
		}
		p.ring, p.prompt, p.role = "", fairqueue.Prompt{}, ""
		for n := in.number(); n > 0 && !in.broken; n-- {
			a.Path.Under = append(a.Path.Under, in.key())
		}
	}
	if flags&hasDeadline != 0 {
		a.Deadline = p.base.Add(time.Duration(in.last + in.signed()))
	}
	if flags&isPlaced != 0 {
		recalled := in.constraint()
		if flags&isRated != 0 {
			recalled.Ratings = p.ratings()
		}
		recalled.AtPrefill, p.atPrefill = p.atPrefill, nil
		r.query = recalled.Query()
		a.Placement = r.query
	}
	if r.id = in.id(flags); in.broken {
		return errBroken
	}
	p.own = r
	p.summary.Arrivals++
	if p.watch != nil {
		p.watch.arrived(r, &a)
	}
	err := p.call(func() {
		if k == passOn {
			p.machine.PassOn(now, r.Waiter, a)
		} else {
			p.machine.Arrive(now, r.Waiter, a)
		}
	})
	p.requests[r.Number()] = r
	return err
}

// The smallest sizes in bytes of an endpoint's cached tokens, a ranked endpoint, a backend, and a backend's foreign
// stock.
const leastCached, leastNear, leastBackend, leastForeign = 2, 1, 3, 3

// ratings reads the ratings of a request's prompt.
func (p *player) ratings() *scheduling.Ratings {
	r := &scheduling.Ratings{Prompt: p.in.signed(), Floor: p.in.signed()}
	if r.Prompt < 0 {
		r.Prompt, r.Watched = ^r.Prompt, true
	}
	for range p.in.count(leastCached) {
		r.Above = append(r.Above, scheduling.Cached{ID: scheduling.EndpointID(p.in.signed()), Tokens: p.in.signed()})
	}
	for range p.in.count(leastNear) {
		r.Near = append(r.Near, scheduling.EndpointID(p.in.signed()))
	}
	return r
}

// change reads a change of the pool and returns the snapshot after it, or nil if the pool has not changed.
func (p *player) change() (*scheduling.Snapshot, error) {
	text := p.in.bytes()
	if p.in.broken {
		return nil, errBroken
	}
	if len(text) == 0 {
		return nil, nil
	}
	var c poolChange
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("%w: %w", errBroken, err)
	}
	for _, e := range c.Set {
		if e.ID < 0 || e.MaxInFlight < 0 {
			return nil, errBroken
		}
	}
	return c.apply(p.board.Snapshot()), nil
}

// backends repeats a change of the endpoints.
func (p *player) backends(now time.Time) error {
	next, err := p.change()
	if err != nil {
		return err
	}
	n := p.in.count(leastBackend)
	ready := make([]stock.Backend, 0, n)
	for range n {
		ready = append(ready, stock.Backend{
			ID: stock.BackendID(p.in.signed()), Slots: int32(p.in.signed()), MaxTokens: stock.Tokens(p.in.signed()),
		})
	}
	others := p.others()
	err = p.call(func() {
		if next != nil {
			p.board.SetSnapshot(next)
		}
		p.machine.SetBackends(now, ready, others)
	})
	if p.watch != nil {
		p.watch.pool(ready, others)
	}
	return err
}

// others reads the foreign stock at some of the backends.
func (p *player) others() []stock.Foreign {
	changes := make([]stock.Foreign, 0, p.in.count(leastForeign))
	for range cap(changes) {
		changes = append(changes, stock.Foreign{
			ID: stock.BackendID(p.in.signed()), Held: stock.Amount{Requests: int(p.in.signed()), Tokens: stock.Tokens(p.in.signed())},
		})
	}
	return changes
}

// configure repeats a change of the configuration.
func (p *player) configure(now time.Time) error {
	c, err := p.in.configuration()
	if err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	scheduler, err := scheduling.New(c.Scheduling)
	if err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	if err := p.machine.Configurable(c.Dispatch); err != nil {
		return p.differs("the configuration was taken", err.Error())
	}
	err = p.call(func() {
		p.board.SetScheduler(scheduler)
		if err := p.machine.Configure(now, c.Dispatch); err != nil {
			panic(err)
		}
	})
	if p.watch != nil {
		p.watch.configured(c.Dispatch, c.Scheduling)
	}
	return err
}
