package dispatch_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// apart is a pool with prefill engines for random events.
type apart struct {
	*testing.T
	random    *rand.Rand
	m         *dispatch.Machine
	board     *scheduling.Board
	scheduler *scheduling.Scheduler
	now       time.Time
	pool      []scheduling.Endpoint
	requests  []*reader
	trace     []string
}

// reader is a request, and the cached parts of its prompt at the engines.
type reader struct {
	w      dispatch.Waiter
	prompt int64 // 0: unknown
	cached map[scheduling.EndpointID]int64
	read   bool // by its prefill engine, so its place there is free
	stage  dispatch.Stage
}

const (
	apartSlots = 3
	apartBound = 20_000
	apartLong  = 5000
)

func (r *reader) unread(e scheduling.EndpointID) int64 { return max(1, r.prompt-r.cached[e]) }

// TestBothPlacesOrNeither checks after each of many random events: until it is read, a long prompt has a place at a
// prefill engine exactly if it has one at a decode engine; no prefill engine exceeds its bound by more than one prompt;
// no request with room waits; and all places are returned at the end.
func TestBothPlacesOrNeither(t *testing.T) {
	runs, events := 40, 400
	if testing.Short() {
		runs = 8
	}
	for seed := range runs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newApart(t, uint64(seed)).live(events) })
	}
}

func newApart(t *testing.T, seed uint64) *apart {
	t.Helper()
	x := &apart{T: t, random: rand.New(rand.NewPCG(seed, 7)), now: dawn}
	config := scheduling.DefaultConfig()
	config.PrefillThreshold, config.PrefillTokens = apartLong, apartBound
	var err error
	if x.scheduler, err = scheduling.New(config); err != nil {
		t.Fatal(err)
	}
	x.board = scheduling.NewBoard(x.scheduler, nil)
	cfg := dispatch.DefaultConfig()
	cfg.Stock.SlotsPerBackend = apartSlots
	cfg.HoldWhenEmpty = true
	cfg.Queue.Discipline = []fairqueue.Discipline{fairqueue.WFQ, fairqueue.VTC}[seed%3%2]
	if seed%2 == 1 {
		cfg.Tiers[0].CanPreempt = true
	}
	if x.m, err = dispatch.New(cfg, placement.On(x.board), rand.New(rand.NewPCG(seed, 8))); err != nil {
		t.Fatal(err)
	}
	for i, work := range []scheduling.Work{
		scheduling.WorkDecode, scheduling.WorkPrefill, scheduling.WorkDecode, scheduling.WorkNone, scheduling.WorkPrefill, scheduling.WorkDecode,
	} {
		x.pool = append(x.pool, scheduling.Endpoint{
			ID: scheduling.EndpointID(i), Key: fmt.Sprint(i), Address: fmt.Sprintf("10.0.0.%d:1", i+1), Work: work, Ready: true,
		})
	}
	x.setPool()
	return x
}

func (x *apart) live(events int) {
	for range events {
		x.step()
		x.settleVerdicts()
		x.check()
	}
	for i := range x.pool {
		x.pool[i].Ready = true
	}
	x.setPool()
	x.settleVerdicts()
	for left := true; left; {
		left = false
		for _, r := range x.requests {
			if r.w.Lease() != nil {
				left = true
				x.m.Complete(x.now, r.w.Granted(), fairqueue.UnknownCost)
				x.settleVerdicts()
				x.check()
			}
		}
	}
	if s := x.m.State(); s.Stock != 0 || s.Queued != 0 || x.board.Total() != 0 {
		x.fail("at the end %d are in flight and %d wait, and the board has %d", s.Stock, s.Queued, x.board.Total())
	}
}

func (x *apart) fail(format string, args ...any) {
	x.Helper()
	for _, line := range x.trace[max(0, len(x.trace)-40):] {
		x.Log(line)
	}
	x.Fatalf(format, args...)
}

func (x *apart) did(format string, args ...any) {
	x.trace = append(x.trace, fmt.Sprintf(format, args...))
}

func (x *apart) step() {
	x.now = x.now.Add(time.Duration(x.random.IntN(1000)) * time.Millisecond)
	r := x.anyInFlight()
	switch n := x.random.IntN(20); {
	case n < 9 || r == nil:
		x.arrive()
	case n < 12:
		x.did("answer %d", r.w.Number())
		x.m.FirstByte(r.w.Granted())
		r.read = true
		x.m.Prefilled(x.now, r.w.Granted())
		x.m.Prefilled(x.now, r.w.Granted()) // only the first has an effect
	case n < 16:
		x.did("complete %d", r.w.Number())
		x.m.Complete(x.now, r.w.Granted(), fairqueue.UnknownCost)
		x.m.Complete(x.now, r.w.Granted(), fairqueue.UnknownCost)
		x.m.Prefilled(x.now, r.w.Granted())
	case n < 17:
		e := scheduling.EndpointID(x.random.IntN(len(x.pool)))
		x.did("move %d to %d", r.w.Number(), e)
		x.m.ServedElsewhere(x.now, r.w.Granted(), e, 200)
	case n < 18:
		q := x.requests[x.random.IntN(len(x.requests))]
		x.did("cancel %d", q.w.Number())
		x.m.Cancel(x.now, &q.w, dispatch.OutcomeClientCancelled)
	case n < 19:
		e := &x.pool[x.random.IntN(len(x.pool))]
		e.Ready = !e.Ready
		x.did("endpoint %d ready: %v", e.ID, e.Ready)
		x.setPool()
	default:
		x.did("advance")
		x.m.Advance(x.now)
	}
	for x.m.Preemptor() != nil {
		x.m.Preempt(x.now)
	}
}

