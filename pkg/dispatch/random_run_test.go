package dispatch_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/heap"
	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
)

var dawn = time.Unix(1_000_000_000, 0)

// run is one life of a machine, with all its callers: streams, clients, the timer.
type run struct {
	world
	scene     *scene
	scheduler *scheduling.Scheduler
	board     *scheduling.Board
	snapshot  *scheduling.Snapshot
	agenda    heap.Heap[*action]
	order     uint64
	requests  int
	sent      map[int]int // requests by load
	owners    map[*dispatch.Waiter]*request
	shares    *shares
	turns     *turns
	counted   map[string][]*counted // what has counted against each tenant's quota
	counts    tallies
	trace     []string                            // the last events
	before    [mostEndpoints]dispatch.EngineState // the present event
	engines   [mostEndpoints]dispatch.EngineState // after it
	wentTo    [mostEndpoints]int                  // in the present event
	longest   [mostEndpoints]time.Duration        // successful request at each
	failed    []*request                          // whose engines have
	traces    bool
}

// tallies count the cases that a run has covered.
type tallies struct {
	requests, grants, bypasses, preemptions, promotions, rejections, regroupings, turns int
	windows, comparedWFQ, comparedVTC                                                   int // of shares
	overtakenByOwn, overtakenByOther                                                    int
	failures, opened, trials, heldPlaces                                                int
	overQuota, reweighed                                                                int
	blocked, unblocked, limited                                                         int // by their classes
}

// broken is the panic of a property that does not hold.
type broken struct{ error }

// failf ends the run: a property does not hold. Its name comes first.
func (x *run) failf(format string, of ...any) { panic(broken{fmt.Errorf(format, of...)}) }

// in schedules an action after a time.
func (x *run) in(d time.Duration, do func()) {
	x.order++
	x.agenda.Push(&action{at: x.now.Add(d), order: x.order, do: do})
}

// play runs a scene; the error is the first violated property.
func play(s *scene, traces bool) (x *run, err error) {
	x = &run{scene: s, owners: map[*dispatch.Waiter]*request{}, sent: map[int]int{}, traces: traces}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case broken:
			err = p.error
		default:
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	x.begin()
	for x.agenda.Len() > 0 || x.m.Waiting() > 0 {
		x.step()
	}
	x.isAtRest()
	return x, nil
}

func (x *run) begin() {
	x.now, x.config = dawn, x.scene.config
	var err error
	if x.scheduler, err = scheduling.New(scheduling.DefaultConfig()); err != nil {
		x.failf("scheduler: %w", err)
	}
	x.board = scheduling.NewBoard(x.scheduler, rand.New(rand.NewPCG(x.scene.seed, 1)))
	if x.m, err = dispatch.New(x.config, placement.On(x.board), rand.New(rand.NewPCG(x.scene.seed, 2))); err != nil {
		x.failf("configuration: %w", err)
	}
	x.shares, x.turns, x.counted, x.spells = newShares(x), newTurns(x), map[string][]*counted{}, map[string][]string{}
	x.snapshot = x.board.Snapshot()
	x.rank()
	x.setPool(x.scene.pool)
	for i := range x.scene.loads {
		l := &x.scene.loads[i]
		x.in(l.begins, func() { x.starts(l) })
	}
	for _, c := range x.scene.changes {
		x.in(c.at, func() { x.changes(c) })
	}
	x.in(x.scene.length, x.mends)
}

// starts begins a load.
func (x *run) starts(l *load) {
	if l.clients == 0 {
		x.sendsOn(l)
		return
	}
	for range l.clients {
		x.sends(l)
	}
}

// sendsOn sends one request, and after a pause the next, independent of the first one's fate.
func (x *run) sendsOn(l *load) {
	if r := x.sends(l); r != nil {
		x.in(max(r.pause, time.Millisecond), func() { x.sendsOn(l) })
	}
}

// sends sends a load's next request, unless its time is over; nil: it is.
func (x *run) sends(l *load) *request {
	if x.now.Sub(dawn) >= l.begins+l.lasts || x.requests >= x.scene.most {
		return nil
	}
	x.requests++
	x.sent[l.id]++
	number := x.sent[l.id]
	r := &request{load: l, number: number, plan: planned(x.scene, l, number), came: x.now, at: scheduling.NoEndpoint}
	x.owners[&r.w] = r
	x.arrives(r)
	return r
}

// ends is the end of a request: a client of a closed loop sends the next one after a pause, and later if it was rejected.
func (x *run) ends(r *request) {
	r.phase = ended
	if r.load.clients == 0 {
		return
	}
	pause := r.pause
	if r.w.Number() == 0 || r.w.Outcome() != dispatch.OutcomeDispatched {
		pause += 200 * time.Millisecond
	}
	x.in(pause, func() { x.sends(r.load) })
}

