package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// player tells a machine the events of a recording and compares its verdicts.
type player struct {
	*state
	base   time.Time
	in     reader
	events uint64 // so far
	now    time.Time

	summary Summary

	// The present event.
	kind     kind
	own      *request
	compared int   // verdicts
	panicked error // and not yet recorded as such

	watch watcher // nil: nobody
}

// watcher observes what a player does.
type watcher interface {
	// arrived is called for each request before the machine gets it, and event for each event.
	arrived(r *request, a *dispatch.Arrival)
	event(k kind, about *request)
	// decided is called for each verdict that was as recorded.
	decided(r *request, v ruling)
}

// Difference is the first event at which a replay comes to something else than what was recorded.
type Difference struct {
	// Event counts from 1; At is its time, zero for an event without one.
	Event uint64
	At    time.Time
	// Kind is the event in words, Recorded and Replayed what it came to.
	Kind, Recorded, Replayed string
}

// Error implements error.
func (d *Difference) Error() string {
	at := ""
	if !d.At.IsZero() {
		at = " at " + d.At.UTC().Format(time.RFC3339Nano)
	}
	return printable(fmt.Sprintf("event %d (%s%s): recorded: %s; replayed: %s", d.Event, d.Kind, at, d.Recorded, d.Replayed))
}

func (p *player) differs(recorded, replayed string) error {
	return &Difference{p.events, p.now, p.kind.String(), recorded, replayed}
}

// errBroken is a segment that cannot be read.
var errBroken = errors.New("recording: broken")

// play replays one segment. A panic outside the machine is that of values that contracts forbid, such as two endpoints of
// one address: the segment is broken.
func (p *player) play(segment []byte) (err error) {
	defer p.contain(&err)
	p.in = reader{in: segment}
	for p.in.more() {
		k, now := p.in.next(p.base)
		if err := p.record(k, now); err != nil {
			return err
		}
		if p.in.broken {
			return fmt.Errorf("%w: event %d (%s)", errBroken, p.events, k)
		}
	}
	if p.in.broken {
		return errBroken
	}
	return p.end()
}

// contain makes a panic the error.
func (p *player) contain(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("%w: event %d (%s): %s", errBroken, p.events, p.kind, printable(fmt.Sprint(v)))
	}
}

// record does what one record says.
func (p *player) record(k kind, now time.Time) error {
	if k == verdict {
		return p.compare()
	}
	if k.follows() {
		return p.goOn(k, now)
	}
	if err := p.end(); err != nil {
		return err
	}
	p.events++
	p.summary.add(now)
	p.kind, p.now, p.own, p.compared = k, now, nil, 0
	return p.begin(k, now)
}

