package simulate

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/weir-epp/weir/internal/modelsim/engine"
	"github.com/weir-epp/weir/pkg/body"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/estimate"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/metering"
	"github.com/weir-epp/weir/pkg/prefix"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
	"github.com/weir-epp/weir/pkg/usage"
)

// epoch is the start of every simulation.
var epoch = time.Unix(0, 0).UTC()

// model is the engines' only model.
const model = "model"

// simulation is one run.
type simulation struct {
	source      Source
	streams     extproc.Config
	peers       *peers // nil: Weir decides
	firstTokens bool
	progress    func(part float64)

	tenants
	decider
	meter    metering.Meter
	charging charging
	affinity *affinity // nil: none
	engines  []*server
	agenda   *agenda
	scrapes  scrapes

	next     Request // the next arrival
	more     bool    // there is one
	loops    loops
	happened []happening
	accounts accounts
}

// server is an engine of the pool.
type server struct {
	*engine.Engine
	config  engine.Config
	running map[engine.ID]*visit
}

// happening is an engine's unhandled event.
type happening struct {
	engine int
	event  engine.Event
}

// visit is a request from its arrival to its end.
type visit struct {
	dispatch.Waiter
	asked   Request
	charge  *metering.Charge
	charged int // charged tokens of the answer, if charges follow the answer
	granted time.Time
	first   time.Time // token; zero before it
	engine  int
	id      engine.ID // 0: at no engine
	aborted bool      // preempted: its engine still works on it

	// With affinity, and a prompt that has a key.
	query  *scheduling.Query
	prompt body.Blocks
	placed prefix.Placement
	unread int64 // with a peer
}

// newSimulation makes all parts of a simulation.
func newSimulation(o *Options, source Source) (*simulation, error) {
	s := &simulation{source: source, streams: o.Config.ExtprocConfig(), firstTokens: o.FirstTokens, progress: o.Progress}
	s.charging = charging{o.Estimates, rand.New(rand.NewPCG(o.Seed, 3))}
	flow := o.Config.FlowcontrolConfig()
	for key, weight := range o.Weights {
		if flow.Queue.Weights == nil {
			flow.Queue.Weights = map[string]fairqueue.Weight{}
		}
		flow.Queue.Weights[key] = fairqueue.Weight(weight)
	}
	if err := s.decider.make(&flow.Config, o.Config.SchedulingConfig(), o.Seed); err != nil {
		return nil, err
	}
	if o.Record {
		if err := s.record(&flow.Config); err != nil {
			return nil, err
		}
	}
	s.meter.Configure(s.streams.Tokens)
	s.tenants = tenants{rules: request.NewRules(&s.streams.Config), metered: s.streams.Quotas, levels: flow.Queue.Levels}
	if err := s.openEngines(o.Engines, o.Peer); err != nil {
		return nil, err
	}
	s.accounts.init(len(s.engines))
	if o.Service > 0 {
		s.accounts.service = newService(o.Service, o.Weights)
	}
	return s, nil
}

// openEngines makes the engines, and adds them to the machine and the peer.
func (s *simulation) openEngines(of []Engines, peer *Peer) error {
	var endpoints []scheduling.Endpoint
	var caches []prefix.Endpoint // epp reads their sizes from the engines' metrics
	var ready []stock.Backend
	for _, group := range of {
		for range group.Count {
			n := len(s.engines)
			cfg := group.Engine
			cfg.Seed += uint64(n)
			e, err := engine.New(cfg)
			if err != nil {
				return fmt.Errorf("simulate: %w", err)
			}
			s.engines = append(s.engines, &server{Engine: e, config: cfg, running: map[engine.ID]*visit{}})
			endpoints = append(endpoints, scheduling.Endpoint{
				ID: scheduling.EndpointID(n), Key: strconv.Itoa(n), Address: fmt.Sprintf("10.0.%d.%d:8000", n/250, n%250+1), Ready: true,
			})
			caches = append(caches, prefix.Endpoint{
				ID: scheduling.EndpointID(n), Key: strconv.Itoa(n), Tokens: int64(cfg.Blocks) * int64(cfg.BlockSize), Ready: true,
			})
			ready = append(ready, stock.Backend{ID: stock.BackendID(n)})
		}
	}
	if len(s.engines) == 0 {
		return errors.New("simulate: there is no engine")
	}
	s.agenda = newAgenda(len(s.engines))
	s.scrapes = newScrapes(len(s.engines), s.machine.Config().Stock.Follow)
	s.affinity = newAffinity(&s.streams.Affinity, caches, s.engines[0].config.BlockSize, s.firstTokens)
	if peer != nil {
		s.follow(peer, newAffinity(&byPrefix, caches, s.engines[0].config.BlockSize, false))
	}
	s.setBackends(scheduling.NewSnapshot(1, endpoints), ready, nil)
	s.carryOut(nil)
	return nil
}