func (x *apart) setPool() {
	var ready []stock.Backend
	for _, e := range x.pool {
		if e.Ready && e.Work.Serves() {
			ready = append(ready, stock.Backend{ID: stock.BackendID(e.ID)})
		}
	}
	old := x.board.Snapshot()
	x.board.SetSnapshot(old.Next(old.Version()+1, slices.Clone(x.pool)))
	x.m.SetBackends(x.now, ready, nil)
}

func (x *apart) arrive() {
	r := &reader{cached: map[scheduling.EndpointID]int64{}}
	q, err := x.scheduler.Prepare(x.board.Snapshot(), scheduling.Ask{})
	if err != nil {
		x.fail("%v", err)
	}
	if x.random.IntN(4) > 0 {
		r.prompt = 1 + x.random.Int64N(12_000)
		at, atPrefill := &scheduling.Ratings{Prompt: r.prompt}, &scheduling.Ratings{Prompt: r.prompt}
		for _, e := range x.pool {
			if x.random.IntN(3) == 0 {
				c := scheduling.Cached{ID: e.ID, Tokens: x.random.Int64N(r.prompt + 1)}
				r.cached[e.ID] = c.Tokens
				if e.Work.Serves() {
					at.Above = append(at.Above, c)
				} else {
					atPrefill.Above = append(atPrefill.Above, c)
				}
			}
		}
		q.Rate(at)
		q.RatePrefill(atPrefill)
	}
	x.requests = append(x.requests, r)
	tier := x.random.IntN(3)
	x.did("arrive %d: tier %d, prompt %d, cached %v", len(x.requests), tier, r.prompt, r.cached)
	x.m.Arrive(x.now, &r.w, dispatch.Arrival{
		Flow: fmt.Sprint(x.random.IntN(3)), Tier: tier, Cost: 1 + fairqueue.Cost(x.random.IntN(5)), Placement: q, Owner: r,
	})
}

func (x *apart) anyInFlight() *reader {
	var some []*reader
	for _, r := range x.requests {
		if r.w.Lease() != nil {
			some = append(some, r)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[x.random.IntN(len(some))]
}

// settleVerdicts handles the requests that got their places in this event.
func (x *apart) settleVerdicts() {
	anyReads := slices.ContainsFunc(x.pool, func(e scheduling.Endpoint) bool { return e.Ready && e.Work == scheduling.WorkPrefill })
	for _, r := range x.requests {
		if stage := r.w.Stage(); stage == r.stage {
			continue
		} else if r.stage = stage; stage == dispatch.StageGranted {
			x.m.Told(&r.w)
			r.stage = r.w.Stage()
		}
		l := r.w.Lease()
		if l == nil || r.read {
			continue
		}
		x.did("%d at %d, read by %d", r.w.Number(), l.Endpoint(), l.PrefillEngine())
		at, reads := r.unread(l.Endpoint()), l.Prefills()
		switch everywhere := r.everywhereLong(x.pool); {
		case reads && (r.prompt == 0 || at < apartLong):
			x.fail("a prefill engine reads %d, of which %d tokens are uncached", r.w.Number(), at)
		case anyReads && r.prompt > 0 && everywhere && !reads && r.stage == dispatch.StageSent:
			x.fail("no prefill engine reads %d, of which %d tokens are uncached", r.w.Number(), at)
		}
	}
}

// everywhereLong reports whether no engine that serves has enough of the prompt.
func (r *reader) everywhereLong(pool []scheduling.Endpoint) bool {
	return !slices.ContainsFunc(pool, func(e scheduling.Endpoint) bool { return e.Work.Serves() && r.unread(e.ID) < apartLong })
}

func (x *apart) check() {
	held, prompts, places := map[scheduling.EndpointID]int{}, map[scheduling.EndpointID]int64{}, 0
	for _, r := range x.requests {
		l := r.w.Lease()
		if l == nil {
			continue
		}
		held[l.Endpoint()]++
		places++
		if e := l.PrefillEngine(); e != dispatch.NoEndpoint {
			if r.read {
				x.fail("%d is read and still at %d", r.w.Number(), e)
			}
			held[e]++
			prompts[e] += r.unread(e)
			places++
		}
	}
	q, _ := x.scheduler.Prepare(x.board.Snapshot(), scheduling.Ask{})
	room, reads, unread := false, false, false
	for _, c := range x.board.Explain(q).Candidates {
		e := x.pool[c.ID]
		if c.Stock != held[c.ID] || c.Prompts != prompts[c.ID] {
			x.fail("the board has %d requests and %d tokens of prompts at %d, want %d and %d", c.Stock, c.Prompts, c.ID, held[c.ID], prompts[c.ID])
		}
		room = room || e.Ready && e.Work.Serves() && held[c.ID] < apartSlots
		if e.Ready && e.Work == scheduling.WorkPrefill {
			reads, unread = true, unread || prompts[c.ID] < apartBound
		}
	}
	if x.board.Total() != places || x.m.State().Stock > places {
		x.fail("the board has %d places, want %d", x.board.Total(), places)
	}
	for _, r := range x.requests {
		if r.w.Stage() == dispatch.StageWaiting && room && (!reads || unread || r.prompt == 0 || !r.everywhereLong(x.pool)) {
			x.fail("%d waits, although there is room", r.w.Number())
		}
	}
}
