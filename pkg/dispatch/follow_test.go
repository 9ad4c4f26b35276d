package dispatch_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// mostInside returns the largest number of requests that may wait inside an engine with a right bound.
func mostInside(bound int) float64 { return max(2, float64(bound)/16) }

// inside advances time, and returns the mean number of requests waiting inside an engine, over its scrapes.
func (p *plant) inside(i int, d time.Duration) float64 {
	sum, n := 0, 0
	p.watch = func() { sum += p.engines[i].load.Waiting; n++ }
	p.run(d)
	p.watch = func() {}
	return float64(sum) / float64(n)
}

// wantBound checks that a bound fits an engine with this many slots: no less, and at most an eighth more. More can be
// right: if a step ends many requests, their successors are on their way during the next step.
func (p *plant) wantBound(what string, r, i, slots int) {
	p.Helper()
	if b := p.bound(r, i); b < slots || b > slots+max(2, slots/8) {
		p.Errorf("%s: the bound is %d, and the engine has %d slots", what, b, slots)
	}
}

// The bound of an engine is found within 30 s, for answers of any length. Then almost no requests wait inside, and the
// engine's throughput is that of the best fixed bound.
func TestBoundFollowsItsEngine(t *testing.T) {
	for _, slots := range []int{8, 16, 64, 256} {
		for _, answers := range []struct {
			name        string
			least, most int
		}{{"short", 30, 30}, {"middling", 150, 250}, {"long", 2000, 2000}, {"mixed", 30, 2000}} {
			t.Run(fmt.Sprintf("%d slots, %s answers", slots, answers.name), func(t *testing.T) {
				loaded := func(fixed int) *plant {
					p := newPlant(t, 1, fixed, slotsOf(slots))
					p.size = func(lot *rand.Rand) (int, int) {
						return 100 + lot.IntN(200), answers.least + lot.IntN(answers.most-answers.least+1)
					}
					p.clients(p.weirs[0], "a", 700, time.Hour)
					return p
				}
				p := loaded(0)
				p.run(30 * time.Second)
				p.wantBound("after 30 s", 0, 0, slots)
				p.run(4 * time.Minute) // the first long answers end only now
				rate := p.rate(3 * time.Minute)
				if n := p.inside(0, time.Minute); n > mostInside(slots) {
					t.Errorf("%.1f wait inside", n)
				}
				least := slots
				p.watch = func() { least = min(least, p.bound(0, 0)) }
				p.run(time.Minute)
				p.wantBound("after 9 min", 0, 0, slots)
				if least < slots {
					t.Errorf("the bound was %d for a time", least)
				}
				best := 0.0
				for _, fixed := range []int{slots, slots + slots/8, slots + slots/4} {
					q := loaded(fixed)
					q.run(270 * time.Second)
					best = max(best, q.rate(3*time.Minute))
				}
				if rate < .98*best {
					t.Errorf("%.0f tokens/s, and %.0f with the best fixed bound", rate, best)
				}
			})
		}
	}
}

// Answers of one token end with the step that they begin with, so the engine's gauge of running requests is always 0. Its
// steps are full all the same.
func TestAnswersOfOneToken(t *testing.T) {
	loaded := func(fixed int) *plant {
		p := newPlant(t, 1, fixed, slotsOf(64))
		p.size = func(lot *rand.Rand) (int, int) { return 100 + lot.IntN(200), 1 }
		p.clients(p.weirs[0], "a", 700, time.Hour)
		p.run(30 * time.Second)
		return p
	}
	p := loaded(0)
	least := p.bound(0, 0)
	p.watch = func() { least = min(least, p.bound(0, 0)) }
	rate := p.rate(2 * time.Minute)
	best := 0.0
	for _, fixed := range []int{64, 72, 80} {
		best = max(best, loaded(fixed).rate(2*time.Minute))
	}
	if least < 64 || rate < .98*best {
		t.Errorf("a bound of %d for a time, %.1f tokens/s, and %.1f with the best fixed one", least, rate, best)
	}
	if n := p.inside(0, time.Minute); n > mostInside(64) {
		t.Errorf("%.1f wait inside", n)
	}
}