// run is the event loop.
func (s *simulation) run() error {
	if err := s.read(); err != nil {
		return err
	}
	for {
		e, at, ok := s.agenda.first()
		next := nothing
		if ok {
			next = anEngine
		}
		if !s.timer.IsZero() && (next == nothing || s.timer.Before(at)) {
			next, at = theTimer, s.timer
		}
		if due := s.arrival(); due != nil {
			if arrives := epoch.Add(due.At); next == nothing || arrives.Before(at) {
				next, at = anArrival, arrives
			}
		}
		if next == nothing {
			return s.atRest()
		}
		if e, when, due := s.scrapes.before(at, ok); due {
			s.accounts.pass(when, s)
			s.now = when
			s.scrape(e)
			s.settle()
			continue
		}
		s.accounts.pass(at, s)
		s.now = at
		switch next {
		case anEngine:
			s.note(e, s.engines[e].Advance(at))
		case theTimer:
			s.timer = time.Time{}
			s.advance()
			s.carryOut(nil)
		case anArrival:
			if err := s.letArrive(); err != nil {
				return err
			}
		}
		s.settle()
	}
}

// The kinds of events.
const (
	nothing = iota
	anEngine
	theTimer
	anArrival
)

// read reads the next arrival.
func (s *simulation) read() error {
	before := s.next.At
	var err error
	s.next, err = s.source.Next()
	if errors.Is(err, io.EOF) {
		s.more = false
		return nil
	}
	s.more = true
	if err == nil && s.next.At < before {
		err = fmt.Errorf("simulate: a request arrives at %v, after one at %v", s.next.At, before)
	}
	return err
}

// arrival returns the next request; nil if none is known.
func (s *simulation) arrival() *Request {
	if l := s.loops.requests; len(l) > 0 && (!s.more || l[0].At < s.next.At) {
		return &l[0]
	}
	if s.more {
		return &s.next
	}
	return nil
}

