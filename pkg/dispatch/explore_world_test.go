package dispatch

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// tick is one advance of time: the starvation threshold, so every waiting request is starved after one tick.
const tick = time.Second

// scene is a configuration to explore.
type scene struct {
	name     string
	depth    int // committed number of inputs
	requests int // largest number of arrivals
	kinds    []arrivalKind
	crowd    []int8  // kinds that arrive before a second exploration begins
	pool     [][]int // slots by endpoint, 0: not ready; shrink moves one to the left, grow one to the right
	start    int     // in pool
	lower    int     // bounds of a lane per ready endpoint
	upper    int
	config   func(*Config)
	limit    int           // of an endpoint's reservations; 0: none
	poison   string        // a lane for which the placer panics
	others   int           // largest number of foreign requests at an endpoint
	batch    int           // expired waiters that one event ends; 0: the usual number
	passOn   bool          // passed-on requests are an input
	usage    []op          // inputs that report requests' costs
	reload   func(*Config) // the other configuration, if a reload is an input
	listed   [][2]string   // the models that each endpoint lists, a letter for each, by level of the pool, and "-" where it lacks images; nil: none matters
	lists    []listing     // made of them
	suspects []string      // flows whose requests have failed before; nil: no engine fails
}

// arrivalKind has the properties that distinguish requests.
type arrivalKind struct {
	tier int
	flow string
	lane reach
}

// signs begin the parts of a flow behind its key: its user, its class, the client's deadline, its role, and its tokens
// of a quota.
const signs = "./@^="

// part returns the part behind a sign in a flow such as "a/x@3"; "": none.
func (k arrivalKind) part(sign string) string {
	_, part, _ := strings.Cut(k.flow, sign)
	if end := strings.IndexAny(part, signs); end >= 0 {
		part = part[:end]
	}
	return part
}

// class returns the class x of a flow such as "a/x".
func (k arrivalKind) class() string { return k.part("/") }

// user returns the user u of a flow such as "a.u/x".
func (k arrivalKind) user() string { return k.part(".") }

// role returns the role s of a flow such as "a^s".
func (k arrivalKind) role() string { return k.part("^") }

// key returns the flow's own key: a flow may wait in several classes.
func (k arrivalKind) key() string {
	if end := strings.IndexAny(k.flow, signs); end >= 0 {
		return k.flow[:end]
	}
	return k.flow
}

// within returns the time from the arrival to the client's deadline, such as 3 ticks for "a/x@3"; 0: none.
func (k arrivalKind) within() time.Duration { return time.Duration(k.number("@")) * tick }

// uses returns the estimated tokens of its tenant's quota, such as 2 for "a=2"; 0: no quota counts it.
func (k arrivalKind) uses() int64 { return k.number("=") }

// number returns a part of one digit; 0 without one.
func (k arrivalKind) number(sign string) int64 {
	if part := k.part(sign); part != "" {
		return int64(part[0] - '0')
	}
	return 0
}

// reach is a placement: "" is the whole pool, a digit that endpoint, a letter the endpoints that list that model. "A"
// and "B" are the whole pool, with the prompt cached at endpoint 0 or 1. A letter and "+" are the model's endpoints
// that also take images.
type reach string

// isModel reports whether it names a model.
func (r reach) isModel() bool { return r >= "a" }

// model returns its model.
func (r reach) model() string { return string(r[:1]) }

// needs returns its needs besides the model.
func (r reach) needs() scheduling.Needs {
	if len(r) > 1 {
		return scheduling.NeedImage
	}
	return 0
}

// whole reports whether it is the whole pool.
func (r reach) whole() bool { return r == "" || r == "A" || r == "B" }

// cached returns the endpoint with the prompt; NoEndpoint if there is none.
func (r reach) cached() Endpoint {
	switch r {
	case "A":
		return 0
	case "B":
		return 1
	}
	return NoEndpoint
}

func (r reach) has(e Endpoint) bool { return r.whole() || Endpoint(r[0]-'0') == e }

// world is one run of the explored machine. The actions of streams, poppers and the timer are inputs.
type world struct {
	*Machine
	scene    *scene
	fleet    *fleet
	clock    time.Time
	level    int // in scene.pool
	reloaded bool
	subjects []*subject
	failed   error           // the first panic
	heard    map[*Waiter]int // verdicts of the current input
	spells   map[string]int  // first request of each tenant since it last had none here
	scratch
}

// subject is a request with the explorer's data.
type subject struct {
	kind       arrivalKind
	w          *Waiter
	last       Stage // before the present input
	streamed   bool  // its first byte went out
	outcome    Outcome
	told       bool // it has its outcome
	preempted  bool
	wasHeld    bool // it held a lease before the present input
	wasAt      Endpoint
	promoted   bool      // its current lease is by promotion
	reloaded   bool      // it came with the other configuration, which may give it another class
	due        time.Time // its client's deadline, or else the end of its TTL
	passedOn   bool      // it did not queue
	failed     bool      // its engine has failed, at answeredAt
	answeredAt time.Time
	read       bool // the first token of its answer has come
	usage
	counts quotaUse
}

var epoch = time.Unix(1_000_000_000, 0)

