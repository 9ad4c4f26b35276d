package simulate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/heap"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/recording"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// Recorded is the name of a simulation with the recorded configuration, and Happened that of the recording's own
// figures.
const (
	Recorded = "as recorded"
	Happened = "what happened"
)

// RecordedOptions are the options of a simulation of recorded arrivals.
type RecordedOptions struct {
	// Name is the configuration's name, for the report.
	Name string
	// Config is the configuration; nil: the recorded one, with its changes. Machine, if not nil, is its part for the
	// machine. If the flows' keys are hashes, the configuration's must be, too.
	Config  *config.Document
	Machine *dispatch.Config
	// Seed determines all random values.
	Seed uint64
	// Clients is the behavior of clients; "": ClientsOpen.
	Clients Clients
	// Similar is the part of the requests, 0 to 1, that take a similar request's time at their engine though their own
	// is known. It serves to test this substitution.
	Similar float64
	// Progress, if not nil, is called from time to time with the part of the time that has passed.
	Progress func(part float64)
}

// recorded is one run of recorded arrivals. Each holds its engine for the recorded time.
type recorded struct {
	decider
	history  *recording.History
	charged  bool // in the recording's units; otherwise each request costs 1
	rated    bool // the ratings of the recording's prompts count
	service  *services
	engines  map[scheduling.EndpointID]int
	arrivals []*recording.Visit           // still to come
	begins   map[*recording.Visit]*client // of closed loops
	follows  map[*recording.Visit]bool    // requests that arrive only after the end of another
	sent     int                          // requests sent in closed loops
	changes  []recording.PoolChange
	configs  []recording.ConfigChange
	reports  []recording.Report
	window   *window
	progress func(part float64)
	events   int
	plans    heap.Heap[*plan]
	planned  int // plans ever made
	accounts accounts
}

// recordedVisit is a request of such a run.
type recordedVisit struct {
	visit
	of     *recording.Visit
	client *client
}

// RunRecorded runs a recording's arrivals with a configuration. A request takes its recorded time at its engine; a
// request without a complete recorded time takes a similar one's. Clients leave after their recorded time, and the
// endpoints change at the recorded times.
func RunRecorded(o *RecordedOptions, h *recording.History) (*Report, error) {
	r, err := newRecorded(o, h)
	if err == nil {
		err = r.run()
	}
	if err != nil {
		return nil, err
	}
	return r.accounts.report(o.Name), nil
}

// newRecorded makes all parts of a run.
func newRecorded(o *RecordedOptions, h *recording.History) (*recorded, error) {
	r := &recorded{
		history: h, charged: true, rated: true, service: servicesOf(h, o.Seed, o.Similar), engines: map[scheduling.EndpointID]int{},
		window: newWindow(h), progress: o.Progress,
	}
	cfg, placing := h.Config, h.Scheduling
	if o.Config == nil {
		r.configs = h.Configs
	} else {
		cfg, placing = o.Config.FlowcontrolConfig().Config, o.Config.SchedulingConfig()
		if o.Machine != nil {
			cfg = *o.Machine
		}
		streams := o.Config.ExtprocConfig()
		r.charged = streams.Cost != extproc.CostRequests
		r.rated = streams.Affinity.Mode != request.AffinityOff
	}
	if err := r.decider.make(&cfg, placing, o.Seed); err != nil {
		return nil, err
	}
	for _, c := range h.Changes {
		for i := range c.Snapshot.Len() {
			if id := c.Snapshot.At(i).ID; !r.knows(id) {
				r.engines[id] = len(r.engines)
			}
		}
	}
	if len(h.Visits) == 0 {
		return nil, errors.New("the recording has no arrivals")
	}
	clients := o.Clients
	if clients == "" {
		clients = ClientsOpen
	}
	r.begins, r.follows = loopsOf(h, clients)
	r.arrivals, r.changes, r.reports = h.Visits, h.Changes, h.Reports
	if len(r.follows) > 0 {
		r.arrivals = slices.DeleteFunc(slices.Clone(h.Visits), func(v *recording.Visit) bool { return r.follows[v] })
	}
	r.accounts.init(len(r.engines))
	return r, nil
}

func (r *recorded) knows(id scheduling.EndpointID) bool {
	_, known := r.engines[id]
	return known
}

// plan is a planned event of a request.
type plan struct {
	at     time.Time
	kind   planKind
	visit  *recordedVisit
	order  int
	number int32 // in the heap
}

type planKind uint8

const (
	planFirstByte planKind = iota
	planEnd
	planDeparture // of its client
	planArrival   // of a request that follows another one
)

// Key orders plans by time, then in the order of their making.
func (p *plan) Key() heap.Key {
	k := heap.At(p.at)
	k.Seq = uint64(p.order)
	return k
}

