package dispatch

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// bench drives a machine by hand, with its own clock. It reports panics to the machine, and confirms every preemptor's
// client.
type bench struct {
	*Machine
	t     *testing.T
	fleet *fleet
	clock time.Time
}

// newBench makes a machine with three tiers that may preempt, except the lowest, and endpoints with these slots.
func newBench(t *testing.T, slots []int, change func(*Config)) *bench {
	cfg := DefaultConfig()
	threeTiers(&cfg, 100_000)
	if change != nil {
		change(&cfg)
	}
	f := &fleet{scene: &scene{lower: 1, upper: 1}, slots: slots}
	m, err := New(cfg, f, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Machine: m, t: t, fleet: f, clock: epoch}
	var ready []stock.Backend
	for i, n := range slots {
		ready = append(ready, stock.Backend{ID: stock.BackendID(i), Slots: int32(n)})
	}
	b.event(func() { b.SetBackends(b.clock, ready, nil) })
	return b
}

func (b *bench) event(happens func()) {
	b.contain(happens)
	for b.Preemptor() != nil {
		b.contain(func() { b.Preempt(b.clock) })
	}
}

func (b *bench) contain(part func()) {
	defer func() {
		if p := recover(); p != nil {
			b.contain(func() { b.Failed(b.clock, fmt.Errorf("%v", p)) })
		}
	}()
	part()
}

// arrives makes a request arrive, which must reach the stage want.
func (b *bench) arrives(tier int, flow string, lane reach, want Stage) *Waiter {
	b.t.Helper()
	w := new(Waiter)
	b.event(func() { b.Arrive(b.clock, w, Arrival{Flow: flow, Tier: tier, Placement: lane}) })
	b.want(w, want)
	return w
}

func (b *bench) want(w *Waiter, stage Stage) {
	b.t.Helper()
	if w.Stage() != stage {
		b.t.Fatalf("stage %d (%v), want %d", w.Stage(), w.Outcome(), stage)
	}
}

// complete completes a lease.
func (b *bench) complete(w *Waiter) {
	b.Told(w)
	b.event(func() { b.Complete(b.clock, (*Lease)(w), fairqueue.UnknownCost) })
}

// nothing checks that all accounts are empty.
func (b *bench) nothing(what string) {
	b.t.Helper()
	if s := b.State(); s.Stock != 0 || s.Queued != 0 || s.LiveFlows != 0 || b.fleet.reserved != [2]int{} {
		b.t.Errorf("%s: %+v, reserved %v", what, s, b.fleet.reserved)
	}
}

// smg 9.2: an arrival takes a freed slot while an older request of its own or a higher tier waits. Here the arrival
// comes just when the slot is free and the waiter is not released yet.
func TestDefectBarging(t *testing.T) {
	for name, test := range map[string]struct{ waiter, arrival int }{"own tier": {1, 1}, "higher tier": {1, 2}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, []int{1}, nil)
			holder := b.arrives(0, "h", "", StageSent)
			waiter := b.arrives(test.waiter, "w", "", StageWaiting)
			holder.stage = StageEnded
			b.settle(holder)
			late := b.arrives(test.arrival, "late", "", StageWaiting)
			b.want(waiter, StageGranted)
			b.complete(waiter)
			b.want(late, StageGranted)
			b.complete(late)
			b.nothing("at the end")
		})
	}
}

// A panic after the lease is taken leaves no lease, reservation, waiter or account: for an arrival, a preemptor, and a
// waiter, which ends at its second panic. The panic is in the victims' order.
func TestPanicAfterTheLeaseLeavesNothing(t *testing.T) {
	b := newBench(t, []int{1}, nil)
	victims := &b.victims.tiers[b.ranks[2]]
	breaks := func() { // a heap with a hole
		victims.byEndpoint = map[Endpoint]*victimHeap{0: {owner: &b.victims, leases: make([]*Lease, 1)}}
	}
	heals := func() { *victims = victimTier{} }
	breaks()
	w := b.arrives(2, "a", "", StageEnded)
	if w.Outcome() != OutcomeInternal || w.Failure() == nil || b.State().Panics != 1 {
		t.Errorf("%v, %v", w.Outcome(), w.Failure())
	}
	heals()
	b.nothing("an arrival")

	holder := b.arrives(2, "a", "", StageSent)
	waiter := b.arrives(2, "a", "", StageWaiting)
	other := b.arrives(2, "b", "", StageWaiting)
	b.FirstByte(holder.Granted())
	breaks()
	b.complete(holder)
	b.want(waiter, StageEnded)
	b.want(other, StageEnded)
	if waiter.Outcome() != OutcomeInternal || b.State().Panics != 5 {
		t.Errorf("%v after %d panics", waiter.Outcome(), b.State().Panics)
	}
	heals()
	b.nothing("waiters")
}