func newWorld(s *scene) (*world, error) {
	if s.listed != nil && s.lists == nil {
		s.lists = listings(s)
	}
	w := &world{scene: s, fleet: &fleet{scene: s}, level: s.start, clock: epoch, heard: map[*Waiter]int{}, spells: map[string]int{}}
	m, err := New(w.configuration(false), w.fleet, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		return nil, err
	}
	w.Machine = m
	if s.batch > 0 {
		w.mostExpired = s.batch
	}
	w.backends()
	return w, nil
}

// event is an event with its caller's duties: to report panics, to answer for clients, to read the verdicts.
func (w *world) event(happens func()) {
	w.contain(happens)
	for w.Preemptor() != nil {
		w.contain(func() { w.Preempt(w.clock) })
	}
	for _, v := range w.Verdicts() {
		w.heard[v]++
	}
	if w.scene.suspects != nil {
		w.prime()
	}
}

func (w *world) contain(part func()) {
	defer func() {
		if p := recover(); p != nil {
			err := fmt.Errorf("%v", p)
			if w.failed == nil {
				w.failed = err
			}
			w.contain(func() { w.Failed(w.clock, err) })
		}
	}()
	part()
}

// backends makes the current level of the pool ready.
func (w *world) backends() {
	slots := w.scene.pool[w.level]
	var ready []stock.Backend
	for e, n := range slots {
		if n > 0 {
			ready = append(ready, stock.Backend{ID: stock.BackendID(e), Slots: int32(max(0, n))})
			if w.scene.upper > 0 {
				ready[len(ready)-1].Slots = 0 // the band is the configuration's
			}
		}
	}
	w.fleet.set(slots)
	w.fleet.list(w.level)
	w.event(func() { w.SetBackends(w.clock, ready, nil) })
}

// tellForeign changes the foreign stock at an endpoint.
func (w *world) tellForeign(e, by int) {
	held := stock.Amount{Requests: w.fleet.foreign[e] + by}
	w.event(func() { w.SetForeign(w.clock, []stock.Foreign{{ID: stock.BackendID(e), Held: held}}) })
}

// arrives makes a request arrive.
func (w *world) arrives(k arrivalKind, passOn bool) {
	s := &subject{kind: k, w: new(Waiter), passedOn: passOn, reloaded: w.reloaded, usage: usage{cost: 1, tokens: 1}}
	if w.scene.usage != nil {
		s.cost, s.tokens = estimate, takes(estimate)
	}
	if !w.isHere(k.key()) {
		w.spells[k.key()] = len(w.subjects)
	}
	w.subjects = append(w.subjects, s)
	a := Arrival{Flow: k.key(), Tier: k.tier, Placement: k.lane, Cost: s.cost, Tokens: s.tokens}
	if s.counts = (quotaUse{at: w.clock, tokens: k.uses()}); s.counts.tokens > 0 {
		a.Tenant, a.Uses = k.key(), s.counts.tokens
	}
	s.due = w.clock.Add(w.config.Queue.QueueTTL)
	if within := k.within(); within > 0 {
		s.due = w.clock.Add(within)
		a.Deadline = s.due
	}
	if class, role, user := k.class(), k.role(), k.user(); class+role+user != "" {
		a.Path = &fairqueue.Path{Class: class, Role: role}
		if user != "" {
			a.Path.Under = []string{user}
		}
	}
	w.event(func() {
		if passOn {
			w.PassOn(w.clock, s.w, a)
		} else {
			w.Arrive(w.clock, s.w, a)
		}
	})
}

// complete ends a stream with an unknown cost.
func (w *world) complete(s *subject) {
	if w.scene.suspects != nil {
		w.answers(s, 200)
		return
	}
	w.completeWith(s, fairqueue.UnknownCost)
}

// completeWith ends a stream with this cost, twice: only the first time counts.
func (w *world) completeWith(s *subject, cost fairqueue.Cost) {
	s.outcome, s.told = OutcomeDispatched, true
	if s.preempted {
		s.outcome = OutcomePreempted
	}
	w.event(func() { w.Complete(w.clock, s.w.Granted(), cost) })
	w.event(func() { w.Complete(w.clock, s.w.Granted(), fairqueue.UnknownCost) })
}

// advance advances time by one tick, and calls Advance whenever it is due.
func (w *world) advance() {
	for until := w.clock.Add(tick); w.clock.Before(until); {
		in, due := w.Next(w.clock)
		next := w.clock.Add(in)
		if !due || !next.Before(until) {
			w.clock = until
		} else {
			w.clock = later(w.clock, next)
		}
		if due && !next.After(w.clock) {
			w.event(func() { w.Advance(w.clock) })
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// streams acts for the streams: requests whose wait has ended report it, and preempted ones answer.
func (w *world) streams() error {
	for _, s := range w.subjects {
		if s.w.stage != StageEnded || s.told {
			continue
		}
		if s.last == StageNew || s.last == StageWaiting || s.last == StageGranted {
			s.outcome, s.told = s.w.outcome, true
			continue
		}
		if w.heard[s.w] == 0 {
			return fmt.Errorf("%v lost its lease and was not told", s)
		}
		s.preempted = true
		if w.FirstByte(s.w.Granted()) || s.w.outcome != OutcomePreempted {
			return fmt.Errorf("%v is preempted, and its first byte is let through", s)
		}
		w.complete(s)
	}
	return nil
}

func (s *subject) String() string {
	return fmt.Sprintf("tier %d flow %s lane %q", s.kind.tier, s.kind.flow, string(s.kind.lane))
}
