package dispatch_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/modelsim/engine"
	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// plant has machines and simulated engines in virtual time. Clients send their next request when the last one is
// answered, and each engine is scraped every second.
type plant struct {
	*testing.T
	weirs   []*replica
	engines []*unit
	now     time.Time
	began   time.Time
	lot     *rand.Rand
	size    func(lot *rand.Rand) (prompt, output int) // of a request
	watch   func()                                    // called after each scrape of the last engine
	tokens  int                                       // of complete answers
	adapter func(lot *rand.Rand) scheduling.Ask       // that a request needs; nil: none
	longest time.Duration                             // from a request's arrival to its end
	ends    func(v *visit)                            // called at each end, if it is not nil
}

// replica is one Weir.
type replica struct {
	p     *plant
	m     *dispatch.Machine
	board *scheduling.Board
	query *scheduling.Query
	seen  []sighting // of each engine
}

// sighting is a replica's view of an engine.
type sighting struct {
	before      int // own count at the last scrape
	differences []int
}

// unit is one engine.
type unit struct {
	*engine.Engine
	cfg    engine.Config
	visits map[engine.ID]*visit
	load   engine.Load // as published at the last scrape
	scrape time.Time   // the next
	mute   bool        // its metrics cannot be read
	hung   bool        // it does nothing any more

	adapters *scheduling.AdapterState // as it states it
}

// visit is one client's current request.
type visit struct {
	w       dispatch.Waiter
	weir    *replica
	flow    string
	prompt  int
	output  int
	adapter string
	sent    time.Time
	over    time.Time // no next request from then on
	at      int       // engine
	foreign bool
}

// slotsOf is the Reference engine with other slots.
func slotsOf(n int) engine.Config {
	cfg := engine.Reference()
	cfg.Slots = n
	return cfg
}

