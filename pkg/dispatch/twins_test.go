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

// FuzzTwins feeds the same events to two machines, each on its own board, and compares all their answers. The machines
// differ in their maps' order and in all addresses, which must not matter.
func FuzzTwins(f *testing.F) {
	for kind := range byte(twinEvents) { // each kind between many others
		random := rand.New(rand.NewPCG(uint64(kind), 1))
		events := make([]byte, 0, 420)
		for range 60 {
			events = append(events, kind, byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32()))
			events = append(events, byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32()))
		}
		f.Add(events)
	}
	f.Fuzz(func(t *testing.T, events []byte) {
		one, other := newTwin(t, events), newTwin(t, events)
		for step := 0; len(one.events) > 0; step++ {
			a, b := one.next(), other.next()
			if a != b {
				t.Fatalf("event %d:\none:   %s\nother: %s", step, a, b)
			}
		}
	})
}

// TestTwins is the same on longer runs.
func TestTwins(t *testing.T) {
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 2))
		events := make([]byte, 6000)
		for i := range events {
			events[i] = byte(random.Uint32())
		}
		one, other := newTwin(t, events), newTwin(t, events)
		for step := 0; len(one.events) > 0; step++ {
			if a, b := one.next(), other.next(); a != b {
				t.Fatalf("seed %d, event %d:\none:   %s\nother: %s", seed, step, a, b)
			}
		}
	}
}

// FuzzReopening: a change of the endpoints has the same results as opening every lane, then and later.
func FuzzReopening(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(changingEndpoints(seed, 400))
	}
	f.Fuzz(sameAsReopening)
}

// TestReopening is the same on longer runs.
func TestReopening(t *testing.T) {
	for seed := range uint64(25) {
		sameAsReopening(t, changingEndpoints(seed, 3000))
	}
}

// changingEndpoints are bytes of which many are changes of the endpoints.
func changingEndpoints(seed uint64, n int) []byte {
	random := rand.New(rand.NewPCG(seed, 3))
	events := make([]byte, n)
	for i := range events {
		if events[i] = byte(random.Uint32()); random.IntN(20) == 0 {
			events[i] = 12
		}
	}
	return events
}

func sameAsReopening(t *testing.T, events []byte) {
	one, other := newTwin(t, events), newTwin(t, events)
	one.calm, other.calm, other.reopens = true, true, true
	for step := 0; len(one.events) > 0; step++ {
		one.next()
		other.next()
		if a, b := one.where(), other.where(); a != b {
			t.Fatalf("event %d:\none:   %s\nother: %s", step, a, b)
		}
	}
}

// where returns each request's place and verdict.
func (x *twin) where() string {
	s := x.State()
	s.Attempts = 0
	b := fmt.Appendf(nil, "%+v; verdicts", s)
	for _, w := range x.Verdicts() {
		b = fmt.Appendf(b, " %d", x.numbers[w])
	}
	return string(x.lives(b)) + fmt.Sprintf("\n%+v\n%+v", x.Tiers(nil), x.Preemptions())
}

// twinEvents is the number of kinds of events.
const twinEvents = 19

// twin is a machine driven by bytes.
type twin struct {
	*Machine
	t         *testing.T
	events    []byte
	board     *failingBoard
	scheduler *scheduling.Scheduler
	all       *scheduling.Snapshot // of every endpoint that may ever be there
	snapshot  *scheduling.Snapshot // the board's
	clock     time.Time
	requests  []*Waiter
	numbers   map[*Waiter]int
	ready     []stock.Backend
	present   int  // a bit for each preemptor to come: 0, its client is there
	counters  bool // flows share by discipline vtc
	calm      bool // the board does not fail
	reopens   bool // a change of the endpoints opens every lane
}

// failingBoard is a board that panics now and then.
type failingBoard struct {
	placement.Placer
	fails int // questions to go until it panics; 0: it does not
}

func (b *failingBoard) ask() {
	if b.fails > 0 {
		if b.fails--; b.fails == 0 {
			panic("the board has failed")
		}
	}
}

func (b *failingBoard) Place(p Placement, bound Bound, except *EndpointSet) Reservation {
	b.ask()
	return b.Placer.Place(p, bound, except)
}

func (b *failingBoard) Regret(p Placement, bound Bound, except *EndpointSet) (int64, bool) {
	b.ask()
	return b.Placer.Regret(p, bound, except)
}