// Engines of one pool each get their own bound.
func TestUnequalEngines(t *testing.T) {
	p := newPlant(t, 1, 0, slotsOf(16), slotsOf(64), slotsOf(256))
	p.clients(p.weirs[0], "a", 900, time.Hour)
	p.run(90 * time.Second)
	for i, u := range p.engines {
		p.wantBound("an engine of three", 0, i, u.cfg.Slots)
	}
}

// An engine that falls to 16 slots takes nothing from the other one, which stays full.
func TestOneOfTwoFalls(t *testing.T) {
	p := newPlant(t, 1, 0, slotsOf(64), slotsOf(64))
	p.clients(p.weirs[0], "a", 400, time.Hour)
	p.run(40 * time.Second)
	p.engines[0].cfg.Slots = 16
	p.restart(0)
	least := 64
	p.watch = func() { least = min(least, p.engines[1].Load().Running) }
	p.run(30 * time.Second)
	p.wantBound("the one that fell", 0, 0, 16)
	p.wantBound("the other", 0, 1, 64)
	if least < 63 {
		t.Errorf("the other one ran %d of 64", least)
	}
}

// An engine that restarts with more slots gets them, and one that restarts as it was keeps its bound.
func TestRestartedEngine(t *testing.T) {
	p := newPlant(t, 1, 0, slotsOf(16))
	p.clients(p.weirs[0], "a", 400, time.Hour)
	p.run(60 * time.Second)
	p.restart(0)
	p.run(5 * time.Second)
	p.wantBound("as it was", 0, 0, 16)
	p.engines[0].cfg.Slots = 128
	p.restart(0)
	p.run(30 * time.Second)
	p.wantBound("with more slots", 0, 0, 128)
}

// If prompts fill the engine's memory before its slots, the bound is the number that fits, and the engine's throughput
// is that of the best fixed bound.
func TestMemoryBeforeSlots(t *testing.T) {
	cfg := slotsOf(256)
	cfg.Blocks = 100_000 / cfg.BlockSize // about 40 requests
	long := func(lot *rand.Rand) (int, int) { return 2000 + lot.IntN(400), 100 + lot.IntN(200) }
	rateOf := func(fixed int) (*plant, float64) {
		p := newPlant(t, 1, fixed, cfg)
		p.size = long
		p.clients(p.weirs[0], "a", 300, time.Hour)
		p.run(60 * time.Second)
		return p, p.rate(2 * time.Minute)
	}
	p, rate := rateOf(0)
	before := p.engines[0].Load().Preemptions
	n := p.inside(0, time.Minute)
	if bound := p.bound(0, 0); n > mostInside(bound) || bound > 60 {
		t.Errorf("a bound of %d, %.1f wait inside", bound, n)
	}
	if n := p.engines[0].Load().Preemptions - before; n > 12 {
		t.Errorf("%d preemptions in a minute", n)
	}
	best := 0.0
	for _, fixed := range []int{30, 40, 45, 50, 64} {
		_, r := rateOf(fixed)
		best = max(best, r)
	}
	if rate < .98*best {
		t.Errorf("%.0f tokens/s, and %.0f with the best fixed bound", rate, best)
	}
}

// Long prompts are read one after the other, and those behind very long ones wait inside the engine although it has
// slots. From the first minute on its throughput is that of the best fixed bound, and the bound ends at its slots.
func TestLongPrompts(t *testing.T) {
	loaded := func(fixed int) *plant {
		cfg := slotsOf(64)
		cfg.Blocks = 3_000_000 / cfg.BlockSize
		p, n := newPlant(t, 1, fixed, cfg), 0
		p.size = func(*rand.Rand) (prompt, output int) { // the same for each bound
			if n++; n%40 == 0 {
				return 100_000, 1000
			}
			return 2000 + n*7919%8000, 1000
		}
		p.clients(p.weirs[0], "a", 200, time.Hour)
		return p
	}
	p, best := loaded(0), 0.0
	least := p.bound(0, 0)
	p.watch = func() { least = min(least, p.bound(0, 0)) }
	rate := p.rate(5 * time.Minute)
	for _, fixed := range []int{48, 64, 72, 80} {
		r := loaded(fixed).rate(5 * time.Minute)
		best = max(best, r)
	}
	if rate < .98*best {
		t.Errorf("%.0f tokens/s with bounds down to %d, and %.0f with the best fixed bound", rate, least, best)
	}
	p.run(5 * time.Minute)
	if n := p.inside(0, 5*time.Minute); n > mostInside(64) {
		t.Errorf("a bound of %d, %.1f wait inside", p.bound(0, 0), n)
	}
	p.wantBound("after 15 min", 0, 0, 64)
}