// If decisions panic for all requests, an event stops after a bounded number of panics. The other requests go after a
// wait, which ends at the time of Next.
func TestPanicsLoseNobodyWhoCanGo(t *testing.T) {
	b := newBench(t, []int{2}, func(c *Config) { perBackend(c, 2, 2) })
	holder := b.arrives(2, "h", "", StageSent)
	second := b.arrives(2, "h", "", StageSent)
	var waiters []*Waiter
	for range mostPanics {
		waiters = append(waiters, b.arrives(2, "a", "", StageWaiting))
	}
	b.fleet.sick = true
	b.complete(holder)
	if n := b.State().Panics; n != mostPanics {
		t.Errorf("%d panics in one event", n)
	}
	last := waiters[mostPanics-1]
	b.want(last, StageWaiting)
	b.fleet.sick = false
	wait, ok := b.Next(b.clock)
	at := b.clock.Add(wait)
	if !ok || wait < 10*time.Millisecond || wait > 11*time.Millisecond {
		t.Errorf("tried again after %v", wait)
	}
	b.clock = at.Add(-1)
	b.event(func() { b.Advance(b.clock) })
	for _, w := range waiters {
		if w.stage == StageGranted {
			t.Error("released before the wait is over")
		}
	}
	b.clock = at
	for b.event(func() { b.Advance(b.clock) }); b.State().Queued > 0; {
		i := slices.IndexFunc(waiters, func(w *Waiter) bool { return w.stage == StageGranted })
		if i < 0 {
			t.Fatal("nobody is released")
		}
		b.complete(waiters[i])
	}
	b.want(last, StageGranted)
	for _, w := range append(waiters, second) {
		b.complete(w)
	}
	b.nothing("at the end")
}

// The first flow-full of a flow takes no place from others. Its retry time follows that flow's own drain rate: a slow
// flow beside fast ones waits for its own.
func TestFlowFullIsTheFlowsOwn(t *testing.T) {
	b := newBench(t, []int{2}, func(c *Config) {
		c.Queue.CapacityMode, c.Queue.TotalCapacity, c.Queue.FlowCapacity = fairqueue.Reserved, 6, 2
	})
	for range 2 {
		b.arrives(0, "held", "", StageSent)
	}
	for _, flow := range []string{"slow", "slow", "a", "c"} {
		b.arrives(0, flow, "", StageWaiting)
	}
	one := uint64(b.ledger.Capacity())
	b.flows.find(0, "slow").pace = pace{held: one * uint64(4*time.Second), released: oneRelease, last: b.queue.Since(b.clock), begun: true}
	b.pace = pace{held: one * uint64(100*time.Millisecond), released: oneRelease, last: b.queue.Since(b.clock), begun: true}
	if w := b.arrives(0, "slow", "", StageEnded); w.Outcome() != OutcomeFlowFull || w.RetryAfter() != 8*time.Second {
		t.Errorf("%v: the slow flow, with two that drain in 8 s, is told %v", w.Outcome(), w.RetryAfter())
	}
	if w := b.arrives(0, "b", "", StageEnded); w.Outcome() != OutcomeQueueFull || w.RetryAfter() != time.Second {
		t.Errorf("%v: another is told %v", w.Outcome(), w.RetryAfter())
	}
}

// A refused configuration drops nothing: neither a drained tier nor its counts. An accepted one does, and a later tier
// starts at zero.
func TestRefusedConfigurationForgetsNothing(t *testing.T) {
	b := newBench(t, []int{1}, nil)
	cfg := b.config
	cfg.Queue.Tiers = []fairqueue.TierConfig{cfg.Queue.Tiers[0], cfg.Queue.Tiers[2]}
	cfg.Tiers = []TierConfig{cfg.Tiers[0], cfg.Tiers[2]}
	if err := b.Configure(b.clock, cfg); err != nil {
		t.Fatal(err)
	}
	b.counts.displaced[1] = 7
	before := fmt.Sprintf("%+v", b.Tiers(nil))
	for name, change := range map[string]func(*Config){
		"discipline": func(c *Config) { c.Queue.Discipline = fairqueue.OneFlow },
		"tier mode":  func(c *Config) { c.Queue.TierMode = fairqueue.Weighted },
	} {
		other := cfg
		change(&other)
		if err := b.Configure(b.clock, other); err == nil {
			t.Errorf("%s: taken", name)
		}
		if after := fmt.Sprintf("%+v", b.Tiers(nil)); after != before || b.counts.displaced[1] != 7 {
			t.Errorf("%s: the tiers were %s, are %s", name, before, after)
		}
	}
	if err := b.Configure(b.clock, cfg); err != nil || b.counts.displaced[1] != 0 {
		t.Errorf("%d displaced of a tier that is gone; %v", b.counts.displaced[1], err)
	}
}

