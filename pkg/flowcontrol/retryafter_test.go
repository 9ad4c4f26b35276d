package flowcontrol

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// told is what a rejected client is told: its reason and when to come back.
func (b *bench) told(r *Request) (reason string, wait time.Duration) {
	b.t.Helper()
	_, err := b.TryEnqueue(b.t.Context(), r)
	var rejection *Rejection
	if !errors.As(err, &rejection) {
		b.t.Fatalf("%v", err)
	}
	return rejection.Outcome.String(), rejection.RetryAfter
}

// small is a queue of so many places for all flows, each of which may have them all: one waits, all others are turned
// away.
func small(places int) func(*Config) {
	return func(c *Config) {
		c.Queue.TotalCapacity, c.Queue.FlowCapacity = places, places
		c.Stock.WatermarkPerBackend, c.Stock.LowerBoundPerBackend, c.Stock.UpperBoundPerBackend = 2, 2, 2
	}
}

// A client that asks for an unknown model again and again spoils nobody's time: it takes no place.
func TestUnknownModelsTakeNoPlaces(t *testing.T) {
	inBubble(t, ready(1), small(1), func(b *bench) {
		leases := b.holds(2)
		waiter := b.arrives(b.t.Context(), one("a"))
		low, high := time.Hour, time.Duration(0)
		for range 150 { // 10 a second for 15 s
			wait := b.Refuse("f", "nobody-has-it", "", ErrNoEndpoint).RetryAfter
			low, high = min(low, wait), max(high, wait)
			time.Sleep(100 * time.Millisecond)
		}
		if low < time.Second || high > 2*time.Second || high-low < 900*time.Millisecond {
			b.t.Errorf("they are told %v to %v", low, high)
		}
		if reason, wait := b.told(one("b")); reason != "queue-full" || wait != time.Second {
			b.t.Errorf("%s: the next client is told %v", reason, wait)
		}
		b.want(waiter, "waits")
		for _, l := range leases {
			complete(l)
		}
		complete(waiter.lease)
	})
}

// Two slots of 4 s, four places in the queue and seven clients, of which the one too many comes back every 0.3 s,
// whatever it is told: the queue drains in 8 s, and nobody is told more than twice that, however long it goes on.
func TestWhoComesBackEarlyPushesNobodyOut(t *testing.T) {
	inBubble(t, ready(1), small(4), func(b *bench) {
		over, end := context.WithCancel(b.t.Context())
		for range 6 {
			go func() {
				for over.Err() == nil {
					l, err := b.TryEnqueue(over, one("a"))
					if err != nil {
						time.Sleep(10 * time.Millisecond) // its place was taken by a hair
						continue
					}
					time.Sleep(4 * time.Second)
					l.OnRequestComplete(Completion{Status: 200})
				}
			}()
		}
		synctest.Wait()
		time.Sleep(5050 * time.Millisecond) // two were released; and nobody asks in the middle of two releases
		early, honest := 0, 0
		for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(300 * time.Millisecond) {
			if b.State().Queued < 4 {
				continue
			}
			for who, n := range map[string]*int{"a": &early, "b": &honest} { // of its flow, and of another
				reason, wait := b.told(one(who))
				if want := map[string]string{"a": "flow-full", "b": "queue-full"}[who]; reason != want {
					b.t.Fatalf("%s, want %s", reason, want)
				}
				if *n++; wait < 6*time.Second || wait > 18*time.Second {
					b.t.Errorf("rejection %d of %s, with 4 waiting that drain in 8 s, is told %v", *n, who, wait)
				}
			}
		}
		if early < 100 || honest < 100 {
			b.t.Errorf("only %d and %d rejections", early, honest)
		}
		end()
		time.Sleep(10 * time.Second)
	})
}

