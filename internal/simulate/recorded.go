package simulate

import (
	"errors"
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

// Recorded is the name of a simulation with the configuration of the recording, and Happened that of what happened.
const (
	Recorded = "as recorded"
	Happened = "what happened"
)

// RecordedOptions are a simulation of recorded arrivals.
type RecordedOptions struct {
	// Name is that of the configuration, for the report.
	Name string
	// Config is the configuration; nil: that of the recording.
	Config *config.Document
	// Seed determines all that is random.
	Seed uint64
}

// recorded is one run of recorded arrivals. Each holds its engine for as long as it did in the recording.
type recorded struct {
	decider
	history  *recording.History
	charged  bool // in the units of the recording; otherwise each request costs 1
	rated    bool // the ratings of the recording's prompts count
	service  services
	engines  map[scheduling.EndpointID]int
	arrivals []*recording.Visit // that have not arrived
	changes  []recording.PoolChange
	reports  []recording.Report
	plans    heap.Heap[*plan]
	planned  int // plans ever made
	accounts accounts
}

// recordedVisit is a request of such a run.
type recordedVisit struct {
	visit
	of *recording.Visit
}

// services are the times of requests at engines in the recording.
type services struct {
	mean  map[string]time.Duration // by flow
	other time.Duration            // of all flows
}

// defaultService is the time of a request if the recording has none.
const defaultService = time.Second

// RunRecorded runs the arrivals of a recording against a configuration. A request takes as long at its engine as it did
// then; one that reached none, or was not seen to its end, as long as the mean of its flow. Its client leaves when it
// did, and the endpoints change when they did.
func RunRecorded(o *RecordedOptions, h *recording.History) (*Report, error) {
	r := &recorded{history: h, charged: true, rated: true, service: servicesOf(h), engines: map[scheduling.EndpointID]int{}}
	cfg, placing := h.Config, h.Scheduling
	if o.Config != nil {
		cfg, placing = o.Config.FlowcontrolConfig().Config, o.Config.SchedulingConfig()
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
	r.arrivals, r.changes, r.reports = h.Visits, h.Changes, h.Reports
	r.accounts.init(len(r.engines))
	if err := r.run(); err != nil {
		return nil, err
	}
	return r.accounts.report(o.Name), nil
}

func (r *recorded) knows(id scheduling.EndpointID) bool {
	_, known := r.engines[id]
	return known
}

// servicesOf returns the means.
func servicesOf(h *recording.History) services {
	sums, counts := map[string]time.Duration{}, map[string]int{}
	sum, n := time.Duration(0), 0
	for _, v := range h.Visits {
		if took, ok := serviceOf(v); ok {
			sums[v.Arrival.Flow] += took
			counts[v.Arrival.Flow]++
			sum += took
			n++
		}
	}
	s := services{map[string]time.Duration{}, defaultService}
	for flow, sum := range sums {
		s.mean[flow] = sum / time.Duration(counts[flow])
	}
	if n > 0 {
		s.other = sum / time.Duration(n)
	}
	return s
}

// serviceOf returns the time that a request took at its engine, if the recording has it.
func serviceOf(v *recording.Visit) (time.Duration, bool) {
	known := !v.Dispatched.IsZero() && !v.Ended.IsZero() && v.Outcome == dispatch.OutcomeDispatched
	return v.Ended.Sub(v.Dispatched), known
}

// of returns the time that a request takes.
func (s *services) of(v *recording.Visit) time.Duration {
	if took, ok := serviceOf(v); ok {
		return took
	}
	if mean, ok := s.mean[v.Arrival.Flow]; ok {
		return mean
	}
	return s.other
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

// since returns a time of the recording as one of the run.
func (r *recorded) since(t time.Time) time.Time { return epoch.Add(t.Sub(r.history.From)) }

// run is the event loop. The earliest event goes first. At the same instant the order is: plans, changes of the
// endpoints, reports of engines, the timer, arrivals.
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
	v := &recordedVisit{of: of}
	v.asked = Request{At: r.now.Sub(epoch), Flow: of.Arrival.Flow}
	r.accounts.arrived(&v.visit)
	a := of.Arrival
	a.Owner = v
	a.Tier = len(r.machine.Config().Queue.Tiers) // a tier that the configuration does not have is its lowest
	if !r.charged {
		a.Cost, a.Tokens = 1, 0
	}
	if !a.Deadline.IsZero() {
		a.Deadline = r.since(a.Deadline)
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
		r.plan(r.since(of.Ended), planDeparture, v)
	}
	if of.PassedOn {
		r.machine.PassOn(r.now, &v.Waiter, a)
	} else {
		r.arrive(&v.Waiter, &a)
	}
	r.carryOut(v)
	return nil
}

// left reports whether a request's client left it while it waited.
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
		if r.charged && r.rated && v.of.Expected > 0 {
			r.lower(&v.Waiter, v.of.Expected)
		}
		ends := r.now.Add(r.service.of(v.of))
		if began := v.of.FirstByte; !began.IsZero() && began.Before(v.of.Ended) {
			v.first = r.now.Add(began.Sub(v.of.Dispatched))
			r.plan(v.first, planFirstByte, v)
		}
		r.plan(ends, planEnd, v)
	case dispatch.StageEnded:
		if v.Outcome() != dispatch.OutcomeDispatched && !v.aborted {
			v.aborted = true
			r.accounts.rejected(v.Outcome(), v.asked.Flow)
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
	}
	return nil
}

// chargedFor returns the charge of a request in the recording.
func chargedFor(v *recording.Visit) int64 {
	if v.Cost != fairqueue.UnknownCost {
		return int64(v.Cost)
	}
	return int64(max(1, v.Arrival.Cost))
}

// HistoryFigures returns the figures of a recording itself, in the form of a report without a timeline: how its
// requests waited and ended.
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