// The memory for lanes without waiters is bounded, however many there were: a gateway can name any number of subsets.
func TestLanesWithoutWaitersAreForgotten(t *testing.T) {
	b := newBench(t, []int{1}, func(c *Config) { c.Tiers[0].CanPreempt = true })
	held := b.arrives(0, "f", "", StageSent)
	for i := range 5000 {
		w := b.arrives(0, "f", reach("0"+fmt.Sprint(i)), StageWaiting)
		b.event(func() { b.Cancel(b.clock, w, OutcomeClientCancelled) })
	}
	n := &b.lanes
	if len(n.notes) > 2*fewNotes || len(n.has[0].all) > 2*fewNotes || len(n.searching[0]) > 2*fewNotes {
		t.Errorf("%d notes, %d at the endpoint, %d searching", len(n.notes), len(n.has[0].all), len(n.searching[0]))
	}
	b.complete(held)
	b.nothing("at the end")
}

// A lease has its request's tokens, as far as known: raised while the answer grows, never lowered by an estimate,
// corrected by the usage if reported, and removed with the request. The request's cost is independent.
func TestTokensAreCorrected(t *testing.T) {
	b := newBench(t, []int{1}, nil)
	w := b.arrives(2, "a", "", StageSent)
	for _, step := range []struct {
		tell func(time.Time, *Lease, fairqueue.Cost, stock.Tokens)
		cost fairqueue.Cost
		to   stock.Tokens
		want stock.Tokens
	}{{b.Raise, 1, 10, 10}, {b.Raise, 99, 4, 10}, {b.TrueUp, 99, 7, 7}, {b.Raise, 1, 8, 8}, {b.TrueUp, 99, 0, 8}, {b.Raise, 99, 0, 8}} {
		if step.tell(b.clock, (*Lease)(w), step.cost, step.to); b.State().Tokens != step.want {
			t.Errorf("told %d, the tokens in flight are %d, want %d", step.to, b.State().Tokens, step.want)
		}
	}
	b.complete(w)
	b.TrueUp(b.clock, (*Lease)(w), 5, 5)
	b.Raise(b.clock, (*Lease)(w), 50, 50)
	if s := b.State(); s.Tokens != 0 {
		t.Errorf("%d is left", s.Tokens)
	}
}

// With a bound in tokens, a victim is not preempted if the stock would stay above its bound without it.
func TestACheapVictimIsNotEnough(t *testing.T) {
	for cost, want := range map[fairqueue.Cost]Stage{10: StageWaiting, 90: StageSent} {
		b := newBench(t, []int{2}, func(c *Config) {
			perBackend(c, 2, 2)
			c.Stock.Tokens = stock.TokensConfig{Watermark: 100, Lower: 100, Upper: 100}
		})
		holder, victim := new(Waiter), new(Waiter)
		b.event(func() { b.Arrive(b.clock, holder, Arrival{Flow: "h", Tier: 0, Cost: 5, Placement: reach("")}) })
		b.event(func() { b.Arrive(b.clock, victim, Arrival{Flow: "v", Tier: 2, Cost: cost, Placement: reach("")}) })
		b.Raise(b.clock, holder.Granted(), 99, 99)
		if b.want(victim, StageSent); cost == 90 {
			b.TrueUp(b.clock, holder.Granted(), 20, 20)
		} else {
			b.Raise(b.clock, holder.Granted(), 105, 105)
		}
		b.arrives(0, "p", "", want)
	}
}

// If a client's deadline and TTL end at the same instant, the outcome is the TTL's, even if the client cancels.
func TestCancelAtTheTTL(t *testing.T) {
	b := newBench(t, []int{1}, func(c *Config) { c.Queue.QueueTTL = time.Second })
	b.arrives(0, "h", "", StageSent)
	early, late := b.arrives(0, "a", "", StageWaiting), b.arrives(0, "a", "", StageWaiting)
	b.event(func() { b.Cancel(b.clock, early, OutcomeDeadlineExceeded) })
	b.clock = b.clock.Add(time.Second)
	b.event(func() { b.Cancel(b.clock, late, OutcomeDeadlineExceeded) })
	if early.Outcome() != OutcomeDeadlineExceeded || late.Outcome() != OutcomeTTLExpired {
		t.Errorf("%v and %v", early.Outcome(), late.Outcome())
	}
}

