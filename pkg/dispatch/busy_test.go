package dispatch_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// above is a rule with a threshold of so many tokens.
func above(tokens int64) scheduling.BusyRule {
	return scheduling.BusyRule{PrefillTokens: new(tokens)}
}

// prompts is a machine over a board with classes, of which some have busy rules.
type prompts struct {
	testing.TB
	cfg       dispatch.Config
	m         *dispatch.Machine
	board     *scheduling.Board
	scheduler *scheduling.Scheduler
	now       time.Time
	pool      []scheduling.Endpoint
}

// newPrompts has classes a, b and so on with these rules and quanta of 100, and endpoints of so many slots.
func newPrompts(t testing.TB, endpoints, slots int, rules ...scheduling.BusyRule) *prompts {
	t.Helper()
	x := &prompts{TB: t, now: dawn, cfg: dispatch.DefaultConfig()}
	x.cfg.Stock.SlotsPerBackend, x.cfg.HoldWhenEmpty, x.cfg.EnqueueAll = slots, false, true
	x.cfg.Queue.Discipline = fairqueue.OneFlow
	x.cfg.Queue.CapacityMode, x.cfg.Queue.FlowCapacity = fairqueue.Reject, x.cfg.Queue.TotalCapacity
	for i, r := range rules {
		x.cfg.Queue.Classes = append(x.cfg.Queue.Classes, fairqueue.ClassConfig{Name: string(rune('a' + i)), Quantum: 100})
		x.cfg.Classes = append(x.cfg.Classes, dispatch.ClassConfig{Busy: r})
	}
	var err error
	if x.scheduler, err = scheduling.New(scheduling.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	x.board = scheduling.NewBoard(x.scheduler, nil)
	if x.m, err = dispatch.New(x.cfg, placement.On(x.board), rand.New(rand.NewPCG(1, 2))); err != nil {
		t.Fatal(err)
	}
	for i := range endpoints {
		x.pool = append(x.pool, scheduling.Endpoint{
			ID: scheduling.EndpointID(i), Address: fmt.Sprintf("10.0.0.%d:1", i+1), Ready: true, MaxBatchedTokens: 100,
		})
	}
	x.setPool()
	return x
}

func (x *prompts) setPool() {
	var ready []stock.Backend
	for _, e := range x.pool {
		if e.Ready {
			ready = append(ready, stock.Backend{ID: stock.BackendID(e.ID)})
		}
	}
	x.board.SetSnapshot(x.board.Snapshot().Next(x.board.Snapshot().Version()+1, slices.Clone(x.pool)))
	x.m.SetBackends(x.now, ready, nil)
}

// offers lets a request of a class come, with a prompt and for these endpoints (any, if none is given).
func (x *prompts) offers(class string, prompt int64, at ...int) *dispatch.Waiter {
	x.Helper()
	return x.offersIn("", class, prompt, at...)
}

func (x *prompts) offersIn(ring, class string, prompt int64, at ...int) *dispatch.Waiter {
	x.Helper()
	ask := scheduling.Ask{}
	for _, e := range at {
		ask.Subset.Set = true
		ask.Subset.Entries = append(ask.Subset.Entries, x.pool[e].Address)
	}
	q, err := x.scheduler.Prepare(x.board.Snapshot(), ask)
	if err != nil {
		x.Fatal(err)
	}
	q.Rate(&scheduling.Ratings{Prompt: prompt})
	w, p := new(dispatch.Waiter), fairqueue.PromptOf(prompt, 0)
	x.m.Arrive(x.now, w, dispatch.Arrival{
		Path: &fairqueue.Path{Ring: ring, Class: class, Prompt: p}, Cost: fairqueue.Cost(p.Uncached()), Placement: q,
	})
	return w
}

// first lets the first token of an answer come, and ends lets it end.
func (x *prompts) first(w *dispatch.Waiter) {
	x.m.Told(w)
	x.m.Prefilled(x.now, w.Granted())
}

func (x *prompts) ends(w *dispatch.Waiter) {
	x.m.Told(w)
	x.m.Complete(x.now, w.Granted(), fairqueue.UnknownCost)
}

// want checks the stages of requests: g(ranted or sent), w(aiting) or e(nded).
func (x *prompts) want(stages string, all ...*dispatch.Waiter) {
	x.Helper()
	var got strings.Builder
	for _, w := range all {
		switch w.Stage() {
		case dispatch.StageWaiting:
			got.WriteByte('w')
		case dispatch.StageEnded:
			got.WriteByte('e')
		default:
			got.WriteByte('g')
		}
	}
	if got.String() != stages {
		x.Errorf("got %s, want %s", got.String(), stages)
	}
}

// deficits are those of the classes.
func (x *prompts) deficits() (all []int64) {
	for _, c := range x.m.Classes() {
		all = append(all, c.Deficit)
	}
	return all
}

// While the endpoints are too busy for a class, its arrivals wait, and those of other classes go on. The first token ends it.
func TestABusyPoolBlocksAClass(t *testing.T) {
	x := newPrompts(t, 1, 100, above(10), above(1000))
	long := x.offers("a", 11)
	waits, others := x.offers("a", 1), x.offers("b", 900)
	if x.want("gwg", long, waits, others); !others.Bypassed() {
		t.Error("an arrival of another class stands behind those that are blocked")
	}
	if why := x.m.FlowOf(x.now, waits).Why; why != "busy" {
		t.Errorf("it waits for %q", why)
	}
	x.first(others)
	x.want("gw", long, waits)
	x.first(long)
	x.want("gg", long, waits)
	if n := x.board.Prompts(0); n != 1 {
		t.Errorf("%d tokens are to be read, want 1", n)
	}
	x.first(long) // only the first has an effect
	x.ends(long)
	if n := x.board.Prompts(0); n != 1 {
		t.Errorf("%d tokens are to be read, want 1", n)
	}
}

// Where nobody tells of first tokens, a prompt counts until its answer has ended.
func TestAPromptCountsToTheEnd(t *testing.T) {
	x := newPrompts(t, 1, 100, above(10))
	long, waits := x.offers("a", 11), (*dispatch.Waiter)(nil)
	waits = x.offers("a", 1)
	x.m.FirstByte(long.Granted())
	x.want("gw", long, waits)
	x.ends(long)
	x.want("eg", long, waits)
}

// Golden of section 5: a class that is blocked keeps its queue and its deficit, and earns nothing while others have turns.
func TestABlockedClassKeepsItsDeficit(t *testing.T) {
	x := newPrompts(t, 1, 1, above(60), above(1000))
	first := x.offers("b", 50)
	queued := []*dispatch.Waiter{x.offers("a", 250), x.offers("a", 250), x.offers("b", 100), x.offers("b", 100), x.offers("b", 100)}
	x.ends(first) // of a ring with costs of 250 and 100 b's goes, and a has earned 100
	x.want("wwgww", queued...)
	before := x.deficits()
	if before[0] != 100 {
		t.Fatalf("deficits %v", before)
	}
	x.cfg.Stock.SlotsPerBackend = 2 // there is room, but for a the endpoint is busy
	if err := x.m.Configure(x.now, x.cfg); err != nil {
		t.Fatal(err)
	}
	x.want("wwggw", queued...)
	x.first(queued[2]) // 100 of the other remain: more than 60
	x.ends(queued[2])
	x.want("wwegg", queued...)
	if got := x.deficits()[0]; got != 100 {
		t.Errorf("a had 100 when it was blocked and has %d", got)
	}
	x.first(queued[3])
	x.first(queued[4])
	x.ends(queued[3])
	if x.want("gweeg", queued...); x.deficits()[0] != 50 {
		t.Errorf("a goes with its 100 and two quanta: deficits %v", x.deficits())
	}
}

// Limits of section 4 at the machine: the third of three is rejected, with what is to be said of it, and a cancelled one
// frees its place at once.
func TestLimitsOfAClass(t *testing.T) {
	x := newPrompts(t, 2, 1, scheduling.BusyRule{}, scheduling.BusyRule{})
	x.cfg.Queue.Classes[0].Limits = fairqueue.ClassLimits{Requests: new(int64(1)), RawTokens: new(int64(5)), CachedTokens: new(int64(3))}
	if err := x.m.Configure(x.now, x.cfg); err != nil {
		t.Fatal(err)
	}
	holders := []*dispatch.Waiter{x.offers("b", 1), x.offers("b", 1)}
	first, second, third := x.offers("a", 8), x.offers("a", 100), x.offers("a", 1)
	x.want("ggwwe", append(holders, first, second, third)...)
	limit := new(fairqueue.LimitError)
	if !errors.As(third.Failure(), &limit) || *limit != (fairqueue.LimitError{Class: "a", Limit: fairqueue.LimitRequests, Current: 2, Most: 2}) {
		t.Errorf("got %v", third.Failure())
	}
	if third.Outcome() != dispatch.OutcomeQueueFull || third.RetryAfter() <= 0 {
		t.Errorf("got %v, retry after %v", third.Outcome(), third.RetryAfter())
	}
	x.pool[1].Ready = false // it is still known
	x.setPool()
	x.m.Cancel(x.now, first, dispatch.OutcomeClientCancelled)
	fourth := x.offers("a", 1)
	if x.want("e", fourth); !errors.As(fourth.Failure(), &limit) || limit.Limit != fairqueue.LimitRawTokens {
		t.Errorf("100 tokens wait: %v", fourth.Failure())
	}
	x.m.Cancel(x.now, second, dispatch.OutcomeClientCancelled)
	x.want("w", x.offers("a", 1))
	x.pool = x.pool[:1]
	x.setPool()
	if s := x.m.State(); s.Queued != 1 {
		t.Errorf("losing a backend leaves %d waiting", s.Queued)
	}
	if last := x.offers("a", 1); !errors.As(last.Failure(), &limit) || limit.Most != 1 {
		t.Errorf("with one backend: %v", last.Failure())
	}
}

// A limit of 0 with a threshold is pure shedding: an arrival goes at once or not at all.
func TestPureShedding(t *testing.T) {
	x := newPrompts(t, 1, 100, above(10))
	x.cfg.Queue.Classes[0].Limits.Requests = new(int64(0))
	if err := x.m.Configure(x.now, x.cfg); err != nil {
		t.Fatal(err)
	}
	first, shed := x.offers("a", 11), x.offers("a", 1)
	x.want("ge", first, shed)
	if e := new(fairqueue.LimitError); !errors.As(shed.Failure(), &e) || e.Current != 0 || e.Most != 0 {
		t.Errorf("got %v", shed.Failure())
	}
	x.first(first)
	x.want("g", x.offers("a", 1))
}

// The endpoints that a request may use decide: where those of one lane are busy, those of another are not, and of both only if
// enough are. Without an endpoint nobody is busy, and the answer is that there is none.
func TestBusyLanes(t *testing.T) {
	x := newPrompts(t, 2, 100, scheduling.BusyRule{PrefillTokens: new(int64(10)), WorkerRatio: 950_000})
	long := x.offers("a", 11, 0)
	at0, at1, free := x.offers("a", 1, 0), x.offers("a", 11, 1), x.offers("a", 1)
	x.want("gwgw", long, at0, at1, free) // one of two is not enough, two are
	x.first(at1)
	x.want("wg", at0, free)
	x.pool[1].Ready = false
	x.setPool()
	last := x.offers("a", 1)
	x.want("ww", at0, last) // of one, one is
	none := x.offers("a", 1, 1)
	if x.want("e", none); none.Outcome() != dispatch.OutcomeNoEndpoint {
		t.Errorf("got %v", none.Outcome())
	}
	x.pool[1].Ready = true
	x.setPool()
	x.want("wg", at0, last)
	x.ends(long)
	x.want("g", at0)
}

// The fraction goes by the most that an endpoint processes in a step, and changes with it.
func TestBusyFraction(t *testing.T) {
	x := newPrompts(t, 1, 100, scheduling.BusyRule{PrefillFraction: new(int64(500_000))})
	first := x.offers("a", 51)
	waits := x.offers("a", 1)
	x.want("gw", first, waits)
	x.pool[0].MaxBatchedTokens = 102
	x.setPool()
	x.want("g", waits) // 51 is not more than a half
	waits = x.offers("a", 1)
	x.want("w", waits) // 52 is
	x.pool[0].MaxBatchedTokens = 0
	x.setPool()
	x.want("g", waits) // not known: it never fires
}

// A reload changes the rules for those who wait, and what was placed before goes on to count.
func TestReloadOfBusyRules(t *testing.T) {
	x := newPrompts(t, 1, 100, above(10), scheduling.BusyRule{})
	first, waits := x.offers("a", 11), (*dispatch.Waiter)(nil)
	waits = x.offers("a", 1)
	x.want("gw", first, waits)
	configure := func(rules ...scheduling.BusyRule) {
		for i, r := range rules {
			x.cfg.Classes[i].Busy = r
		}
		if err := x.m.Configure(x.now, x.cfg); err != nil {
			t.Fatal(err)
		}
	}
	configure(scheduling.BusyRule{}, above(10))
	x.want("g", waits)
	b := x.offers("b", 1)
	x.want("w", b)
	x.cfg.Classes = nil
	configure()
	x.want("gg", b, x.offers("b", 100))
	if n := x.board.Prompts(0); n != 12 {
		t.Errorf("%d tokens, want those that came while there were rules, 11 and 1", n)
	}
}

// A rule cannot be given beside preemption, which would take prompts away that count.
func TestBusyRulesAndPreemption(t *testing.T) {
	x := newPrompts(t, 1, 1, above(10), scheduling.BusyRule{})
	x.cfg.Tiers[0].CanPreempt = true
	err := x.m.Configure(x.now, x.cfg)
	if err == nil || !strings.Contains(err.Error(), "Classes[0].Busy.PrefillTokens: 10: must not be given where Tiers[0].CanPreempt is true") {
		t.Errorf("got %v", err)
	}
	x.cfg.Tiers[0].CanPreempt, x.cfg.Classes = false, x.cfg.Classes[:1]
	if err = x.m.Configure(x.now, x.cfg); err == nil || !strings.Contains(err.Error(), "Classes: 1 classes: must be none, or as many as Queue.Classes (2)") {
		t.Errorf("got %v", err)
	}
}