// A hung engine gets no larger bound, even when its clients give up.
func TestHungEngine(t *testing.T) {
	p := newPlant(t, 1, 0, slotsOf(64), slotsOf(64))
	p.clients(p.weirs[0], "a", 300, time.Hour)
	p.run(20 * time.Second)
	before := p.bound(0, 0)
	u := p.engines[0]
	u.hung = true
	p.run(30 * time.Second)
	if b := p.bound(0, 0); b > before {
		t.Errorf("the bound grew from %d to %d", before, b)
	}
	for range 20 {
		for id, v := range u.visits { // one of them; the engine does not notice
			delete(u.visits, id)
			p.answered(v)
			break
		}
		p.run(time.Second)
	}
	if b := p.bound(0, 0); b > before {
		t.Errorf("the bound grew from %d to %d while clients gave up", before, b)
	}
	p.wantBound("the other one", 0, 1, 64)
}

// Hours with hardly any requests do not change the bound.
func TestIdleHours(t *testing.T) {
	p := newPlant(t, 1, 0, slotsOf(16), slotsOf(256))
	p.clients(p.weirs[0], "a", 600, time.Minute)
	p.run(3 * time.Minute)
	small, large := p.bound(0, 0), p.bound(0, 1)
	p.clients(p.weirs[0], "b", 3, 5*time.Hour)
	p.run(5 * time.Hour)
	if a, b := p.bound(0, 0), p.bound(0, 1); a != small || b != large {
		t.Errorf("%d and %d became %d and %d", small, large, a, b)
	}
}

// Two replicas that know each other only by the engine's metrics share the engine, and keep it as full as one replica
// would.
func TestTwoReplicas(t *testing.T) {
	p := newPlant(t, 2, 0, slotsOf(64))
	p.clients(p.weirs[0], "a", 200, time.Hour)
	p.run(20 * time.Second)
	p.clients(p.weirs[1], "b", 200, time.Hour)
	p.run(40 * time.Second)
	n := p.inside(0, time.Minute)
	rate := p.rate(time.Minute)
	one := newPlant(t, 1, 0, slotsOf(64))
	one.clients(one.weirs[0], "a", 200, time.Hour)
	one.run(time.Minute)
	if alone := one.rate(time.Minute); rate < .98*alone {
		t.Errorf("%.0f tokens/s, and %.0f with one", rate, alone)
	}
	a, b := p.weirs[0].board.Stock(0), p.weirs[1].board.Stock(0)
	if n > mostInside(64) || min(a, b) < 24 {
		t.Errorf("%.1f wait inside; one has %d requests, the other %d", n, a, b)
	}
}

// Foreign requests take slots, and return them.
func TestStrangers(t *testing.T) {
	p := newPlant(t, 1, 0, slotsOf(64))
	p.clients(p.weirs[0], "a", 200, time.Hour)
	p.run(20 * time.Second)
	p.strangers(0, 20, time.Minute)
	p.run(30 * time.Second)
	if n := p.inside(0, 20*time.Second); n > mostInside(64) {
		t.Errorf("%.1f wait inside", n)
	}
	p.run(time.Minute)
	if n := p.weirs[0].board.Stock(0); n < 64 {
		t.Errorf("%d requests at an engine of 64 slots that is ours alone again", n)
	}
}

// Without metrics the bound stays: the learned one, or the default of an unknown backend.
func TestMetricsStop(t *testing.T) {
	p := newPlant(t, 1, 0, slotsOf(16), slotsOf(16))
	p.engines[1].mute = true
	p.clients(p.weirs[0], "a", 300, time.Hour)
	p.run(30 * time.Second)
	before := p.bound(0, 0)
	p.engines[0].mute = true
	p.run(10 * time.Minute)
	if a, b := p.bound(0, 0), p.bound(0, 1); a != before || b != 64 {
		t.Errorf("bounds %d, which was %d, and %d", a, before, b)
	}
	p.engines[0].mute, p.engines[1].mute = false, false
	p.run(time.Minute)
	p.wantBound("read again", 0, 0, 16)
	p.wantBound("read at last", 0, 1, 16)
}