// begin tells the machine of an event.
func (p *player) begin(k kind, now time.Time) error {
	m := p.machine
	switch k {
	case arrive, passOn:
		return p.arrive(k, now)
	case told:
		return p.about(func(r *request) { m.Told(&r.Waiter) })
	case cancel:
		return p.about(func(r *request) {
			p.own = r
			m.Cancel(now, &r.Waiter, dispatch.Outcome(p.in.index(dispatch.NumOutcomes)))
		})
	case firstByte:
		return p.held(func(l *dispatch.Lease) { m.FirstByte(l) })
	case served:
		return p.held(func(l *dispatch.Lease) { m.ServedElsewhere(now, l, dispatch.Endpoint(p.in.signed())) })
	case complete:
		return p.complete(now)
	case refuse:
		key, o, recorded := p.in.text(), dispatch.Outcome(p.in.index(dispatch.NumOutcomes)), time.Duration(p.in.number())
		if p.in.broken {
			return errBroken
		}
		if replayed := m.Refuse(now, key, o); replayed != recorded {
			return p.differs("come back in "+recorded.String(), "in "+replayed.String())
		}
		return nil
	case backends:
		return p.backends(now)
	case foreign:
		id, held := stock.BackendID(p.in.signed()), stock.Amount{Requests: int(p.in.signed()), Cost: p.in.signed()}
		return p.call(func() { m.SetForeign(now, id, held) })
	case signals:
		e := dispatch.Endpoint(p.in.signed())
		s := dispatch.Signals{
			Running: int32(p.in.signed()), Waiting: int32(p.in.signed()), CacheUsed: int32(p.in.signed()), Known: p.in.number() == 1,
		}
		return p.call(func() { m.SetSignals(now, e, s) })
	case raised:
		return p.held(func(l *dispatch.Lease) { m.Raise(now, l, fairqueue.Cost(p.in.signed())) })
	case trueUp:
		return p.held(func(l *dispatch.Lease) { m.TrueUp(now, l, fairqueue.Cost(p.in.signed())) })
	case usageLate:
		return p.about(func(r *request) {
			m.UsageLate(now, &r.Waiter, fairqueue.Cost(p.in.signed()))
			delete(p.requests, r.Number())
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

// call runs a part of an event. A panic in it is to be the next record.
func (p *player) call(part func()) error {
	if p.in.broken {
		return errBroken
	}
	if p.watch != nil {
		p.watch.event(p.kind, p.own)
	}
	defer func() {
		if v := recover(); v != nil {
			p.panicked = fmt.Errorf("panic: %v", v)
		}
	}()
	part()
	return nil
}

// goOn does what belongs to the event before.
func (p *player) goOn(k kind, now time.Time) error {
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
	o := dispatch.Outcome(p.in.index(dispatch.NumOutcomes))
	r := p.requests[v.Number()]
	delete(p.requests, v.Number())
	err := p.call(func() { m.PreemptorGone(now, o) })
	if p.watch != nil && r != nil && r.Stage() == dispatch.StageEnded {
		p.watch.decided(r, verdictOn(&r.Waiter))
	}
	return err
}

func (p *player) unexpected() error {
	if p.panicked != nil {
		return p.differs("no panic", p.panicked.Error())
	}
	return nil
}

// end sees to it that the present event has come to no more than was recorded.
func (p *player) end() error {
	if err := p.unexpected(); err != nil {
		return err
	}
	if p.kind == 0 {
		return nil
	}
	if p.machine.Preemptor() != nil {
		return p.differs("nobody who could preempt", "request "+p.name(p.machine.Preemptor()))
	}
	if w := p.verdictOn(p.compared); w != nil {
		return p.differs("no further verdict", describe(p.name(w), verdictOn(w)))
	}
	p.kind = 0
	return nil
}

// verdictOn returns the request of the present event's i-th verdict, or nil if there are fewer.
func (p *player) verdictOn(i int) *dispatch.Waiter {
	if p.own != nil {
		if i == 0 {
			return &p.own.Waiter
		}
		i--
	}
	if !p.kind.hasVerdicts() {
		return nil
	}
	if others := p.machine.Verdicts(); i < len(others) {
		return others[i]
	}
	return nil
}

// hasVerdicts reports whether the verdicts of an event are recorded: of the others there are none.
func (k kind) hasVerdicts() bool { return k != told && k != firstByte && k != refuse && k != noted }

// compare reads a verdict and compares it with the machine's.
func (p *player) compare() error {
	if err := p.unexpected(); err != nil {
		return err
	}
	number := p.in.number()
	recorded := p.ruling()
	if p.in.broken {
		return errBroken
	}
	w := p.verdictOn(p.compared)
	p.compared++
	if w == nil {
		return p.differs(describe(fmt.Sprint(number), recorded), "no further verdict")
	}
	replayed := verdictOn(w)
	if w.Number() != number || replayed != recorded {
		return p.differs(describe(fmt.Sprint(number), recorded), describe(p.name(w), replayed))
	}
	p.summary.Verdicts++
	r := w.Owner().(*request)
	if p.watch != nil {
		p.watch.decided(r, replayed)
	}
	if replayed.stage == dispatch.StageEnded {
		delete(p.requests, number)
	}
	return nil
}

func (p *player) ruling() ruling {
	v := ruling{stage: dispatch.Stage(p.in.index(int(dispatch.StageEnded) + 1))}
	switch v.stage {
	case dispatch.StageGranted, dispatch.StageSent:
		v.endpoint = dispatch.Endpoint(p.in.signed())
	case dispatch.StageEnded:
		v.outcome, v.retry = dispatch.Outcome(p.in.index(dispatch.NumOutcomes)), time.Duration(p.in.number())
	default:
	}
	return v
}

// name is a request as people know it.
func (p *player) name(w *dispatch.Waiter) string {
	if r, ok := w.Owner().(*request); ok && r.id != "" {
		return fmt.Sprintf("%d (%s)", w.Number(), r.id)
	}
	return fmt.Sprint(w.Number())
}

func describe(name string, v ruling) string {
	text := "request " + name
	switch v.stage {
	case dispatch.StageGranted, dispatch.StageSent:
		return fmt.Sprintf("%s dispatched to endpoint %d", text, v.endpoint)
	case dispatch.StageEnded:
		return fmt.Sprintf("%s ended as %v, to come back in %v", text, v.outcome, v.retry)
	case dispatch.StageWaiting:
		return text + " waits"
	default:
		return fmt.Sprintf("%s in stage %d", text, v.stage)
	}
}

// about runs an event of a request that is known.
func (p *player) about(part func(*request)) error {
	number := p.in.number()
	r := p.requests[number]
	switch {
	case p.in.broken:
		return errBroken
	case r == nil:
		return p.differs(fmt.Sprintf("of request %d", number), "there is none of that number")
	}
	return p.call(func() { part(r) })
}

// held is about for one that holds a lease.
func (p *player) held(part func(*dispatch.Lease)) error {
	return p.about(func(r *request) {
		if l := r.Lease(); l != nil {
			part(l)
		}
	})
}

// complete settles a lease. A request whose cost is not known yet can be named by one more event, as long as the machine
// takes it.
func (p *player) complete(now time.Time) error {
	return p.held(func(l *dispatch.Lease) {
		w := l.Waiter()
		p.machine.Complete(now, l, fairqueue.Cost(p.in.signed()))
		if !p.machine.TakesUsage(w) {
			delete(p.requests, w.Number())
			return
		}
		if r := p.requests[w.Number()]; r != nil {
			r.query = nil
		}
		if len(p.lacking) < dispatch.MostLate {
			p.lacking = append(p.lacking, w.Number())
			return
		}
		delete(p.requests, p.lacking[p.oldest])
		p.lacking[p.oldest] = w.Number()
		p.oldest = (p.oldest + 1) % dispatch.MostLate
	})
}

func (p *player) arrive(k kind, now time.Time) error {
	in := &p.in
	flags := in.octet()
	r := &request{}
	a := dispatch.Arrival{Flow: in.text(), Tier: int(in.signed()), Cost: fairqueue.Cost(in.signed()), Owner: r}
	if flags&hasTierName != 0 {
		a.TierName = in.text()
	}
	if flags&hasPath != 0 {
		a.Path = &fairqueue.Path{Class: in.text(), Strict: int(in.signed()), Priority: int(in.signed())}
		for n := in.number(); n > 0 && !in.broken; n-- {
			a.Path.Under = append(a.Path.Under, in.text())
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
		r.query = recalled.Query()
		a.Placement = r.query
	}
	switch {
	case flags&hasUUID != 0:
		r.id = uuidOf(in.fixed(uuidSize))
	case flags&hasText != 0:
		r.id = string(in.bytes())
	}
	if in.broken {
		return errBroken
	}
	p.own = r
	p.summary.Arrivals++
	if p.watch != nil {
		p.watch.arrived(r, &a)
	}
	err := p.call(func() {
		if k == passOn {
			p.machine.PassOn(now, &r.Waiter, a)
		} else {
			p.machine.Arrive(now, &r.Waiter, a)
		}
	})
	p.requests[r.Number()] = r
	return err
}

// leastRating and leastBackend are how many bytes one of them takes at least.
const leastRating, leastBackend = 3, 3

func (p *player) ratings() []scheduling.EndpointRating {
	ratings := make([]scheduling.EndpointRating, 0, p.in.count(leastRating))
	for range cap(ratings) {
		var r scheduling.EndpointRating
		r.Scorer, r.ID, r.Score = p.in.text(), scheduling.EndpointID(p.in.signed()), scheduling.Score(p.in.signed())
		ratings = append(ratings, r)
	}
	return ratings
}

// change reads and returns how the snapshot has changed, or nil if it has not.
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

func (p *player) backends(now time.Time) error {
	next, err := p.change()
	if err != nil {
		return err
	}
	n := p.in.count(leastBackend)
	ready := make([]stock.Backend, 0, n)
	for range n {
		ready = append(ready, stock.Backend{
			ID: stock.BackendID(p.in.signed()), Slots: int(p.in.signed()), MaxCost: p.in.signed(),
		})
	}
	return p.call(func() {
		if next != nil {
			p.board.SetSnapshot(next)
		}
		p.machine.SetBackends(now, ready)
	})
}

func (p *player) configure(now time.Time) error {
	var c configuration
	if err := json.Unmarshal(p.in.bytes(), &c); err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	scheduler, err := scheduling.New(c.Scheduling)
	if err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	if err := p.machine.Configurable(c.Dispatch); err != nil {
		return p.differs("the configuration was taken", err.Error())
	}
	return p.call(func() {
		p.board.SetScheduler(scheduler)
		if err := p.machine.Configure(now, c.Dispatch); err != nil {
			panic(err)
		}
	})
}