// newPlant makes replicas and engines; with slots 0 the bounds follow the engines.
func newPlant(t *testing.T, replicas, slots int, engines ...engine.Config) *plant {
	t.Helper()
	p := &plant{T: t, now: dawn, began: dawn, lot: rand.New(rand.NewPCG(1, uint64(slots))), watch: func() {}}
	p.size = func(lot *rand.Rand) (int, int) { return 100 + lot.IntN(200), 30 + lot.IntN(370) }
	pool := make([]scheduling.Endpoint, len(engines))
	ready := make([]stock.Backend, len(engines))
	for i, cfg := range engines {
		pool[i] = scheduling.Endpoint{ID: scheduling.EndpointID(i), Key: fmt.Sprint(i), Address: fmt.Sprintf("10.0.0.%d:80", i+1), Ready: true}
		ready[i] = stock.Backend{ID: stock.BackendID(i)}
		u := &unit{cfg: cfg, scrape: p.now.Add(time.Second + time.Duration(i)*37*time.Millisecond)}
		p.engines = append(p.engines, u)
		p.restart(i)
	}
	for range replicas {
		s, err := scheduling.New(scheduling.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		cfg := dispatch.DefaultConfig()
		cfg.EnqueueAll = true
		cfg.Queue.CapacityMode, cfg.Queue.TotalCapacity, cfg.Queue.FlowCapacity = fairqueue.Shared, 100_000, 100_000
		cfg.Queue.QueueTTL = 24 * time.Hour
		cfg.Stock.SlotsPerBackend, cfg.Stock.Follow = slots, slots == 0
		r := &replica{p: p, board: scheduling.NewBoard(s, nil), seen: make([]sighting, len(engines))}
		snapshot := scheduling.NewSnapshot(1, pool)
		r.board.SetSnapshot(snapshot)
		if r.query, err = s.Prepare(snapshot, scheduling.Ask{}); err != nil {
			t.Fatal(err)
		}
		if r.m, err = dispatch.New(cfg, placement.On(r.board), rand.New(rand.NewPCG(1, 2))); err != nil {
			t.Fatal(err)
		}
		r.m.SetBackends(p.now, slices.Clone(ready), nil)
		p.weirs = append(p.weirs, r)
	}
	return p
}

// restart starts or restarts an engine; its requests are lost.
func (p *plant) restart(i int) {
	u := p.engines[i]
	lost := u.visits
	var err error
	if u.Engine, err = engine.New(u.cfg); err != nil {
		p.Fatal(err)
	}
	u.visits, u.load, u.hung = map[engine.ID]*visit{}, engine.Load{}, false
	u.Advance(p.now)
	ids := make([]engine.ID, 0, len(lost))
	for id := range lost {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		p.answered(lost[id])
	}
}

// clients adds clients of a flow at a replica, which send for the time last.
func (p *plant) clients(r *replica, flow string, n int, last time.Duration) {
	for range n {
		p.send(&visit{weir: r, flow: flow, over: p.now.Add(last)})
	}
}

// strangers adds clients that use an engine without Weir.
func (p *plant) strangers(i, n int, last time.Duration) {
	for range n {
		v := &visit{foreign: true, at: i, over: p.now.Add(last)}
		v.prompt, v.output = p.size(p.lot)
		p.submit(v)
	}
}

func (p *plant) send(v *visit) {
	v.prompt, v.output = p.size(p.lot)
	v.w = dispatch.Waiter{}
	v.sent = p.now
	query := v.weir.query
	if p.adapter != nil {
		ask := p.adapter(p.lot)
		var err error
		if query, err = v.weir.board.Scheduler().Prepare(v.weir.board.Snapshot(), ask); err != nil {
			p.Fatal(err)
		}
		v.adapter = ask.Model
	}
	v.weir.m.Arrive(p.now, &v.w, dispatch.Arrival{Flow: v.flow, Cost: 1, Placement: query, Owner: v})
	p.follow(v.weir, v)
}

// follow carries out the verdicts of an event, about v first.
func (p *plant) follow(r *replica, v *visit) {
	if v != nil && v.w.Lease() != nil {
		p.goes(v)
	}
	var granted []*visit
	for _, w := range r.m.Verdicts() {
		if o := w.Owner().(*visit); o != v && w.Lease() != nil {
			granted = append(granted, o)
		}
	}
	for _, o := range granted {
		p.goes(o)
	}
}

func (p *plant) goes(v *visit) {
	v.weir.m.Told(&v.w)
	v.at = int(v.w.Lease().Endpoint())
	p.submit(v)
}

func (p *plant) submit(v *visit) {
	u := p.engines[v.at]
	if u.hung {
		return
	}
	id, events := u.Submit(p.now, engine.Job{Prompt: v.prompt, Output: v.output, Adapter: v.adapter})
	ended := slices.Clone(events)
	u.visits[id] = v
	p.ended(u, ended)
}

func (p *plant) ended(u *unit, events []engine.Event) {
	for _, e := range events {
		if e.End == engine.Finished {
			v := u.visits[e.ID]
			delete(u.visits, e.ID)
			p.tokens += v.output
			p.answered(v)
		}
	}
}

// answered ends a request, and sends the client's next.
func (p *plant) answered(v *visit) {
	if v.foreign {
		if p.now.Before(v.over) {
			v.prompt, v.output = p.size(p.lot)
			p.submit(v)
		}
		return
	}
	p.longest = max(p.longest, p.now.Sub(v.sent))
	if p.ends != nil {
		p.ends(v)
	}
	v.weir.m.Complete(p.now, v.w.Granted(), fairqueue.UnknownCost)
	p.follow(v.weir, nil)
	if p.now.Before(v.over) {
		p.send(&visit{weir: v.weir, flow: v.flow, over: v.over})
	}
}

// run advances time.
func (p *plant) run(d time.Duration) {
	end := p.now.Add(d)
	for {
		at, which := end, -1
		for i, u := range p.engines {
			if next, some := u.Next(); some && !u.hung && next.Before(at) {
				at, which = next, i
			}
			if u.scrape.Before(at) {
				at, which = u.scrape, len(p.engines)+i
			}
		}
		p.now = at
		switch {
		case which < 0:
			return
		case which >= len(p.engines):
			p.scrape(which - len(p.engines))
		default:
			u := p.engines[which]
			events := slices.Clone(u.Advance(at))
			p.ended(u, events)
		}
	}
}

// scrape passes an engine's metrics to the machines.
func (p *plant) scrape(i int) {
	u := p.engines[i]
	u.scrape = u.scrape.Add(time.Second)
	if !u.hung {
		p.ended(u, slices.Clone(u.Advance(p.now)))
		u.load = u.Published()
	}
	s := scheduling.Signals{
		Known: true, Running: int32(u.load.Running), Waiting: int32(u.load.Waiting),
		Preemptions: int64(u.load.Preemptions), Produced: int64(u.load.GeneratedTokens), Adapters: u.adapters,
	}
	for _, r := range p.weirs {
		id := scheduling.EndpointID(i)
		own := r.board.Stock(id)
		if u.mute {
			r.m.SetSignals(p.now, id, scheduling.Signals{})
			p.follow(r, nil)
			continue
		}
		r.m.SetSignals(p.now, id, s)
		p.follow(r, nil)
		seen := &r.seen[i]
		seen.differences = append(seen.differences, u.load.Running+u.load.Waiting-min(own, seen.before))
		seen.before = own
		if n := len(seen.differences); n > 3 {
			seen.differences = seen.differences[n-3:]
		}
		share, _ := r.board.ShareOf(id)
		foreign := 0
		if len(seen.differences) == 3 {
			foreign = max(0, min(slices.Min(seen.differences), int(share.UpperBound/(2*scheduling.Millionths))))
		}
		if foreign != share.Foreign {
			r.m.SetForeign(p.now, []stock.Foreign{{ID: stock.BackendID(i), Held: stock.Amount{Requests: foreign}}})
			p.follow(r, nil)
		}
	}
	if i == len(p.engines)-1 {
		p.watch()
	}
}

// bound is the bound of an engine at a replica.
func (p *plant) bound(r, i int) int {
	share, _ := p.weirs[r].board.ShareOf(scheduling.EndpointID(i))
	return int(share.UpperBound / scheduling.Millionths)
}

// rate returns the tokens generated by the engines per second, over the time d.
func (p *plant) rate(d time.Duration) float64 {
	count := func() (n uint64) {
		for _, u := range p.engines {
			n += u.Load().GeneratedTokens
		}
		return n
	}
	before := count()
	p.run(d)
	return float64(count()-before) / d.Seconds()
}