// The first flow-full of a flow takes no place from the others, and is told by the rate at which that flow drains: one that
// is slow beside fast ones waits for its own.
func TestFlowFullIsTheFlowsOwn(t *testing.T) {
	inBubble(t, ready(1), func(c *Config) {
		small(6)(c)
		c.Queue.FlowCapacity = 2
	}, func(b *bench) {
		leases := b.holds(2)
		var waiters []*arrival
		for _, flow := range []string{"slow", "slow", "a", "c"} {
			waiters = append(waiters, b.arrives(b.t.Context(), one(flow)))
		}
		synctest.Wait()
		b.flows.find(0, "slow").pace = pace{interval: 4 * time.Second, samples: paceMost}
		b.pace = pace{interval: 100 * time.Millisecond, samples: paceMost}
		if reason, wait := b.told(one("slow")); reason != "flow-full" || wait != 8*time.Second {
			b.t.Errorf("%s: the slow flow, with two that drain in 8 s, is told %v", reason, wait)
		}
		if reason, wait := b.told(one("b")); reason != "queue-full" || wait != time.Second {
			b.t.Errorf("%s: another is told %v", reason, wait)
		}
		for _, l := range leases {
			complete(l)
		}
		for range waiters {
			synctest.Wait()
			complete(holder(waiters).lease)
		}
	})
}

// Refusals for want of memory have their places by model: those of one move another's time by one place.
func TestOneModelsRefusalsPushNoOthers(t *testing.T) {
	inBubble(t, ready(1), nil, func(b *bench) {
		for range 200 {
			b.Refuse("", "noisy", "", ErrNoMemory)
		}
		if wait := b.Refuse("", "quiet", "", ErrNoMemory).RetryAfter; wait < time.Second || wait > time.Second+10*time.Millisecond {
			b.t.Errorf("the other model's is told %v", wait)
		}
	})
}

// One flow's thousand rejections move another's time by one place.
func TestOneFlowsRejectionsPushNoOthers(t *testing.T) {
	inBubble(t, ready(1), small(1), func(b *bench) {
		leases := b.holds(2)
		waiter := b.arrives(b.t.Context(), one("a"))
		latest := time.Duration(0)
		for range 1000 {
			_, wait := b.told(one("noisy"))
			latest = max(latest, wait)
		}
		if latest > placeEnd {
			b.t.Errorf("with one waiting it is told up to %v", latest)
		}
		if _, wait := b.told(one("quiet")); wait > time.Second+10*time.Millisecond {
			b.t.Errorf("the quiet one is told %v", wait)
		}
		for _, l := range leases {
			complete(l)
		}
		complete(waiter.lease)
	})
}

// Whatever the queue, the pace and the history: nobody is told less than 1 s or more than 50 s (the Node client of
// OpenAI sleeps as long as it is told, Vercel's and litellm ignore 60 s and more), nor more than twice what the queue
// needs to drain, and a crowd is not told the same.
func TestTimesToldAreBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var p places
		var rate pace
		now := time.Now()
		gap := time.Duration(random.Int64N(int64(time.Duration(1) << random.IntN(40))))
		for range random.IntN(20) {
			now = now.Add(gap)
			rate.drained(now)
		}
		waiting, flows := random.IntN(1<<random.IntN(20)), 1+random.IntN(3000)
		drain := float64(placeDefault)
		if rate.samples > 0 {
			drain = float64(max(gap, placeLeast))
		}
		drain *= float64(waiting)
		bound := time.Duration(min(float64(50*time.Second), max(2*drain+1000, float64(placeEnd))))
		told := map[int64]int{}
		const n = 2000
		for range n {
			wait := p.take(now, turn{flow: fmt.Sprint(random.IntN(flows))}, rate.schedule(waiting))
			if wait < time.Second || wait > bound {
				t.Fatalf("%d waiting, one in %v: told %v, want at most %v", waiting, gap, wait, bound)
			}
			told[wait.Milliseconds()]++
		}
		if most := slices.Max(slices.Collect(maps.Values(told))); most > n/100 {
			t.Fatalf("%d waiting, one in %v, %d flows: %d come back together", waiting, gap, flows, most)
		}
	}
}