// Handle returns the plan's number in the heap.
func (p *plan) Handle() *int32 { return &p.number }

func (r *recorded) plan(at time.Time, kind planKind, v *recordedVisit) {
	r.planned++
	r.plans.Push(&plan{at: at, kind: kind, visit: v, order: r.planned})
}

// since converts a time of the recording to a time of the run.
func (r *recorded) since(t time.Time) time.Time { return epoch.Add(t.Sub(r.history.From)) }

// run is the event loop. The earliest event goes first. At the same instant the order is: plans, changes of the
// configuration and the endpoints, reports of engines, the timer, arrivals.
func (r *recorded) run() error {
	for {
		var next func() error
		var at time.Time
		offer := func(when time.Time, do func() error) {
			if next == nil || when.Before(at) {
				next, at = do, when
			}
		}
		if r.plans.Len() > 0 {
			offer(r.plans.Min().at, r.carryOutPlan)
		}
		if len(r.configs) > 0 {
			offer(r.since(r.configs[0].At), r.configure)
		}
		if len(r.changes) > 0 {
			offer(r.since(r.changes[0].At), r.change)
		}
		if len(r.reports) > 0 {
			offer(r.since(r.reports[0].At), r.report)
		}
		if !r.timer.IsZero() {
			offer(r.timer, r.fireTimer)
		}
		if len(r.arrivals) > 0 {
			offer(r.since(r.arrivals[0].At), r.letArrive)
		}
		if next == nil {
			break
		}
		r.now = at
		r.accounts.series.pass(at.Sub(epoch), r.accounts.held, r.machine.Waiting())
		r.tellProgress()
		if err := next(); err != nil {
			return err
		}
		r.correct(func() { r.carryOut(nil) })
		r.setTimer()
	}
	if err := r.atRest(); err != nil {
		return err
	}
	return r.accounts.balance()
}

func (r *recorded) fireTimer() error {
	r.timer = time.Time{}
	r.advance()
	r.carryOut(nil)
	return nil
}

func (r *recorded) tellProgress() {
	const interval = 1 << 12
	if r.events++; r.progress != nil && r.events%interval == 0 {
		r.progress(min(1, r.now.Sub(epoch).Seconds()/max(1e-9, r.history.To.Sub(r.history.From).Seconds())))
	}
}

// configure changes the configuration.
func (r *recorded) configure() error {
	c := r.configs[0]
	r.configs = r.configs[1:]
	scheduler, err := scheduling.New(c.Scheduling)
	if err != nil {
		return fmt.Errorf("simulate: scheduling: %w", err)
	}
	r.board.SetScheduler(scheduler)
	if err := r.machine.Configure(r.now, c.Config); err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	r.carryOut(nil)
	return nil
}

// change changes the endpoints.
func (r *recorded) change() error {
	c := r.changes[0]
	r.changes = r.changes[1:]
	r.setBackends(c.Snapshot, c.Ready, c.Foreign)
	r.carryOut(nil)
	return nil
}

// report tells the machine an engine's report of itself.
func (r *recorded) report() error {
	told := r.reports[0]
	r.reports = r.reports[1:]
	r.setSignals(told.Endpoint, told.Signals)
	r.carryOut(nil)
	return nil
}

// letArrive lets the next request arrive.
func (r *recorded) letArrive() error {
	of := r.arrivals[0]
	r.arrivals = r.arrivals[1:]
	r.arriveNow(&recordedVisit{of: of, client: r.begins[of]})
	return nil
}

// arriveNow lets a request arrive.
func (r *recorded) arriveNow(v *recordedVisit) {
	of := v.of
	v.asked = Request{At: r.now.Sub(epoch), Flow: of.Arrival.Flow}
	r.accounts.arrived(&v.visit)
	r.window.arrived(v.of, r.now)
	a := of.Arrival
	a.Owner = v
	a.Tier = len(r.machine.Config().Queue.Tiers) // a tier that the configuration lacks becomes its lowest
	if !r.charged {
		a.Cost, a.Tokens = 1, 0
	}
	if !a.Deadline.IsZero() {
		a.Deadline = r.now.Add(a.Deadline.Sub(of.At))
	}
	placed := scheduling.Recalled{}
	if of.Placed != nil {
		placed = *of.Placed
	}
	if !r.rated {
		placed.Ratings = nil
	}
	a.Placement = placed.Query()
	if left(of) {
		r.plan(r.now.Add(of.Ended.Sub(of.At)), planDeparture, v)
	}
	if of.PassedOn {
		r.machine.PassOn(r.now, &v.Waiter, a)
	} else {
		r.arrive(&v.Waiter, &a)
	}
	r.carryOut(v)
}