// step does the next due action, or advances the machine.
func (x *run) step() {
	in, asks := x.m.Next(x.now)
	at := x.now.Add(in)
	if asks != (len(x.waiting) > 0) {
		x.failf("timer: %d wait, to be asked again: %t", len(x.waiting), asks)
	}
	if asks && (x.agenda.Len() == 0 || !x.agenda.Min().at.Before(at)) {
		if at.Before(x.now) {
			x.failf("timer: it stands %v back", x.now.Sub(at))
		}
		x.now = at
		x.event("the timer", func() { x.m.Advance(x.now) }, nil)
		return
	}
	a := x.agenda.Min()
	x.agenda.Remove(a)
	x.now = a.at
	a.do()
}

// note keeps the trace.
func (x *run) note(format string, of ...any) {
	if x.traces {
		x.trace = append(x.trace, fmt.Sprintf("%v: ", x.now.Sub(dawn))+fmt.Sprintf(format, of...))
	}
}

// event is an event with its caller's duties. effect is the event's direct effect on known requests.
func (x *run) event(what string, happens, effect func()) {
	x.note("%s", what)
	happens()
	for p := x.m.Preemptor(); p != nil; p = x.m.Preemptor() {
		r := x.owners[p]
		if r.phase != waiting {
			x.failf("preemption: %v is asked for and does not wait", r)
		}
		if r.gone {
			x.m.PreemptorGone(x.now, dispatch.OutcomeClientCancelled)
			x.rejected(r)
		} else {
			x.m.Preempt(x.now)
		}
	}
	if effect != nil {
		effect()
	}
	x.follow(nil)
	x.rules()
}

// arrives makes a request arrive.
func (x *run) arrives(r *request) {
	q, err := x.scheduler.Prepare(x.snapshot, r.load.ask)
	if err != nil {
		o := dispatch.OutcomeNoEndpoint
		if errors.Is(err, scheduling.ErrModelUnknown) {
			o = dispatch.OutcomeUnknownModel
		}
		x.refuses(r, o)
		return
	}
	r.query, r.lane = q, x.board.Lane(q)
	if x.scene.prompts {
		x.rates(r)
	}
	a := dispatch.Arrival{
		Flow: r.load.flow, TierName: r.load.tier, Path: r.load.path, Cost: r.cost, Tokens: r.tokens, Placement: q, Owner: r,
	}
	if r.deadline > 0 {
		a.Deadline = x.now.Add(r.deadline)
	}
	if len(r.load.roles) > 0 || x.scene.busies {
		p := r.path()
		a.Path = &p
	}
	if x.scene.metered {
		a.Tenant, a.Uses = r.load.flow, r.uses()
	}
	x.counts.requests++
	x.note("%v arrives, cost %d, tokens %d", r, r.cost, r.tokens)
	x.comes(r)
	if r.passesOn {
		x.m.PassOn(x.now, &r.w, a)
	} else {
		x.m.Arrive(x.now, &r.w, a)
	}
	x.meters(r)
	for p := x.m.Preemptor(); p != nil; p = x.m.Preemptor() {
		if w := x.owners[p]; w.gone {
			x.m.PreemptorGone(x.now, dispatch.OutcomeClientCancelled)
			if w != r {
				x.rejected(w)
			}
		} else {
			x.m.Preempt(x.now)
		}
	}
	r.class = x.class(r)
	x.expiry(r)
	x.follow(r)
	x.rules()
	if r.patience > 0 {
		x.in(r.patience, func() {
			if r.phase == waiting {
				x.event(fmt.Sprintf("%v leaves", r), func() { x.m.Cancel(x.now, &r.w, dispatch.OutcomeClientCancelled) }, func() { x.rejected(r) })
			}
		})
	}
}

// expiry returns the end of a request's time in the queue.
func (x *run) expiry(r *request) {
	ttl := x.config.Queue.QueueTTL
	for _, t := range x.config.Queue.Tiers {
		if x.named[t.Name] == r.w.Tier() && t.QueueTimeout > 0 {
			ttl = t.QueueTimeout
		}
	}
	r.expires, r.ttl = x.now.Add(ttl), true
	if r.deadline > 0 && r.deadline < ttl {
		r.expires, r.ttl = x.now.Add(r.deadline), false
	}
}

// refuses ends a request that no endpoint can ever serve.
func (x *run) refuses(r *request, o dispatch.Outcome) {
	retry := x.m.Refuse(x.now, o)
	if o == dispatch.OutcomeNoEndpoint && (retry < time.Second || retry > 2*time.Second) {
		x.failf("retry-after: %v is told %v", r, retry)
	}
	x.ends(r)
	for i := range x.pool {
		if x.serves(r, &x.pool[i]) {
			x.failf("refusal: %v is refused (%v), and endpoint %d serves it", r, o, x.pool[i].ID)
		}
	}
}