// 200 rejections of one burst get 200 different moments, spaced as the queue drains up to the end of its schedule, and
// then spread over it.
func TestBurstOfRejectionsIsSpreadAtTheDrainRate(t *testing.T) {
	for _, flows := range []int{1, 200} {
		var s pace
		var p places
		now := time.Now()
		for i := range 50 { // a release every 25 ms
			s.drained(now.Add(time.Duration(i) * 25 * time.Millisecond))
		}
		now = now.Add(2 * time.Second)
		seen := map[int64]bool{}
		for i := range 200 {
			wait := p.take(now, turn{flow: fmt.Sprint(i % flows)}, s.schedule(100))
			want := 2500*time.Millisecond + time.Duration(i)*25*time.Millisecond
			if want <= 5*time.Second && wait != want {
				t.Fatalf("%d flows: place %d is after %v, want %v: behind the 100 who wait", flows, i, wait, want)
			}
			if wait > 5*time.Second {
				t.Fatalf("%d flows: place %d is after %v, and the queue drains in 2.5 s", flows, i, wait)
			}
			seen[wait.Milliseconds()] = true
		}
		if len(seen) < 190 {
			t.Errorf("%d flows: %d different moments", flows, len(seen))
		}
	}
}

func TestPlaces(t *testing.T) {
	now := time.Now()
	a := turn{flow: "a"}
	t.Run("without a sample 10 ms apart, not before 1 s", func(t *testing.T) {
		var s pace
		var p places
		for i := range 10 {
			if got, want := p.take(now, a, s.schedule(3)), time.Second+time.Duration(i)*10*time.Millisecond; got != want {
				t.Errorf("place %d after %v, want %v", i, got, want)
			}
		}
	})
	t.Run("a flow's own, with more flows than have a turn", func(t *testing.T) {
		var s pace
		var p places
		told := map[time.Duration]int{}
		for i := range 2 * mostTurns {
			told[p.take(now, turn{flow: fmt.Sprint(i), own: true}, s.schedule(0))]++
		}
		for wait, n := range told {
			if n > mostTurns+1 { // each of those with a turn has its first place
				t.Errorf("%d come back together, after %v", n, wait)
			}
		}
	})
	t.Run("at least 1 ms apart", func(t *testing.T) {
		var s pace
		var p places
		for i := range 100 {
			s.drained(now.Add(time.Duration(i) * time.Microsecond))
		}
		first := p.take(now, a, s.schedule(0))
		if second := p.take(now, a, s.schedule(0)); second-first != time.Millisecond {
			t.Errorf("%v apart", second-first)
		}
	})
	t.Run("places are taken up again when their time has passed", func(t *testing.T) {
		var s pace
		var p places
		for range 100 {
			p.take(now, a, s.schedule(0))
		}
		if wait := p.take(now.Add(time.Minute), a, s.schedule(0)); wait != time.Second {
			t.Errorf("%v", wait)
		}
	})
	t.Run("never less than 1 s, nor a moment twice, while time goes on", func(t *testing.T) {
		var s pace
		var p places
		told := map[time.Time]bool{}
		for i := range 300 {
			if i == 150 {
				now = now.Add(1400 * time.Millisecond)
			}
			if i >= 200 {
				now = now.Add(700 * time.Millisecond)
			}
			wait := p.take(now, a, s.schedule(0))
			if at := now.Add(wait); wait < time.Second || told[at] {
				t.Fatalf("rejection %d is told %v, the same moment %t", i, wait, told[at])
			}
			told[now.Add(wait)] = true
		}
	})
	t.Run("slots that come free together are one pace", func(t *testing.T) {
		var s pace
		s.waits(now)
		for i := range 4 {
			s.drained(now.Add(time.Duration(i/2+1) * 4 * time.Second)) // two every 4 s
		}
		if s.interval != 2*time.Second {
			t.Errorf("%v", s.interval)
		}
	})
	t.Run("memory is bounded", func(t *testing.T) {
		var s pace
		var p places
		for i := range 10 * mostTurns {
			p.take(now.Add(time.Duration(i)*time.Millisecond), turn{flow: fmt.Sprint(i)}, s.schedule(3))
		}
		if len(p.turns) > mostTurns {
			t.Errorf("%d turns", len(p.turns))
		}
	})
	t.Run("preempted and draining: 1 to 1000 ms", func(t *testing.T) {
		var p places
		low, high := time.Hour, time.Duration(0)
		for range 1000 {
			wait := p.soon()
			low, high = min(low, wait), max(high, wait)
		}
		if low < time.Millisecond || high > time.Second || high-low < 900*time.Millisecond {
			t.Errorf("from %v to %v", low, high)
		}
	})
}
