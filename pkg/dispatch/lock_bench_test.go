package dispatch

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// table is a machine on a real board, with its requests.
type table struct {
	*Machine
	b         *testing.B
	board     *scheduling.Board
	scheduler *scheduling.Scheduler
	snapshot  *scheduling.Snapshot
	ready     []stock.Backend
	clock     time.Time
	held      []*Waiter // in order of arrival
	waiting   []*Waiter
}

func newTable(b *testing.B, endpoints int, models func(i int) []string, change func(*Config)) *table {
	b.Helper()
	percent := debug.SetGCPercent(400) // as rarely as in epp
	b.Cleanup(func() { debug.SetGCPercent(percent) })
	cfg := DefaultConfig()
	cfg.EnqueueAll = true
	cfg.Queue.CapacityMode = fairqueue.Shared
	cfg.Queue.TotalCapacity, cfg.Queue.FlowCapacity = 1_000_000, 1_000_000
	cfg.Queue.FlowCapacities = map[string]int{}
	if change != nil {
		change(&cfg)
	}
	s, err := scheduling.New(scheduling.DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	x := &table{b: b, board: scheduling.NewBoard(s, nil), scheduler: s, clock: time.Unix(1_000_000, 0)}
	pool := make([]scheduling.Endpoint, endpoints)
	for i := range pool {
		pool[i] = scheduling.Endpoint{
			ID: scheduling.EndpointID(i), Address: fmt.Sprintf("10.0.%d.%d:80", i/250, i%250+1), Ready: true,
		}
		if models != nil {
			pool[i].Models = models(i)
		}
		x.ready = append(x.ready, stock.Backend{ID: stock.BackendID(i)})
	}
	x.snapshot = scheduling.NewSnapshot(1, pool)
	if x.Machine, err = New(cfg, placement.On(x.board), rand.New(rand.NewPCG(1, 2))); err != nil {
		b.Fatal(err)
	}
	x.set(x.snapshot, x.ready)
	return x
}

func (x *table) set(snapshot *scheduling.Snapshot, ready []stock.Backend) {
	x.board.SetSnapshot(snapshot)
	x.SetBackends(x.clock, ready, nil)
}

// flips measures changes of one endpoint, alternately ready and not ready.
func (x *table) flips(id scheduling.EndpointID) {
	others := slices.DeleteFunc(slices.Clone(x.ready), func(b stock.Backend) bool { return b.ID == stock.BackendID(id) })
	now, next, ready := x.snapshot, x.snapshot, x.ready
	x.medians(1, func() { // as published by a store
		pool := make([]scheduling.Endpoint, now.Len())
		for i := range pool {
			pool[i] = now.At(i)
			if pool[i].ID == id {
				if pool[i].Ready = !pool[i].Ready; pool[i].Ready {
					ready = x.ready
				} else {
					ready = others
				}
			}
		}
		next = now.Next(now.Version()+1, pool)
	}, func() {
		x.set(next, ready)
		now = next
	})
}

// query returns the query that a stream prepares before the lock.
func (x *table) query(ask scheduling.Ask) *scheduling.Query {
	q, err := x.scheduler.Prepare(x.snapshot, ask)
	if err != nil {
		x.b.Fatal(err)
	}
	return q
}

// at is a request for some endpoints.
func (x *table) at(endpoints ...int) scheduling.Ask {
	ask := scheduling.Ask{Subset: scheduling.Subset{Set: true}}
	for _, i := range endpoints {
		ask.Subset.Entries = append(ask.Subset.Entries, x.snapshot.At(i).Address)
	}
	return ask
}

// arrives makes a request arrive, and handles the results for waiting ones.
func (x *table) arrives(w *Waiter, flow string, tier int, q *scheduling.Query) *Waiter {
	x.clock = x.clock.Add(time.Microsecond)
	x.Arrive(x.clock, w, Arrival{Flow: flow, Tier: tier, Placement: q})
	switch w.stage {
	case StageSent, StageGranted:
		x.goes(w)
	case StageWaiting:
		x.waiting = append(x.waiting, w)
	default:
		x.b.Fatalf("stage %d, outcome %v", w.stage, w.outcome)
	}
	return w
}

func (x *table) goes(w *Waiter) {
	x.Told(w)
	x.held = append(x.held, w)
}

// backlog makes the flow's requests arrive until waiters wait.
func (x *table) backlog(flow string, ask scheduling.Ask, waiters int) {
	for w := 0; w < waiters; {
		if x.arrives(new(Waiter), flow, 0, x.query(ask)).stage == StageWaiting {
			w++
		}
	}
}

// closedLanes fills the first 500 endpoints permanently, and makes one request wait in each of lanes lanes of 20 of
// them.
func (x *table) closedLanes(lanes int) {
	for i := range 1000 { // two at each of the first 500: a lane of these is at its lower bound
		x.arrives(new(Waiter), "full", 0, x.query(x.at(i%500)))
	}
	for i := range lanes {
		var some []int
		for k := range 20 {
			some = append(some, (i*7+k*(1+i/500))%500)
		}
		x.backlog(fmt.Sprint("elsewhere-", i%100), x.at(some...), 1)
	}
	x.held, x.waiting = nil, nil
}

// lives measures the lives of a flow's requests: the oldest completes, another is granted its slot, and one more
// arrives.
func (x *table) lives(flow string, tier int, ask scheduling.Ask) {
	const batch = 8 // lives between two looks at the clock
	var next [batch]*Waiter
	var queries [batch]*scheduling.Query
	x.medians(batch, func() {
		for i := range batch {
			next[i], queries[i] = new(Waiter), x.query(ask)
		}
	}, func() {
		for i := range batch {
			w := x.held[0]
			x.held = x.held[1:]
			if !x.Complete(x.clock, (*Lease)(w), fairqueue.UnknownCost) {
				x.b.Fatal("not held")
			}
			if len(x.waiting) > 0 && x.waiting[0].stage == StageGranted {
				x.goes(x.waiting[0])
				x.waiting = x.waiting[1:]
			}
			x.arrives(next[i], flow, tier, queries[i])
		}
	})
}

// medians sets the benchmark's time to the median time of an operation, which consists of this many parts.
func (x *table) medians(of int, prepare, operation func()) {
	for range 2000 / of { // until the requests that the bypass admitted above the lower bound are gone
		prepare()
		operation()
	}
	var samples []time.Duration
	for x.b.Loop() {
		prepare()
		since := time.Now()
		operation()
		samples = append(samples, time.Since(since))
	}
	slices.Sort(samples)
	x.b.ReportMetric(float64(samples[len(samples)/2])/float64(of), "ns/op")
}

// twoTiers are two tiers, of which the higher one may preempt, and a slot at each endpoint.
func twoTiers(c *Config) {
	high, low := c.Queue.Tiers[0], c.Queue.Tiers[0]
	high.Name, low.Name = "high", "low"
	c.Queue.Tiers, c.Tiers = []fairqueue.TierConfig{high, low}, []TierConfig{{CanPreempt: true}, {}}
	c.Stock.WatermarkPerBackend, c.Stock.LowerBoundPerBackend, c.Stock.UpperBoundPerBackend = 1, 1, 1
}

// BenchmarkLock measures the time that the lock is held: for one request's life on a busy pool, under conditions that
// may lengthen it, and for other holders. Read the rows as ratios to the first. Times are medians, without the streams'
// preparation before the lock.
func BenchmarkLock(b *testing.B) {
	for _, n := range []int{10, 100, 2000} {
		b.Run(fmt.Sprintf("endpoints=%d", n), func(b *testing.B) {
			x := newTable(b, n, nil, nil)
			x.backlog("a", scheduling.Ask{}, 16)
			x.lives("a", 0, scheduling.Ask{})
		})
	}
	for _, lanes := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("closed-lanes=%d", lanes), func(b *testing.B) {
			models := func(i int) []string { return []string{fmt.Sprint("m", i/20)} }
			x := newTable(b, 2000, models, nil)
			x.closedLanes(lanes)
			ask := scheduling.Ask{Model: "m99"} // its lane has room
			for range 20 {
				x.arrives(new(Waiter), "a", 0, x.query(ask))
			}
			x.lives("a", 0, ask)
		})
	}
	for _, lanes := range []int{0, 100, 10_000} {
		b.Run(fmt.Sprintf("backlog-beside-closed-lanes=%d", lanes), func(b *testing.B) {
			x := newTable(b, 600, nil, nil)
			x.closedLanes(lanes)
			x.backlog("a", scheduling.Ask{}, 16)
			x.lives("a", 0, scheduling.Ask{})
		})
	}
	for _, percent := range []int{50, 95} {
		b.Run(fmt.Sprintf("capped-at=%d%%", percent), func(b *testing.B) {
			x := newTable(b, 2000, nil, func(c *Config) { c.MaxInFlightPerFlowPerBackend = 1 })
			for range 20 * percent {
				x.arrives(new(Waiter), "capped", 0, x.query(scheduling.Ask{}))
			}
			x.lives("capped", 0, scheduling.Ask{})
		})
	}
	b.Run("nobody-to-preempt", func(b *testing.B) {
		models := func(i int) []string { return []string{fmt.Sprint("m", i/20)} }
		x := newTable(b, 2000, models, twoTiers)
		for m := range 100 {
			for range 20 {
				w := x.arrives(new(Waiter), "low", 1, x.query(scheduling.Ask{Model: fmt.Sprint("m", m)}))
				if m < 50 && !x.FirstByte((*Lease)(w)) {
					b.Fatal("preempted")
				}
			}
		}
		for m := range 50 { // half of the models: their engines have begun to answer
			x.arrives(new(Waiter), "high", 0, x.query(scheduling.Ask{Model: fmt.Sprint("m", m)}))
		}
		x.held, x.waiting = x.held[len(x.held)-20:], nil
		x.lives("low", 1, scheduling.Ask{Model: "m99"})
	})
	b.Run("takeover", func(b *testing.B) {
		x := newTable(b, 2000, nil, twoTiers)
		for range 2000 {
			x.arrives(new(Waiter), "low", 1, x.query(scheduling.Ask{}))
		}
		var high, low *Waiter
		var a, c *scheduling.Query
		x.medians(1, func() {
			high, low, a, c = new(Waiter), new(Waiter), x.query(scheduling.Ask{}), x.query(scheduling.Ask{})
			x.held = x.held[:0]
		}, func() {
			if x.arrives(high, "high", 0, a); len(x.Verdicts()) != 1 || !x.Complete(x.clock, high.Granted(), fairqueue.UnknownCost) {
				b.Fatal("nobody was preempted")
			}
			x.arrives(low, "low", 1, c)
		})
	})
	b.Run("set-backends", func(b *testing.B) {
		x := newTable(b, 2000, nil, nil)
		x.backlog("a", scheduling.Ask{}, 10_000)
		x.flips(5)
	})
	b.Run("set-backends-elsewhere", func(b *testing.B) {
		x := newTable(b, 2000, nil, func(c *Config) { c.MaxInFlightPerFlowPerBackend = 1 })
		for range 5000 {
			x.arrives(new(Waiter), "full", 0, x.query(scheduling.Ask{}))
		}
		for i := range 10_000 { // flows, in 1,000 lanes of 20 of the endpoints from 100 on
			var some []int
			for k := range 20 {
				some = append(some, 100+(i%1000*7+k*(1+i%1000/500))%1900)
			}
			x.backlog(fmt.Sprint("elsewhere-", i), x.at(some...), 1)
		}
		for i := range 20 {
			x.backlog(fmt.Sprint("there-", i), x.at(5, 6, 7), 1)
		}
		x.flips(5)
	})
	b.Run("scrape", func(b *testing.B) {
		x := newTable(b, 2000, nil, nil)
		for i := range 100 {
			x.backlog(fmt.Sprint("flow-", i), scheduling.Ask{}, 2000)
		}
		var tiers []TierState
		var shares []scheduling.Share
		longest := func(holds ...func()) func() { // each holds the lock once
			return func() {
				for _, hold := range holds {
					hold()
				}
			}
		}
		x.medians(1, func() {}, longest(
			func() { _ = x.State() },
			func() { _ = x.Flows(x.clock, 100) },
			func() { tiers = x.Tiers(tiers[:0]) },
			func() { _ = x.Preemptions() },
			func() { shares = x.board.Shares(shares[:0]) },
		))
	})
}
