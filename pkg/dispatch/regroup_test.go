package dispatch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// fleetOf makes a machine on a board that counts its calls, with at most two requests at each endpoint.
type fleetOf struct {
	*Machine
	t         *testing.T
	board     *countingBoard
	scheduler *scheduling.Scheduler
	endpoints []scheduling.Endpoint
	snapshot  *scheduling.Snapshot
	clock     time.Time
	going     []*Waiter
	waiting   []*Waiter
}

func newFleetOf(t *testing.T, endpoints int, models func(i int) []string, change func(*Config)) *fleetOf {
	t.Helper()
	s, err := scheduling.New(scheduling.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	x := &fleetOf{
		t: t, scheduler: s, board: &countingBoard{Placer: placement.On(scheduling.NewBoard(s, nil))},
		snapshot: scheduling.NewSnapshot(0, nil), clock: time.Unix(1_000_000, 0),
	}
	cfg := DefaultConfig()
	cfg.EnqueueAll = true
	cfg.Queue.CapacityMode, cfg.Queue.TotalCapacity, cfg.Queue.FlowCapacity = fairqueue.Shared, 1_000_000, 1_000_000
	cfg.Queue.QueueTTL = time.Hour
	cfg.Stock.WatermarkPerBackend, cfg.Stock.LowerBoundPerBackend, cfg.Stock.UpperBoundPerBackend = 2, 2, 2
	if change != nil {
		change(&cfg)
	}
	if x.Machine, err = New(cfg, x.board, rand.New(rand.NewPCG(1, 2))); err != nil {
		t.Fatal(err)
	}
	for i := range endpoints {
		x.endpoints = append(x.endpoints, scheduling.Endpoint{
			ID: scheduling.EndpointID(i), Address: fmt.Sprintf("10.0.%d.%d:80", i/250, i%250+1), Ready: true, Models: models(i),
		})
	}
	x.publish()
	return x
}

// publish sets the pool's endpoints.
func (x *fleetOf) publish() {
	var ready []stock.Backend
	for _, e := range x.endpoints {
		if e.Ready {
			ready = append(ready, stock.Backend{ID: stock.BackendID(e.ID)})
		}
	}
	x.snapshot = x.snapshot.Next(x.snapshot.Version()+1, x.endpoints)
	x.board.SetSnapshot(x.snapshot)
	x.SetBackends(x.clock, ready, nil)
	x.hear()
}

// hear reads the verdicts, and confirms the preemptors' clients.
func (x *fleetOf) hear() {
	for x.Preemptor() != nil {
		x.Preempt(x.clock)
	}
	for _, w := range x.Verdicts() {
		if i := slices.Index(x.waiting, w); i >= 0 && w.Stage() != StageWaiting { // which a victim may be again
			x.waiting = slices.Delete(x.waiting, i, i+1)
		}
		if w.Stage() == StageGranted {
			x.Told(w)
			x.going = append(x.going, w)
		} else if w.Stage() == StageEnded {
			x.going = slices.DeleteFunc(x.going, func(o *Waiter) bool { return o == w })
		}
	}
}

// arrives is a request for a model.
func (x *fleetOf) arrives(flow string, tier int, ask scheduling.Ask) *Waiter {
	x.t.Helper()
	q, err := x.scheduler.Prepare(x.snapshot, ask)
	if err != nil {
		x.t.Fatal(err)
	}
	w := new(Waiter)
	x.offers(w, Arrival{Flow: flow, Tier: tier, Placement: q, Owner: ask})
	return w
}

// offers is an arrival.
func (x *fleetOf) offers(w *Waiter, a Arrival) {
	x.Arrive(x.clock, w, a)
	if w.Stage() == StageSent {
		x.going = append(x.going, w)
	} else if w.Stage() == StageWaiting {
		x.waiting = append(x.waiting, w)
	}
	x.hear()
}

// completes ends a request in flight.
func (x *fleetOf) completes(i int) {
	w := x.going[i]
	x.going = slices.Delete(x.going, i, i+1)
	x.Complete(x.clock, w.Lease(), 1)
	x.hear()
}

// asks returns the number of calls that part makes.
func (x *fleetOf) asks(part func()) int {
	before := x.board.calls
	part()
	return x.board.calls - before
}

// adapters returns the names of a base model and of n adapters.
func adapters(n int) []string {
	names := []string{"base"}
	for i := range n {
		names = append(names, fmt.Sprintf("adapter-%d", i))
	}
	return names
}

// However many adapters of a model wait for the engines that have all of them, beside idle engines, a completion
// queries a place for one lane only. So do a change of the pool, a reload, and the first waiter of another adapter.
func TestAdaptersOfOneModelAreOneLane(t *testing.T) {
	for _, n := range []int{1, 10, 1000} {
		models := adapters(n)
		x := newFleetOf(t, 200, func(i int) []string {
			if i%2 == 1 {
				return []string{"other"}
			}
			return models
		}, nil)
		for len(x.waiting) < 10 {
			x.arrives("f", 0, scheduling.Ask{Model: "base"})
		}
		for _, m := range models[1:] {
			calls, explored := 0, x.board.explored
			calls = x.asks(func() { x.arrives("f", 0, scheduling.Ask{Model: m}) })
			if calls > 6 || x.board.explored > explored {
				t.Fatalf("the first waiter of one more adapter makes %d calls, and looks at the endpoints of %d lanes", calls,
					x.board.explored-explored)
			}
		}
		most, waited := 0, len(x.waiting)
		for range min(200, waited-1) {
			most = max(most, x.asks(func() { x.completes(0) }))
		}
		if most > 5 { // Release, Place, and to find that there is no more: Place, HasRoom, HasReady
			t.Errorf("%d adapters: a completion makes %d calls", n, most)
		}
		if len(x.waiting) != waited-min(200, waited-1) {
			t.Errorf("%d adapters: %d wait after %d completions, %d before", n, len(x.waiting), min(200, waited-1), waited)
		}
		reload := x.asks(func() {
			if err := x.Configure(x.clock, x.Config()); err != nil {
				t.Fatal(err)
			}
		})
		for i := range 160 {
			x.endpoints[i].MaxInFlight = 7
		}
		change := x.asks(x.publish)
		if reload > 6 || change > 6 {
			t.Errorf("%d adapters: a reload makes %d calls, a change of 160 endpoints %d", n, reload, change)
		}
	}
}

// Lanes with overlapping sets are queried one by one: a completion queries exactly the lanes that have the endpoint and
// waiters.
func TestOverlappingLanesAreAskedEach(t *testing.T) {
	const endpoints, each = 40, 3
	x := newFleetOf(t, endpoints+20, func(i int) []string {
		if i >= endpoints {
			return []string{"other"}
		}
		return adapters(5)
	}, nil)
	at := func(first int) scheduling.Ask {
		ask := scheduling.Ask{Subset: scheduling.Subset{Set: true}, Model: "adapter-3"}
		for k := range each {
			ask.Subset.Entries = append(ask.Subset.Entries, x.endpoints[(first+k)%endpoints].Address)
		}
		return ask
	}
	for range 10 {
		for i := range endpoints {
			x.arrives("f", 0, at(i))
		}
	}
	most := 0
	for range 100 {
		most = max(most, x.asks(func() { x.completes(0) }))
	}
	if most > 2+3*each { // Release, Place, and for each lane to find that there is no more
		t.Fatalf("a completion at an endpoint of %d lanes makes %d calls", each, most)
	}
}

// mix is a random workload on engines that load and unload models, come and go, while requests wait.
type mix struct {
	*fleetOf
	random *rand.Rand
	moves  int  // of waiters to another lane
	needs  bool // requests have needs, which some engines lack
}

// serves reports whether an endpoint may serve a request, from its client's view.
func serves(e *scheduling.Endpoint, ask scheduling.Ask) bool {
	return (len(e.Models) == 0 || ask.Model == "" || slices.Contains(e.Models, ask.Model)) && e.Lacks&ask.Needs == 0 &&
		(!ask.Subset.Set || slices.Contains(ask.Subset.Entries, e.Address))
}

// set is the set of endpoints that a request may use.
func (x *mix) set(w *Waiter) (set string) {
	for i := range x.endpoints {
		if e := &x.endpoints[i]; serves(e, w.Owner().(scheduling.Ask)) {
			set += fmt.Sprint(e.ID, " ")
		}
	}
	return set
}

// alike reports whether two requests of a flow are for the pool, or for the same endpoints by their models alone.
func (x *mix) alike(a, b *Waiter) bool {
	p, q := a.Owner().(scheduling.Ask), b.Owner().(scheduling.Ask)
	return !p.Subset.Set && !q.Subset.Set && p.Needs == q.Needs && (p.Needs == 0 && (p.Model == "") == (q.Model == "") || p.Model == q.Model) &&
		x.set(a) == x.set(b)
}

// ask returns a random request's demand that some endpoint could serve.
func (x *mix) ask() scheduling.Ask {
	ask := scheduling.Ask{Model: string(rune('a' + x.random.IntN(8)))}
	switch x.random.IntN(8) {
	case 0:
		ask.Model = ""
	case 1:
		for range 2 {
			ask.Subset.Entries = append(ask.Subset.Entries, x.endpoints[x.random.IntN(len(x.endpoints))].Address)
		}
		ask.Subset.Set = true
	}
	if x.needs && x.random.IntN(2) == 0 {
		ask.Needs = scheduling.Needs(1 + x.random.IntN(3))
	}
	return ask
}

// load gives a random endpoint other models, and sometimes makes it ready or not.
func (x *mix) load() {
	for i := range 1 + x.random.IntN(2)*len(x.endpoints)/3 { // with many endpoints, too many to list
		e := &x.endpoints[(i+x.random.IntN(len(x.endpoints)))%len(x.endpoints)]
		e.Ready = x.random.IntN(8) > 0
		e.Models = nil
		if x.needs {
			e.Lacks = []scheduling.Needs{0, 0, scheduling.NeedImage, scheduling.NeedAudio}[x.random.IntN(4)]
		}
		for n := x.random.IntN(12); n > 0; n-- {
			e.Models = append(e.Models, string(rune('a'+x.random.IntN(8))))
		}
	}
	was := map[*Waiter]fairqueue.Lane{}
	for _, w := range x.waiting {
		was[w] = w.queued.Lane
	}
	x.publish()
	for w, lane := range was {
		if w.stage == StageWaiting && w.queued.Lane != lane {
			x.moves++
		}
	}
}

// went checks a request that has gone; waiting were the waiting ones, by arrival.
func (x *mix) went(before []*Waiter, w *Waiter) {
	x.t.Helper()
	e := x.endpoints[w.Lease().Endpoint()]
	if ask := w.Owner().(scheduling.Ask); !e.Ready || !serves(&e, ask) {
		x.t.Fatalf("a request for %+v goes to %+v", ask, e)
	}
	for _, o := range before {
		if o.number < w.number && o.stage == StageWaiting && o.Flow() == w.Flow() && o.Tier() == w.Tier() && x.alike(o, w) {
			x.t.Fatalf("%+v goes before %+v, which is of the same flow and came first", w.Owner(), o.Owner())
		}
	}
}

// check checks the properties that users rely on after an event; waiting were the waiting requests before it, by
// arrival.
func (x *mix) check(before []*Waiter) {
	x.t.Helper()
	for _, w := range x.Verdicts() {
		if w.Stage() == StageSent { // told by hear
			x.went(before, w)
		}
	}
	lanes := map[fairqueue.Lane]string{}
	sets := map[string]fairqueue.Lane{}
	for _, w := range x.waiting {
		q := w.placement.(*scheduling.Query)
		lane, set, ask := w.queued.Lane, x.set(w), w.Owner().(scheduling.Ask)
		if known, seen := lanes[lane]; seen && known != set {
			x.t.Fatalf("lane %q is of the endpoints %s and of %s", lane, known, set)
		}
		lanes[lane] = set
		if !ask.Subset.Set && ask.Model != "" && ask.Needs == 0 {
			if known, seen := sets[set]; seen && known != lane {
				x.t.Fatalf("the endpoints %sare lanes %q and %q", set, known, lane)
			}
			sets[set] = lane
		}
		if x.belowLower() && x.board.Board.HasRoom(q, BelowLower, nil) {
			x.t.Fatalf("%+v waits in lane %q and could go", ask, lane)
		}
	}
}

func (x *mix) step() {
	before := slices.Clone(x.waiting)
	switch n := x.random.IntN(20); {
	case n < 9 && len(x.waiting) < 80:
		ask := x.ask()
		q, err := x.scheduler.Prepare(x.snapshot, ask)
		if err != nil {
			return // nobody could ever serve it
		}
		if x.random.IntN(4) == 0 && len(x.waiting) > 0 {
			x.load() // after it was prepared
		}
		before = slices.Clone(x.waiting)
		w := new(Waiter)
		x.clock = x.clock.Add(time.Millisecond)
		x.offers(w, Arrival{Flow: string(rune('a' + x.random.IntN(3))), Tier: x.random.IntN(2), Placement: q, Owner: ask})
		if w.stage == StageSent && w.Bypassed() {
			x.went(before, w)
		}
	case n < 17 && len(x.going) > 0:
		i := x.random.IntN(len(x.going))
		if w := x.going[i]; x.random.IntN(4) == 0 && w.Lease() != nil {
			x.Raise(x.clock, w.Lease(), fairqueue.Cost(1+x.random.IntN(9)), 1)
			x.hear()
		} else {
			x.completes(i)
		}
	case n == 17 && len(x.waiting) > 0:
		i := x.random.IntN(len(x.waiting))
		x.Cancel(x.clock, x.waiting[i], OutcomeClientCancelled)
		x.waiting = slices.Delete(x.waiting, i, i+1)
		x.hear()
	default:
		x.load()
	}
	x.check(before)
}

// Engines load and unload models, and come and go, while requests wait: none is lost, goes where its model is not served, or
// waits although it could go. One flow's requests for the same endpoints go in their order, and requests for models of the
// same endpoints are in one lane, requests for others in another.
func TestRegroupingsWhileRequestsWait(t *testing.T) {
	moves, preempted := 0, 0
	for _, discipline := range []fairqueue.Discipline{fairqueue.WFQ, fairqueue.VTC, fairqueue.FairShare, fairqueue.OneFlow} {
		for seed := range uint64(30) {
			x := &mix{random: rand.New(rand.NewPCG(seed, 9)), needs: seed%2 == 0}
			x.fleetOf = newFleetOf(t, []int{6, 6, 6, 6, 300}[seed%5], func(i int) []string { return []string{"a", "b", string(rune('c' + i))} }, func(cfg *Config) {
				cfg.Queue.Discipline = discipline
				cfg.Queue.Tiers = []fairqueue.TierConfig{
					{Name: "high", QueueSize: fairqueue.NoLimit},
					{Name: "low", QueueSize: fairqueue.NoLimit, StarvationThreshold: 20 * time.Millisecond},
				}
				cfg.Tiers = []TierConfig{{CanPreempt: seed%2 == 1}, {}}
				switch seed % 3 {
				case 1:
					if discipline == fairqueue.OneFlow {
						break
					}
					cfg.MaxInFlightPerFlowPerBackend = 2 // as many as there is room for: nobody is at it who could go
				case 2:
					cfg.Queue.Levels = 2
				}
			})
			for range 600 {
				x.step()
			}
			// At last every engine has every model, and all go.
			for i := range x.endpoints {
				x.endpoints[i].Models, x.endpoints[i].Ready, x.endpoints[i].Lacks = nil, true, 0
			}
			x.publish()
			for len(x.going) > 0 {
				x.completes(0)
			}
			if s := x.State(); s.Queued+s.Stock+s.LiveFlows != 0 || len(x.waiting) != 0 || x.board.Total() != 0 {
				t.Fatalf("discipline %d, seed %d: at the end %+v, %d waiting", discipline, seed, s, len(x.waiting))
			}
			moves += x.moves
			preempted += len(x.counts.preempted)
		}
	}
	if moves < 1000 || preempted < 30 {
		t.Errorf("only %d moves to another lane, and preemption in %d runs: they are too tame", moves, preempted)
	}
}
