package dispatch

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

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
			rate.drained(now, 10)
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
			wait := p.take(now, turn{flow: fmt.Sprint(random.IntN(flows))}, rate.schedule(now, waiting, 10))
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
			s.drained(now.Add(time.Duration(i)*25*time.Millisecond), 100)
		}
		now = now.Add(2 * time.Second)
		seen := map[int64]bool{}
		for i := range 200 {
			wait := p.take(now, turn{flow: fmt.Sprint(i % flows)}, s.schedule(now, 100, 100))
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
			if got, want := p.take(now, a, s.schedule(now, 3, 1)), time.Second+time.Duration(i)*10*time.Millisecond; got != want {
				t.Errorf("place %d after %v, want %v", i, got, want)
			}
		}
	})
	t.Run("a flow's own, with more flows than have a turn", func(t *testing.T) {
		var s pace
		var p places
		told := map[time.Duration]int{}
		for i := range 2 * mostTurns {
			told[p.take(now, turn{flow: fmt.Sprint(i), own: true}, s.schedule(now, 0, 1))]++
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
			s.drained(now.Add(time.Duration(i)*time.Microsecond), 1)
		}
		first := p.take(now, a, s.schedule(now, 0, 1))
		if second := p.take(now, a, s.schedule(now, 0, 1)); second-first != time.Millisecond {
			t.Errorf("%v apart", second-first)
		}
	})
	t.Run("places are taken up again when their time has passed", func(t *testing.T) {
		var s pace
		var p places
		for range 100 {
			p.take(now, a, s.schedule(now, 0, 1))
		}
		if wait := p.take(now.Add(time.Minute), a, s.schedule(now, 0, 1)); wait != time.Second {
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
			wait := p.take(now, a, s.schedule(now, 0, 1))
			if at := now.Add(wait); wait < time.Second || told[at] {
				t.Fatalf("rejection %d is told %v, the same moment %t", i, wait, told[at])
			}
			told[now.Add(wait)] = true
		}
	})
	t.Run("slots that come free together are one pace", func(t *testing.T) {
		var s pace
		s.beginWait(now)
		for i := range 4 {
			s.drained(now.Add(time.Duration(i/2+1)*4*time.Second), 2) // two every 4 s
		}
		if got := s.interval(now, 0, 2); got != 2*time.Second {
			t.Errorf("%v", got)
		}
	})
	t.Run("memory is bounded", func(t *testing.T) {
		var s pace
		var p places
		for i := range 10 * mostTurns {
			p.take(now.Add(time.Duration(i)*time.Millisecond), turn{flow: fmt.Sprint(i)}, s.schedule(now, 3, 1))
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

// Flows' names are as long as clients like: what is kept of one is short, and those that begin alike have places of
// their own.
func TestPlacesOfLongNames(t *testing.T) {
	var s pace
	var p places
	now := time.Now()
	long := strings.Repeat("x", 10_000)
	for i := range 20 {
		if wait := p.take(now, turn{flow: long + fmt.Sprint(i), own: true}, s.schedule(now, 0, 1)); wait != time.Second {
			t.Errorf("flow %d has its first place after %v", i, wait)
		}
	}
	for kept := range p.turns {
		if len(kept.flow) > longestTurn {
			t.Fatalf("%d bytes of a name are kept", len(kept.flow))
		}
	}
}