// goesOn plays a granted request: its stream is told, its answer begins and ends.
func (x *run) goesOn(r *request) {
	life := r.lives
	same := func() bool { return r.phase == running && r.lives == life }
	lease := r.w.Granted()
	tell := func() {
		if !same() || r.sent {
			return
		}
		if r.abandons {
			x.event(fmt.Sprintf("%v leaves when it is granted", r), func() { x.m.Cancel(x.now, &r.w, dispatch.OutcomeClientCancelled) }, func() {
				x.released = time.Time{}
				x.leaves(r)
				x.shares.refunded(r)
				x.rejected(r)
			})
			return
		}
		x.m.Told(&r.w)
		r.sent = true
	}
	if r.slow > 0 && !r.sent && !r.passedOn {
		x.in(r.slow, tell)
	} else {
		r.sent = true
		x.m.Told(&r.w)
	}
	still := func() bool { return same() && r.sent }
	x.in(r.slow+r.firstByte, func() {
		if still() && !r.streams {
			if !x.m.FirstByte(lease) {
				x.failf("first byte: that of %v is not let through", r)
			}
			if r.streams = true; !x.hasBusyRules() {
				r.reads = 0
			}
		}
	})
	if known := r.query.Ratings(); x.scene.busies && known != nil && known.Watched {
		x.in(r.slow+(r.firstByte+r.runs)/2, func() {
			if still() {
				x.event(fmt.Sprintf("the first token of %v", r), func() { x.m.Prefilled(x.now, lease) }, func() { r.reads = 0 })
			}
		})
	}
	x.in(r.slow+r.runs/2, func() {
		switch {
		case !still():
		case r.moves >= 0 && x.serves(r, x.endpointAt(r.moves)) && x.pool[r.moves%len(x.pool)].ID != r.at:
			to := x.pool[r.moves%len(x.pool)].ID
			x.event(fmt.Sprintf("endpoint %d serves %v", to, r), func() { x.m.ServedElsewhere(x.now, lease, to, 200) }, func() {
				if r.at = to; r.reads > 0 {
					x.readsAt(r, to)
				}
			})
		case r.grows && r.actual > r.cost:
			x.event(fmt.Sprintf("%v costs %d", r, r.actual), func() { x.m.Raise(x.now, lease, r.actual, r.actualTokens) }, func() {
				r.holds = max(r.holds, r.actualTokens)
				x.shares.known(r)
			})
		case r.early:
			x.event(fmt.Sprintf("%v costs %d", r, r.actual), func() { x.m.TrueUp(x.now, lease, r.actual, r.actualTokens) }, func() {
				r.holds = r.actualTokens
				x.shares.known(r)
			})
		}
	})
	x.in(r.slow+r.runs, func() {
		if !still() {
			return
		}
		cost := r.actual
		if r.never {
			cost = fairqueue.UnknownCost
		}
		x.used(r, lease)
		x.event(fmt.Sprintf("%v completes", r), func() {
			if !x.m.Answered(x.now, lease, cost, x.answer(r)) {
				x.failf("settled: %v is not settled", r)
			}
		}, func() {
			x.leaves(r)
			x.ends(r)
			if cost != fairqueue.UnknownCost {
				x.shares.known(r)
			}
		})
		x.event(fmt.Sprintf("%v completes again", r), func() {
			if x.m.Answered(x.now, lease, 100*r.actual, dispatch.Answer{Status: 500}) {
				x.failf("settled: %v is settled twice", r)
			}
		}, nil)
		x.shares.forgets(r)
	})
}

func (x *run) endpointAt(i int) *scheduling.Endpoint { return &x.pool[i%len(x.pool)] }

// waits inserts a request into the list of waiting ones, in its place.
func (x *run) waits(r *request) {
	r.phase = waiting
	at, _ := slices.BinarySearchFunc(x.waiting, r, func(a, b *request) int { return int(a.w.Number()) - int(b.w.Number()) })
	x.waiting = slices.Insert(x.waiting, at, r)
}

// takes gives a request a lease.
func (x *run) takes(r *request) {
	if r.phase == waiting {
		x.waiting = slices.DeleteFunc(x.waiting, func(o *request) bool { return o == r })
	}
	l := r.w.Granted()
	r.phase, r.at, r.promoted, r.streams, r.sent = running, l.Endpoint(), l.Promoted(), false, false
	r.lives++
	x.readsAt(r, r.at)
	r.began, r.holds = x.now, r.tokens
	r.counts = x.config.MaxInFlightPerFlowPerBackend > 0 || x.config.MaxTokensInFlightPerFlowPerBackend > 0
	x.running = append(x.running, r)
	if x.config.Enabled && !x.config.Stock.Unbounded && !r.passesOn {
		x.wentTo[r.at]++
	}
}

// leaves takes a request's lease away.
func (x *run) leaves(r *request) {
	x.running = slices.DeleteFunc(x.running, func(o *request) bool { return o == r })
}

// story is the trace, the last events of it.
func (x *run) story(most int) string {
	return strings.Join(x.trace[max(0, len(x.trace)-most):], "\n")
}
