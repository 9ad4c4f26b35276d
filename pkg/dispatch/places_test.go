package dispatch

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// clients are the retry places of one pool, with each flow's last one.
type clients struct {
	places
	told map[string]*time.Time
}

// rejected returns the retry time given to a client of a flow.
func (c *clients) rejected(now time.Time, flow string, s schedule) time.Duration {
	return c.take(now, c.flow(flow), s)
}

func (c *clients) flow(name string) *time.Time {
	if c.told == nil {
		c.told = map[string]*time.Time{}
	}
	if c.told[name] == nil {
		c.told[name] = new(time.Time)
	}
	return c.told[name]
}

// For any queue, pace and history, clients are told 1 s to 50 s (OpenAI's Node client sleeps for the whole time,
// Vercel's and litellm ignore 60 s and more), at most twice the drain time of the queue, and different times in a
// crowd.
func TestTimesToldAreBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var c clients
		var rate pace
		now := time.Now()
		gap := time.Duration(random.Int64N(int64(time.Duration(1) << random.IntN(40))))
		for range random.IntN(20) {
			now = now.Add(gap)
			rate.drained(since(now), 10)
		}
		waiting, flows := random.IntN(1<<random.IntN(20)), 1+random.IntN(3000)
		drain := float64(placeDefault)
		if rate.released > 0 {
			drain = float64(max(gap, placeLeast)) * 1.001 // times are rounded
		}
		drain *= float64(waiting)
		bound := time.Duration(min(float64(50*time.Second), max(2*drain+1000, float64(placeEnd))))
		told := map[int64]int{}
		const n = 2000
		for range n {
			wait := c.rejected(now, fmt.Sprint(random.IntN(flows)), rate.schedule(since(now), waiting, 10))
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

// A crowd of 1,000 clients rejected at one moment comes back one by one, at most a few within the same 10 ms, and none
// before the queue has drained: for every reason, one flow or many, and a known or unknown rate.
func TestACrowdComesBackOneByOne(t *testing.T) {
	now := time.Now()
	var steady pace
	for i := range 100 {
		steady.drained(since(now.Add(time.Duration(i-100)*20*time.Millisecond)), 10)
	}
	for name, c := range map[string]struct {
		rate    pace
		waiting int
		drain   time.Duration
	}{
		"unknown rate":         {pace{}, 100, time.Second},
		"one released in 20ms": {steady, 100, 2 * time.Second},
		"nothing waits":        {steady, 0, time.Second},
		"a long queue":         {steady, 2000, 25 * time.Second},
	} {
		for _, flows := range []int{1, 30, 1000} {
			for reason, told := range map[string]func(c *clients, flow string, s schedule) time.Duration{
				"queue-full": func(c *clients, flow string, s schedule) time.Duration { return c.rejected(now, flow, s) },
				"flow-full":  func(c *clients, _ string, s schedule) time.Duration { return c.takeOwn(now, s) },
				"no-memory":  func(c *clients, _ string, s schedule) time.Duration { return c.spread(s) },
			} {
				var crowd clients
				slots, same := map[time.Duration]int{}, map[int64]int{}
				for i := range 1000 {
					wait := told(&crowd, fmt.Sprint(i%flows), c.rate.schedule(since(now), c.waiting, 10))
					if wait < c.drain {
						t.Fatalf("%s, %s, %d flows: told %v, and the queue drains in %v", reason, name, flows, wait, c.drain)
					}
					slots[wait/(10*time.Millisecond)]++
					same[wait.Milliseconds()]++
				}
				if most := slices.Max(slices.Collect(maps.Values(slots))); most > 6 {
					t.Errorf("%s, %s, %d flows: %d come back within 10 ms", reason, name, flows, most)
				}
				if len(same) < 950 {
					t.Errorf("%s, %s, %d flows: 1,000 clients come back at %d moments", reason, name, flows, len(same))
				}
			}
		}
	}
	for reason, told := range map[string]func(*places) time.Duration{"preempted": (*places).soon, "no-endpoint": (*places).later} {
		var p places
		slots := map[time.Duration]int{} // 100 of 10 ms
		for range 1000 {
			slots[told(&p)/(10*time.Millisecond)]++
		}
		if most := slices.Max(slices.Collect(maps.Values(slots))); most > 13 || len(slots) < 100 {
			t.Errorf("%s: of 1,000 that come back within a second, %d come within 10 ms", reason, most)
		}
	}
}

// 200 rejections of one burst get 200 different moments between the queue's drain time and twice that. Moments of
// different flows are spaced at the drain rate.
func TestBurstOfRejectionsIsSpreadAtTheDrainRate(t *testing.T) {
	for _, flows := range []int{1, 200} {
		var s pace
		var c clients
		now := time.Now()
		for i := range 50 { // a release every 25 ms
			s.drained(since(now.Add(time.Duration(i)*25*time.Millisecond)), 100)
		}
		now = now.Add(2 * time.Second)
		seen := map[int64]bool{}
		for i := range 200 {
			wait := c.rejected(now, fmt.Sprint(i%flows), s.schedule(since(now), 100, 100))
			want := 2500*time.Millisecond + time.Duration(i)*25*time.Millisecond
			if (i == 0 || flows > 1 && want <= 5*time.Second) && wait != want {
				t.Fatalf("%d flows: place %d is after %v, want %v: behind the 100 who wait", flows, i, wait, want)
			}
			if wait < 2500*time.Millisecond || wait > 5*time.Second {
				t.Fatalf("%d flows: place %d is after %v, and the queue drains in 2.5 s", flows, i, wait)
			}
			seen[wait.Milliseconds()] = true
		}
		if len(seen) < 190 {
			t.Errorf("%d flows: %d different moments", flows, len(seen))
		}
	}
}

// However often a flow is rejected, or comes back early, another flow's first rejection is told the drain time, or one
// place later.
func TestNoFlowPushesBackAnother(t *testing.T) {
	for _, own := range []bool{false, true} { // for lack of room in the queue, and because it is full itself
		var s pace
		var c clients
		now := time.Now()
		for range 3000 {
			now = now.Add(7 * time.Millisecond)
			if own {
				c.takeOwn(now, s.schedule(since(now), 300, 1)) // 3 s
			} else {
				c.rejected(now, "noisy", s.schedule(since(now), 300, 1))
			}
		}
		if wait := c.rejected(now, "quiet", s.schedule(since(now), 300, 1)); wait < 3*time.Second || wait > 3010*time.Millisecond {
			t.Errorf("told %v", wait)
		}
	}
}

func TestPlaces(t *testing.T) {
	now := time.Now()
	t.Run("without a sample 10 ms apart, not before 1 s", func(t *testing.T) {
		var s pace
		var c clients
		for i := range 10 {
			if got, want := c.rejected(now, fmt.Sprint(i), s.schedule(since(now), 3, 1)), time.Second+time.Duration(i)*10*time.Millisecond; got != want {
				t.Errorf("place %d after %v, want %v", i, got, want)
			}
		}
	})
	t.Run("at least 1 ms apart", func(t *testing.T) {
		var s pace
		var c clients
		for i := range 100 {
			s.drained(since(now.Add(time.Duration(i)*time.Microsecond)), 1)
		}
		first := c.rejected(now, "a", s.schedule(since(now), 0, 1))
		if second := c.rejected(now, "b", s.schedule(since(now), 0, 1)); second-first != time.Millisecond {
			t.Errorf("%v apart", second-first)
		}
	})
	t.Run("places are taken up again when their time has passed", func(t *testing.T) {
		var s pace
		var c clients
		for i := range 100 {
			c.rejected(now, fmt.Sprint(i%7), s.schedule(since(now), 0, 1))
		}
		for _, flow := range []string{"0", "9"} {
			if wait := c.rejected(now.Add(time.Minute), flow, s.schedule(since(now), 0, 1)); wait > time.Second+placeDefault {
				t.Errorf("flow %s is told %v", flow, wait)
			}
		}
	})
	t.Run("never less than 1 s, nor a moment twice, while time goes on", func(t *testing.T) {
		var s pace
		var c clients
		told := map[time.Time]bool{}
		for i := range 300 {
			if i == 150 {
				now = now.Add(1400 * time.Millisecond)
			}
			if i >= 200 {
				now = now.Add(700 * time.Millisecond)
			}
			wait := c.rejected(now, "a", s.schedule(since(now), 0, 1))
			if at := now.Add(wait); wait < time.Second || told[at] {
				t.Fatalf("rejection %d is told %v, the same moment %t", i, wait, told[at])
			}
			told[now.Add(wait)] = true
		}
	})
	t.Run("slots that come free together are one pace", func(t *testing.T) {
		var s pace
		s.beginWait(since(now))
		for i := range 4 {
			s.drained(since(now.Add(time.Duration(i/2+1)*4*time.Second)), 2) // two every 4 s
		}
		if got := s.interval(since(now), 0, 2); got != 2*time.Second {
			t.Errorf("%v", got)
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