// letArrive makes the next request arrive, and reads the one after it.
func (s *simulation) letArrive() error {
	due := s.arrival()
	v := &visit{asked: *due}
	if due != &s.next {
		s.loops.requests = slices.Delete(s.loops.requests, 0, 1)
	} else if err := s.read(); err != nil {
		return err
	}
	s.accounts.arrived(v)
	subset, ok := s.fitting(&v.asked)
	if !ok {
		s.accounts.tooLong(v.asked.Flow)
		s.loops.follow(&v.asked, s.now.Add(afterRejection).Sub(epoch))
		return nil
	}
	if s.peers != nil {
		endpoint, _ := s.board.Snapshot().ByID(scheduling.EndpointID(s.ask(v)))
		subset = scheduling.Subset{Set: true, Entries: []string{endpoint.Address}}
	}
	a := dispatch.Arrival{Flow: v.asked.Flow, TierName: v.asked.Tier, Cost: 1, Owner: v}
	s.identify(&v.asked, &a)
	if s.streams.Cost != extproc.CostRequests {
		limit := estimate.Unknown
		if v.asked.MaxOutput > 0 {
			limit = int64(v.asked.MaxOutput)
		}
		text := int64(v.asked.Prompt) * BytesPerToken
		v.charge = s.meter.Begin(estimate.Request{
			Flow: v.asked.Flow, Model: model, Tokens: estimate.Unknown, Text: text, Length: text, Answers: 1, MaxOutput: limit,
		}, false, &s.streams.Tokens)
		estimated := v.charge.Estimated()
		a.Cost, a.Tokens = fairqueue.Cost(estimated.Cost), stock.Tokens(estimated.Stock)
		if s.charging.of.kind != learned {
			a.Cost, v.charged = s.charging.begin(&v.asked, &s.streams.Tokens.Weights)
		}
		a.Uses = v.charge.Uses()
	}
	query, err := s.scheduler.Prepare(s.board.Snapshot(), scheduling.Ask{Subset: subset})
	if err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	if s.affinity != nil {
		s.affinity.rate(v, query)
	}
	if s.streams.Cost == extproc.CostUncached {
		best := int64(0)
		if r := query.Ratings(); r != nil {
			best = r.Best()
		}
		prompt := fairqueue.PromptOf(v.charge.Estimated().Input, best)
		a.Cost = fairqueue.Cost(v.charge.Fix(int64(prompt.Cached)))
		if a.Path == nil {
			a.Path = new(fairqueue.Path)
		}
		a.Path.Prompt = prompt
	}
	a.Placement = query
	s.arrive(&v.Waiter, &a)
	s.carryOut(v)
	return nil
}

// fitting returns the engines with room for a request, as its subset; ok is false if there are none.
func (s *simulation) fitting(r *Request) (subset scheduling.Subset, ok bool) {
	fits := func(e *server) bool { return e.config.Fits(r.Prompt, r.Output) }
	if !slices.ContainsFunc(s.engines, func(e *server) bool { return !fits(e) }) {
		return scheduling.Subset{}, true
	}
	subset.Set = true
	for n, e := range s.engines {
		if endpoint, known := s.board.Snapshot().ByID(scheduling.EndpointID(n)); known && fits(e) {
			subset.Entries = append(subset.Entries, endpoint.Address)
		}
	}
	return subset, len(subset.Entries) > 0
}

// carryOut carries out the decisions of the machine's last event. own is the request that has just arrived, if any.
func (s *simulation) carryOut(own *visit) {
	s.confirm()
	if own != nil {
		s.obey(own)
	}
	for _, w := range s.machine.Verdicts() {
		s.obey(w.Owner().(*visit))
	}
}

// obey carries out the decision on a request.
func (s *simulation) obey(v *visit) {
	switch v.Stage() {
	case dispatch.StageGranted, dispatch.StageSent:
		if v.id == 0 {
			s.submit(v)
		}
	case dispatch.StageEnded:
		if v.id != 0 && !v.aborted { // preempted
			v.aborted = true
			if s.affinity != nil {
				s.affinity.failed(v)
			}
			s.note(v.engine, s.engines[v.engine].Abort(s.now, v.id))
		}
		if v.Outcome() != dispatch.OutcomeDispatched {
			s.accounts.rejected(v.Outcome(), v.asked.Flow)
			s.loops.follow(&v.asked, s.now.Add(afterRejection).Sub(epoch))
			s.tellProgress()
		}
	case dispatch.StageNew, dispatch.StageWaiting, dispatch.StageStreaming:
	}
}

// submit sends a request to its engine.
func (s *simulation) submit(v *visit) {
	s.told(&v.Waiter)
	v.engine, v.granted = int(v.Granted().Endpoint()), s.now
	s.accounts.granted(v)
	if s.affinity != nil {
		if cached := s.affinity.granted(v); cached > 0 && v.charge != nil && s.charging.of.kind == learned {
			if cost, less := v.charge.Expect(cached); less {
				s.lower(&v.Waiter, fairqueue.Cost(cost))
			}
		}
	}
	e := s.engines[v.engine]
	id, events := e.Submit(s.now, engine.Job{
		Prompt: v.asked.Prompt, Output: v.asked.Output, Blocks: v.asked.Blocks, First: true,
		Streamed: v.charge != nil && s.charging.follows(),
	})
	v.id = id
	e.running[id] = v
	s.note(v.engine, events)
	if !s.firstTokens {
		s.firstByte(v.Granted())
	}
}