// Each displaced request is counted for its own tier.
func TestDisplacedAreCounted(t *testing.T) {
	b := newBench(t, []int{1}, func(c *Config) { c.Queue.TotalCapacity, c.Queue.FlowCapacity = 1, 1 })
	b.FirstByte(b.arrives(2, "h", "", StageSent).Granted())
	low := b.arrives(2, "l", "", StageWaiting)
	b.arrives(1, "m", "", StageWaiting)
	tiers := b.Tiers(nil)
	if low.Outcome() != OutcomeDisplaced || tiers[2].Displaced != 1 || tiers[1].Displaced != 0 {
		t.Errorf("%v, %+v", low.Outcome(), tiers)
	}
}

// A cap needs flows: even the smallest is refused with a discipline without flows.
func TestACapNeedsFlows(t *testing.T) {
	for field, set := range map[string]func(*Config){
		"MaxInFlightPerFlow":                 func(c *Config) { c.MaxInFlightPerFlow = 1 },
		"MaxInFlightPerFlowPerBackend":       func(c *Config) { c.MaxInFlightPerFlowPerBackend = 1 },
		"MaxTokensInFlightPerFlow":           func(c *Config) { c.MaxTokensInFlightPerFlow = 1 },
		"MaxTokensInFlightPerFlowPerBackend": func(c *Config) { c.MaxTokensInFlightPerFlowPerBackend = 1 },
	} {
		cfg := DefaultConfig()
		set(&cfg)
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: %v", field, err)
		}
		cfg.Queue.Discipline = fairqueue.OneFlow
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), field+": 1: must be 0") {
			t.Errorf("%s without flows: %v", field, err)
		}
	}
}

// Preemptions are counted by two tiers. After the removal of either, a new tier with its identifier starts at zero.
func TestPreemptionsOfFormerTiersAreForgotten(t *testing.T) {
	for _, gone := range []string{"high", "low"} {
		b := newBench(t, []int{1}, nil)
		b.arrives(2, "v", "", StageSent)
		b.complete(b.arrives(0, "p", "", StageSent))
		if got := b.Preemptions(); !maps.Equal(got, map[[2]string]uint64{{"low", "high"}: 1}) {
			t.Fatalf("%v", got)
		}
		cfg := b.Config()
		at := slices.IndexFunc(cfg.Queue.Tiers, func(c fairqueue.TierConfig) bool { return c.Name == gone })
		cfg.Queue.Tiers = slices.Delete(slices.Clone(cfg.Queue.Tiers), at, at+1)
		cfg.Tiers = slices.Delete(slices.Clone(cfg.Tiers), at, at+1)
		b.configures(cfg)
		renewed := cfg
		renewed.Queue.Tiers = append(slices.Clone(cfg.Queue.Tiers), fairqueue.TierConfig{Name: "new", QueueSize: -1})
		renewed.Tiers = append(slices.Clone(cfg.Tiers), TierConfig{})
		b.configures(renewed)
		if got := b.Preemptions(); len(got) > 0 {
			t.Errorf("%q is gone, and %v", gone, got)
		}
	}
}

func (b *bench) configures(cfg Config) {
	b.t.Helper()
	b.event(func() {
		if err := b.Configure(b.clock, cfg); err != nil {
			b.t.Fatal(err)
		}
	})
}

// noTakeOver is a fleet that panics at every placement at a given endpoint.
type noTakeOver struct{ *fleet }

func (noTakeOver) PlaceAt(Placement, Endpoint) Reservation { panic("no take-over") }

// A preemptor whose take-over panics ends after as many panics as any other waiter. The victim keeps its lease, and the
// next preemptor takes it.
func TestPreemptorWhoseTakeOverPanics(t *testing.T) {
	b := newBench(t, []int{1}, func(c *Config) { c.Tiers[0].CanPreempt = false })
	victim := b.arrives(2, "v", "", StageSent)
	w := b.arrives(0, "p", "", StageWaiting)
	cfg := b.Config()
	cfg.Tiers = slices.Clone(cfg.Tiers)
	cfg.Tiers[0].CanPreempt = true
	b.placer = noTakeOver{b.fleet}
	b.configures(cfg)
	if w.Outcome() != OutcomeInternal || b.State().Panics != panicsEnd {
		t.Errorf("%v after %d panics, want %v after %d", w.Outcome(), b.State().Panics, OutcomeInternal, panicsEnd)
	}
	b.want(victim, StageSent)
	b.placer = b.fleet
	b.complete(b.arrives(1, "next", "", StageSent))
	b.nothing("at the end")
}