// follow plans the next request of a client whose request has ended.
func (r *recorded) follow(v *recordedVisit, rejected bool) {
	now := r.history.From.Add(r.now.Sub(epoch))
	if of, at, ok := v.client.follow(now, rejected); ok {
		r.sent++
		r.plan(r.since(at), planArrival, &recordedVisit{of: of, client: v.client})
	}
}

// left reports whether a request's client left during its wait.
func left(v *recording.Visit) bool {
	return !v.Ended.IsZero() && (v.Outcome == dispatch.OutcomeClientCancelled || v.Outcome == dispatch.OutcomeDeadlineExceeded)
}

// carryOut carries out the decisions of the machine's last event. own is the request that the event is about, if any.
func (r *recorded) carryOut(own *recordedVisit) {
	r.confirm()
	if own != nil {
		r.obey(own)
	}
	for _, w := range r.machine.Verdicts() {
		r.obey(w.Owner().(*recordedVisit))
	}
}

// obey carries out the decision on a request.
func (r *recorded) obey(v *recordedVisit) {
	switch v.Stage() {
	case dispatch.StageGranted, dispatch.StageSent:
		if !v.granted.IsZero() {
			return
		}
		r.told(&v.Waiter)
		v.granted, v.engine = r.now, r.engines[v.Granted().Endpoint()]
		r.accounts.granted(&v.visit)
		r.window.granted(v.of, v.asked.At, r.now)
		if r.charged && r.rated && v.of.Expected > 0 {
			r.lower(&v.Waiter, v.of.Expected)
		}
		ends := r.now.Add(r.service.of(v.of))
		if began := v.of.FirstByte; !began.IsZero() && began.Before(v.of.Ended) {
			if first := r.now.Add(began.Sub(v.of.Dispatched)); first.Before(ends) {
				v.first = first
				r.plan(first, planFirstByte, v)
			}
		}
		r.plan(ends, planEnd, v)
	case dispatch.StageEnded:
		if v.Outcome() != dispatch.OutcomeDispatched && !v.aborted {
			v.aborted = true
			r.accounts.rejected(v.Outcome(), v.asked.Flow)
			r.window.ended(v.of, v.Outcome(), r.now)
			r.follow(v, true)
			if !v.granted.IsZero() { // preempted
				r.accounts.held[v.engine]--
			}
		}
	case dispatch.StageNew, dispatch.StageWaiting, dispatch.StageStreaming:
	}
}

// carryOutPlan carries out the next plan.
func (r *recorded) carryOutPlan() error {
	p := r.plans.Min()
	r.plans.Remove(p)
	v := p.visit
	ended := v.Stage() == dispatch.StageEnded
	switch {
	case p.kind == planArrival:
		if r.sent > mostFollowing(len(r.history.Visits)) {
			return errors.New("clients in closed loops would send far more requests than recorded: use --clients=open")
		}
		r.arriveNow(v)
	case ended:
	case p.kind == planFirstByte:
		r.firstByte(v.Granted())
	case p.kind == planDeparture && v.granted.IsZero():
		r.machine.Cancel(r.now, &v.Waiter, v.of.Outcome)
		r.carryOut(v)
	default: // it has ended, or its client has left it
		cost, charged := fairqueue.UnknownCost, int64(1)
		if r.charged {
			cost, charged = v.of.Cost, chargedFor(v.of)
		}
		r.accounts.finished(&v.visit, r.now, use{cost: charged, service: charged})
		r.complete(v.Granted(), cost)
		r.carryOut(nil)
		r.follow(v, false)
	}
	return nil
}

// mostFollowing is the largest number of requests sent by closed loops.
func mostFollowing(recorded int) int { return 20*recorded + 100_000 }

// chargedFor returns the charge of a request in the recording.
func chargedFor(v *recording.Visit) int64 {
	if v.Cost != fairqueue.UnknownCost {
		return int64(v.Cost)
	}
	return int64(max(1, v.Arrival.Cost))
}

// HistoryFigures returns a recording's own figures as a report without a timeline: its requests' waits and outcomes.
func HistoryFigures(h *recording.History) *Report {
	var a accounts
	a.init(0)
	for _, v := range h.Visits {
		at := v.At.Sub(h.From)
		t := a.flow(v.Arrival.Flow)
		for _, t := range []*tally{&a.all, t} {
			t.arrived++
			if !v.Dispatched.IsZero() {
				t.wait.add(v.Dispatched.Sub(h.From) - at)
			}
			switch {
			case v.Ended.IsZero():
			case v.Outcome == dispatch.OutcomeDispatched:
				t.ok++
				t.total.add(v.Ended.Sub(h.From) - at)
				t.cost += chargedFor(v)
				if !v.FirstByte.IsZero() {
					t.ttft.add(v.FirstByte.Sub(h.From) - at)
				}
			default:
				t.outcomes[v.Outcome]++
			}
		}
	}
	a.last = epoch.Add(h.To.Sub(h.From))
	return a.report(Happened)
}
