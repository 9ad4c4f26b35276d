package dispatch

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-epp/weir/pkg/quota"
)

// Two tokens a second, and five at once after a pause: the sixth request comes back when the next token does.
func TestLimiter(t *testing.T) {
	c := &LimiterConfig{Rate: 2_000_000, Burst: 5}
	var l limiter
	at := func(d time.Duration) time.Time { return epoch.Add(d) }
	for i := range 5 {
		if wait := l.take(at(0), c); wait != 0 {
			t.Fatalf("request %d waits %v", i, wait)
		}
	}
	for _, step := range []struct{ at, wait time.Duration }{
		{0, 500 * time.Millisecond},
		{0, 500 * time.Millisecond},
		{400 * time.Millisecond, 100 * time.Millisecond},
		{500 * time.Millisecond, 0},
		{500 * time.Millisecond, 500 * time.Millisecond},
		{1500 * time.Millisecond, 0},
		{1500 * time.Millisecond, 0},
		{1500 * time.Millisecond, 500 * time.Millisecond},
	} {
		if wait := l.take(at(step.at), c); wait != step.wait {
			t.Fatalf("after %v: wait %v, want %v", step.at, wait, step.wait)
		}
	}
	for i := range 6 {
		if wait := l.take(at(time.Hour), c); (wait != 0) != (i == 5) {
			t.Fatalf("after an hour, request %d waits %v", i, wait)
		}
	}
}

// In any time d at most burst + rate · d requests pass, and a request is rejected only if that many have passed. Its
// stated retry time is the first at which it passes.
func TestLimiterAgainstACount(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		c := &LimiterConfig{Rate: 1_000_000 * (1 + rng.Int64N(50)), Burst: 1 + rng.IntN(20)}
		var l limiter
		var passed []time.Time
		now := epoch
		for range 500 {
			now = now.Add(time.Duration(rng.ExpFloat64() * float64(40*time.Millisecond)))
			room := true // by every interval that ends now
			for i, from := range passed {
				if most := float64(c.Burst) + float64(c.Rate)/1e6*now.Sub(from).Seconds(); float64(len(passed)-i+1) > most+1e-6 {
					room = false
				}
			}
			before := l
			wait := l.take(now, c)
			if (wait == 0) != room {
				t.Fatalf("seed %d: wait %v, room %v", seed, wait, room)
			}
			if wait == 0 {
				passed = append(passed, now)
				continue
			}
			early, late := before, before
			if early.take(now.Add(wait-1), c) == 0 || late.take(now.Add(wait), c) != 0 {
				t.Fatalf("seed %d: the time %v is wrong", seed, wait)
			}
		}
	}
}

// Without queueing the limiter sheds requests above the rate, and gives each client the time of its own token. With
// queueing, and for requests without inference, it has no effect. Shed requests use no quota.
func TestLimiterWithoutQueueing(t *testing.T) {
	limits := func(c *Config) { c.Enabled, c.Limiter = false, LimiterConfig{Rate: 1_000_000, Burst: 3} }
	b := newBench(t, []int{1}, func(c *Config) {
		limits(c)
		c.Quotas.Tenants = map[string]quota.Limit{"ada": {Tokens: 100, Window: time.Minute}}
	})
	for range 3 {
		b.arrives(0, "a", "", StageSent)
	}
	var last time.Duration
	for i := range 5 {
		w := b.arrives(i%3, "a", "", StageEnded)
		if w.Outcome() != OutcomeShed || w.RetryAfter() < time.Second || w.RetryAfter() > 50*time.Second || w.RetryAfter() == last {
			t.Errorf("%v, come back in %v", w.Outcome(), w.RetryAfter())
		}
		last = w.RetryAfter()
	}
	b.uses(0, "ada", 100, StageEnded)
	pass := new(Waiter)
	b.event(func() { b.PassOn(b.clock, pass, Arrival{Flow: "a", Placement: reach("")}) })
	b.want(pass, StageSent)
	b.clock = b.clock.Add(time.Second)
	b.uses(0, "ada", 100, StageSent)
	b.enable(true)
	b.arrives(0, "a", "", StageWaiting)
	b.enable(false) // releases it, without a token
	b.arrives(0, "a", "", StageEnded)
	b.clock = b.clock.Add(time.Second)
	b.arrives(0, "a", "", StageSent)
	if n := b.State().Panics; n != 0 {
		t.Errorf("%d panics", n)
	}
}

// A reload keeps the number of missing tokens, not their time at the old rate. With a smaller burst, at most the burst
// is missing. A limiter that was off starts with a full bucket.
func TestLimiterReload(t *testing.T) {
	x := newBench(t, []int{1}, func(c *Config) { c.Enabled, c.Limiter = false, LimiterConfig{Rate: 1_000, Burst: 100} })
	takes := func(most int) {
		t.Helper()
		for range most {
			x.arrives(0, "a", "", StageSent)
		}
		x.arrives(0, "a", "", StageEnded)
	}
	configure := func(c LimiterConfig) {
		t.Helper()
		cfg := x.Config()
		cfg.Limiter = c
		var err error
		if x.event(func() { err = x.Configure(x.clock, cfg) }); err != nil {
			t.Fatal(err)
		}
	}
	takes(100)
	configure(LimiterConfig{Rate: 100_000_000, Burst: 100}) // 100 a second
	takes(0)
	x.clock = x.clock.Add(200 * time.Millisecond)
	takes(20)
	configure(LimiterConfig{Rate: 100_000_000, Burst: 10})
	x.clock = x.clock.Add(time.Second / 10)
	takes(10)
	configure(LimiterConfig{Burst: 1})
	configure(LimiterConfig{Rate: 1_000, Burst: 5})
	takes(5)
}