func (b *failingBoard) HasRoom(p Placement, bound Bound, except *EndpointSet) bool {
	b.ask()
	return b.Placer.HasRoom(p, bound, except)
}

func (b *failingBoard) HasReady(p Placement, except *EndpointSet) bool {
	b.ask()
	return b.Placer.HasReady(p, except)
}

func newTwin(t *testing.T, events []byte) *twin {
	x := &twin{t: t, events: events, clock: epoch, numbers: map[*Waiter]int{}}
	s, err := scheduling.New(scheduling.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	x.counters = x.below(3) == 0
	x.scheduler, x.board = s, &failingBoard{Placer: placement.On(scheduling.NewBoard(s, rand.New(rand.NewPCG(3, 4))))}
	if x.Machine, err = New(x.configuration(), x.board, rand.New(rand.NewPCG(1, 2))); err != nil {
		t.Fatal(err)
	}
	x.all = scheduling.NewSnapshot(0, x.pool(0x1f, 0, 0))
	x.snapshot = x.board.Snapshot()
	x.backends(0x1f, 0, 0)
	return x
}

// below is the next byte as a number below n; 0 when there are none left.
func (x *twin) below(n int) int {
	if len(x.events) == 0 {
		return 0
	}
	b := x.events[0]
	x.events = x.events[1:]
	return int(b) % n
}

// configuration is one by the next bytes.
func (x *twin) configuration() Config {
	cfg := DefaultConfig()
	threeTiers(&cfg, []int64{100_000, 500_000, 1_000_000, 0}[x.below(4)])
	cfg.Queue.TotalCapacity, cfg.Queue.FlowCapacity = 12, 5
	perBackend(&cfg, 1, 1+x.below(2))
	cfg.Queue.QueueTTL = 20 * time.Second
	cfg.Queue.Weights = map[string]fairqueue.Weight{"a": 3 * fairqueue.WeightOne, "d": fairqueue.WeightOne / 2}
	if x.counters {
		cfg.Queue.Discipline = fairqueue.VTC
	}
	what := x.below(256)
	cfg.EnqueueAll = what&1 == 0
	cfg.HoldWhenEmpty = what&2 == 0
	cfg.Circuits = what&48 != 0
	if what&4 != 0 {
		cfg.MaxInFlightPerFlow = 3
	}
	if what&8 != 0 {
		cfg.MaxInFlightPerFlowPerBackend = 1
	}
	if x.below(3) == 0 {
		cfg.Stock.Tokens = stock.TokensConfig{Watermark: 4}
	}
	if what&12 == 12 {
		cfg.MaxTokensInFlightPerFlow, cfg.MaxTokensInFlightPerFlowPerBackend = 5, 2
	}
	if what&16 != 0 {
		cfg.ReleaseSpacing = 100 * time.Millisecond
	}
	if what&32 != 0 {
		cfg.VictimOrder, cfg.Queue.TieBreak = LeastCostFirst, fairqueue.NewcomerFirst
	}
	if what&64 != 0 {
		cfg.Tiers[0].ReservedFloor, cfg.Tiers[1].ReservedPerSlot = 1, stock.One/5
	}
	if what&128 != 0 {
		cfg.Queue.Classes = []fairqueue.ClassConfig{{Name: "x", Quantum: 2}, {Name: "y", Quantum: fairqueue.Cost(1 + x.below(9))}}
		cfg.Queue.Classes[1].Order = fairqueue.Order(x.below(3))
		switch x.below(4) {
		case 0:
			slices.Reverse(cfg.Queue.Classes)
		case 1:
			cfg.Queue.Classes[0].Name = "z"
		}
	}
	cfg.Enabled = what != 255
	if x.below(3) == 0 { // the middle tier goes, or comes
		cfg.Queue.Tiers = slices.Delete(cfg.Queue.Tiers, 1, 2)
		cfg.Tiers = slices.Delete(cfg.Tiers, 1, 2)
	}
	return cfg
}

// pool is the endpoints of which those of a set are ready and those of another one gone. what says more of some.
func (x *twin) pool(ready, gone, what int) (pool []scheduling.Endpoint) {
	for i := range 5 {
		e := scheduling.Endpoint{ID: scheduling.EndpointID(i), Address: fmt.Sprintf("10.0.0.%d:80", i+1), Ready: ready>>i&1 == 1}
		if i < 3 && what&1 == 0 {
			e.Models = [][]string{{"m", "n"}, {"m"}, {"n"}}[i]
		}
		if i == what>>1&7 {
			e.Slots, e.MaxInFlight = what>>4&1*3, what>>5
		}
		if gone>>i&1 == 0 {
			pool = append(pool, e)
		}
	}
	return pool
}

// backends changes the endpoints.
func (x *twin) backends(ready, gone, what int) {
	x.ready = nil
	pool := x.pool(ready, gone, what)
	for _, e := range pool {
		if e.Ready {
			x.ready = append(x.ready, stock.Backend{ID: stock.BackendID(e.ID), Slots: int32(e.Slots)})
		}
	}
	x.snapshot = x.snapshot.Next(0, pool)
	x.board.SetSnapshot(x.snapshot)
	foreign := x.others()
	x.event(func() {
		if !x.reopens {
			x.SetBackends(x.clock, x.ready, foreign)
			return
		}
		x.begin(x.clock)
		x.tellLedger(x.ready, nil)
		x.countForeign(foreign)
		x.forgetFailing()
		x.reopen()
		x.run()
	})
}

// others says what others hold at some of the endpoints by the next bytes.
func (x *twin) others() (changes []stock.Foreign) {
	for range x.below(4) {
		changes = append(changes, stock.Foreign{ID: stock.BackendID(x.below(6)), Held: stock.Amount{Requests: x.below(5) - 1}})
	}
	return changes
}

// event is an event with what its caller has to do.
func (x *twin) event(happens func()) {
	x.contain(happens)
	for x.Preemptor() != nil {
		here := x.present&1 == 0
		x.present >>= 1
		x.contain(func() {
			if here {
				x.Preempt(x.clock)
			} else {
				x.PreemptorGone(x.clock, OutcomeClientCancelled)
			}
		})
	}
}

func (x *twin) contain(part func()) {
	defer func() {
		if p := recover(); p != nil {
			x.contain(func() { x.Failed(x.clock, fmt.Errorf("%v", p)) })
		}
	}()
	part()
}

// arrival is one by the next bytes.
func (x *twin) arrival() (w *Waiter, a Arrival) {
	w = new(Waiter)
	x.numbers[w] = len(x.requests)
	x.requests = append(x.requests, w)
	a.Flow, a.Tier, a.Cost = string(rune('a'+x.below(5))), x.below(4), fairqueue.Cost(x.below(9))
	a.Tokens = stock.Tokens(x.below(9))
	if x.below(3) == 0 {
		a.TierName = []string{"high", "middle", "low", "unknown"}[a.Tier]
	}
	if x.below(3) == 0 {
		a.Deadline = x.clock.Add(time.Duration(x.below(8)-1) * time.Second)
	}
	if class := x.below(4); class > 0 {
		a.Path = &fairqueue.Path{Class: []string{"x", "y", "nobody's"}[class-1]}
	}
	var ask scheduling.Ask
	if lane := x.below(10); lane > 3 {
		ask.Subset.Set = true
		for _, i := range [][]int{{0}, {1}, {0, 1}, {2, 3}, {1, 4}, {4, 2, 0}}[lane-4] {
			ask.Subset.Entries = append(ask.Subset.Entries, x.all.At(i).Address)
		}
	} else if lane > 1 {
		ask.Model = []string{"m", "n"}[lane-2]
	}
	q, err := x.scheduler.Prepare(x.all, ask)
	if err != nil {
		x.t.Fatal(err)
	}
	a.Placement = q
	return w, a
}

// some is a request that has arrived, one of the last ones; nil: none has.
func (x *twin) some() *Waiter {
	if len(x.requests) == 0 {
		return nil
	}
	return x.requests[len(x.requests)-1-x.below(min(24, len(x.requests)))]
}

// next is the next event, and says what came of it.
func (x *twin) next() string {
	kind := x.below(twinEvents)
	x.present = x.below(256)
	said := ""
	switch w := x.some(); {
	case kind <= 3 || w == nil:
		w, a := x.arrival()
		x.event(func() { x.Arrive(x.clock, w, a) })
	case kind == 4:
		w, a := x.arrival()
		x.event(func() { x.PassOn(x.clock, w, a) })
	case kind == 5:
		for _, w := range x.requests {
			x.Told(w)
		}
	case kind == 6:
		x.Told(w)
	case kind == 7:
		o := []Outcome{OutcomeClientCancelled, OutcomeDeadlineExceeded}[x.below(2)]
		x.event(func() { x.Cancel(x.clock, w, o) })
	case kind == 8:
		said = fmt.Sprint(w.stage > StageNew && x.FirstByte((*Lease)(w)))
	case kind == 9:
		e := Endpoint(x.below(6)) + NoEndpoint // or none that is known
		x.event(func() { x.ServedElsewhere(x.clock, (*Lease)(w), e, 200) })
	case kind == 10 || kind == 11:
		x.Told(w)
		cost := fairqueue.Cost(max(0, x.below(40)-20))
		answer := Answer{Status: []int{200, 500, 503, 429, 404, 0}[x.below(6)], RetryAfter: time.Duration(x.below(4)) * time.Second}
		x.event(func() { said = fmt.Sprint(x.Answered(x.clock, (*Lease)(w), cost, answer)) })
	case kind == 12:
		gone := 0
		if x.below(3) == 0 {
			gone = 1 << x.below(5)
			gone |= 1 << x.below(5)
		}
		x.backends(x.below(32), gone, x.below(256))
	case kind == 13:
		cfg := x.configuration()
		x.event(func() { said = fmt.Sprint(x.Configure(x.clock, cfg)) })
	case kind == 14:
		o := []Outcome{OutcomeNoMemory, OutcomeNoEndpoint, OutcomeBadRequest}[x.below(3)]
		said = x.Refuse(x.clock, o).String()
		if fails := x.below(12); !x.calm {
			x.board.fails = fails
		}
		if x.below(64) == 63 {
			x.event(func() { x.Drain(x.clock) })
		}
	case kind == 15:
		cost := fairqueue.Cost(x.below(40)) // its stream has ended, or ends by it
		x.event(func() { said = fmt.Sprint(x.Complete(x.clock, (*Lease)(w), cost)) })
	case kind == 16:
		cost, how := fairqueue.Cost(x.below(40)), x.Raise
		if cost%2 == 0 {
			how = x.TrueUp
		}
		tokens := stock.Tokens(x.below(9))
		x.event(func() { how(x.clock, (*Lease)(w), cost, tokens) })
	case kind == 17:
		changes := x.others()
		x.event(func() { x.SetForeign(x.clock, changes) })
	default:
		x.clock = x.clock.Add(time.Duration(x.below(256)) * 17 * time.Millisecond)
		x.event(func() { x.Advance(x.clock) })
	}
	return x.tell(kind, said)
}

// tell returns everything that a caller can observe after an event.
func (x *twin) tell(kind int, said string) string {
	x.foreignAgrees()
	in, asks := x.Next(x.clock)
	b := fmt.Appendf(nil, "kind %d: %s; next %v %t; %+v; verdicts", kind, said, in, asks, x.State())
	for _, w := range x.Verdicts() {
		b = fmt.Appendf(b, " %d", x.numbers[w])
	}
	b = x.lives(b)
	b = fmt.Appendf(b, "\n%+v\n%+v\n%+v", x.Tiers(nil), x.Preemptions(), x.Flows(x.clock, 10))
	return string(b)
}

// foreignAgrees: the ledger and the board count the same foreign stock.
func (x *twin) foreignAgrees() {
	sum := 0
	for _, s := range x.board.Shares(nil) {
		sum += s.Foreign
	}
	if n := x.ledger.Foreign(); n != sum {
		x.t.Fatalf("others hold %d by the ledger, %d by the board", n, sum)
	}
}

// lives appends the places of the last requests.
func (x *twin) lives(b []byte) []byte {
	for i, w := range x.requests[max(0, len(x.requests)-24):] {
		b = fmt.Appendf(b, "\n%d: stage %d %v retry %v waited %v queued %t bypass %t", i, w.Stage(), w.Outcome(), w.RetryAfter(),
			w.Waited(), w.WasQueued(), w.Bypassed())
		if l := w.Lease(); l != nil {
			b = fmt.Appendf(b, " at %d, preemptible %t, promoted %t", l.Endpoint(), l.Preemptible(), l.Promoted())
		}
	}
	return b
}