// note stores an engine's events, and the time of its next one.
func (s *simulation) note(e int, events []engine.Event) {
	for _, event := range events {
		s.happened = append(s.happened, happening{e, event})
	}
	at, ok := s.engines[e].Next()
	s.agenda.set(e, at, ok)
}

// settle corrects charges, handles the engines' events, and sets the timer.
func (s *simulation) settle() {
	s.correct(func() { s.carryOut(nil) })
	for i := 0; i < len(s.happened); i++ { // handling an event may add further ones
		h := s.happened[i]
		s.handle(h.engine, &h.event)
	}
	s.happened = s.happened[:0]
	s.setTimer()
}

// handle handles an event of a request at its engine.
func (s *simulation) handle(e int, event *engine.Event) {
	v := s.engines[e].running[event.ID]
	if v.first.IsZero() && event.Tokens > 0 {
		v.first = event.At
		s.peers.began(v)
		if s.firstTokens && !v.aborted {
			s.firstByte(v.Granted())
		}
	}
	if event.End == engine.Going {
		if v.charge != nil && s.charging.follows() && event.Tokens > v.charged && !v.aborted {
			v.charged = event.Tokens
			s.trueUp(v.Granted(), costOf(&s.streams.Tokens.Weights, v.asked.Prompt, v.charged))
			s.carryOut(nil)
		}
		return
	}
	delete(s.engines[e].running, event.ID)
	s.peers.ended(v)
	if v.aborted {
		s.accounts.left(v)
		return
	}
	cost := s.costOf(v, event)
	if s.affinity != nil {
		s.affinity.reported(v, event.Cached, s.streams.Usage)
	}
	s.accounts.finished(v, event.At, use{
		event.Cached, event.Tokens, int64(max(1, cost)), int64(v.asked.Prompt) + int64(event.Tokens),
	})
	if v.Metered() && v.charge != nil {
		s.used(v.Granted(), v.charge.Used())
	}
	s.complete(v.Granted(), cost)
	s.carryOut(nil)
	s.loops.follow(&v.asked, event.At.Sub(epoch))
	s.tellProgress()
}

// costOf returns the cost of a request, and lets the meter learn from it.
func (s *simulation) costOf(v *visit, event *engine.Event) fairqueue.Cost {
	if v.charge == nil {
		return fairqueue.UnknownCost
	}
	produced := event.At.Sub(v.granted)
	end := metering.End{Status: 200, Answered: true, Produced: produced, Took: event.At.Sub(v.first)}
	end.Whole = true
	if s.streams.Usage != extproc.UsageNone {
		end.Known, end.By = true, metering.Trailers
		end.Tokens = usage.Tokens{Input: int64(v.asked.Prompt), Cached: int64(event.Cached), Output: int64(event.Tokens)}
	}
	cost, _ := s.meter.End(v.charge, &end, s.now)
	return fairqueue.Cost(cost)
}

func (s *simulation) tellProgress() {
	const interval = 1 << 10
	if n := s.accounts.ended; s.progress != nil && n%interval == 0 {
		s.progress(s.source.Fraction())
	}
}

// atRest returns an error if something is left at the end.
func (s *simulation) atRest() error {
	if err := s.decider.atRest(); err != nil {
		return err
	}
	for i, e := range s.engines {
		if load := e.Load(); len(e.running) > 0 || load.Running+load.Waiting > 0 || load.KVUsage != 0 {
			return fmt.Errorf("simulate: at the end engine %d has %+v", i, load)
		}
	}
	return s.accounts.balance()
}
