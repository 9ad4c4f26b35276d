package dispatch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// since returns a time in the form of a pace.
func since(now time.Time) time.Duration { return now.Sub(time.Unix(1_700_000_000, 0)) }

// median returns the median retry time of many rejections at that moment, each of another flow.
func (p *pace) median(now time.Time, waiting, capacity int) time.Duration {
	var told []time.Duration
	var taken clients
	for i := range 101 {
		told = append(told, taken.rejected(now, fmt.Sprint(i), p.schedule(since(now), waiting, capacity)))
	}
	slices.Sort(told)
	return told[50]
}

// engines has slots that take a period each. Within a period, slots end at the times given by ends.
type engines struct {
	slots  int
	period time.Duration
	ends   func(slot int) time.Duration // from 0 to period
}

// together: the slots were taken together, so they end together, within one percent.
func together(slots int, period time.Duration, draw *rand.Rand) engines {
	return engines{slots, period, func(int) time.Duration { return time.Duration(draw.Int64N(int64(period)/100 + 1)) }}
}

// steady: the slots end one by one.
func steady(slots int, period time.Duration) engines {
	return engines{slots, period, func(slot int) time.Duration { return period * time.Duration(slot) / time.Duration(slots) }}
}

// drain drains a queue that never empties through e for some periods, and calls each before and after every release.
func (e engines) drain(p *pace, now time.Time, periods int, each func(now time.Time)) time.Time {
	for range periods {
		var ends []time.Duration
		for slot := range e.slots {
			ends = append(ends, e.ends(slot))
		}
		slices.Sort(ends)
		for _, end := range ends {
			at := now.Add(e.period + end)
			each(at)
			p.drained(since(at), e.slots)
			each(at)
		}
		now = now.Add(e.period)
	}
	return now.Add(e.period)
}

// wanted returns the bounds for the median client's return: between the drain time of the queue and twice that, or
// within the schedule's own limits. The least is 0.7 of the drain time, since some slots that end together have ended.
func wanted(waiting int, e engines) (least, most time.Duration) {
	drain := time.Duration(waiting) * e.period / time.Duration(e.slots)
	return min(max(placeFirst, drain*7/10), placeLast/2), min(max(placeEnd, 3*drain), placeLast)
}

// Whether slots end one by one or together, clients are always told the time at which the queue will have drained: 64
// slots of 10 s drain 1,500 waiters in 234 s, and a client told 1 s comes back 200 times too early.
func TestPaceIsReleasesOverTime(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		slots, waiting := 1+draw.IntN(256), 1+draw.IntN(2000)
		period := time.Duration(100+draw.Int64N(1<<(5+draw.IntN(12)))) * time.Millisecond
		for _, e := range []engines{together(slots, period, draw), steady(slots, period)} {
			var p pace
			now := time.Now()
			p.beginWait(since(now))
			now = e.drain(&p, now, 3, func(time.Time) {})
			least, most := wanted(waiting, e)
			check := func(now time.Time) {
				t.Helper()
				if got := p.median(now, waiting, slots); got < least || got > most {
					t.Fatalf("%d slots of %v, %d waiting: the median is told %v, want %v to %v", slots, period, waiting, got, least, most)
				}
			}
			n := 0
			e.drain(&p, now.Add(-period), 2, func(now time.Time) {
				if n++; n%(slots/4+1) == 0 {
					check(now)
				}
			})
		}
	}
}

// Idle time does not count as draining. Once requests are released again, the time before counts little.
func TestPaceAfterIdleness(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for _, e := range []engines{together(64, 10*time.Second, draw), steady(64, 10*time.Second)} {
		var p pace
		now := time.Now()
		p.beginWait(since(now))
		now = e.drain(&p, now, 10, func(time.Time) {}).Add(8 * time.Hour)
		p.beginWait(since(now))
		if got := p.median(now, 100, 64); got < 10*time.Second || got > 32*time.Second {
			t.Errorf("after the night 100 waiters, which drained in 15.6 s the day before, are told %v", got)
		}
		// Now requests take a tenth of the time.
		quick := engines{64, time.Second, e.ends}
		if e.ends(63) > time.Second {
			quick = steady(64, time.Second)
		}
		now = quick.drain(&p, now, 2, func(time.Time) {})
		if got := p.median(now.Add(-time.Second), 1000, 64); got < 14*time.Second || got > 50*time.Second {
			t.Errorf("1,000 waiters that drain in 15.6 s now are told %v", got)
		}
		if got := p.interval(since(now.Add(-time.Second)), 1000, 64); got > 80*time.Millisecond {
			t.Errorf("64 a second are released now, and the interval is %v", got)
		}
	}
}

// Added or removed slots, by a reload or with their endpoints, change the pace at once.
func TestPaceAfterAChangeOfSlots(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for _, e := range []engines{together(64, 10*time.Second, draw), steady(64, 10*time.Second)} {
		var p pace
		now := time.Now()
		p.beginWait(since(now))
		now = e.drain(&p, now, 5, func(time.Time) {}).Add(-10 * time.Second)
		for _, c := range []struct {
			slots   int
			of      time.Duration
			waiting int
		}{{64, 156 * time.Millisecond, 100}, {4, 2500 * time.Millisecond, 8}, {640, 15 * time.Millisecond, 1000}, {0, 10 * time.Second, 1}} {
			if got := p.interval(since(now), c.waiting, c.slots); got < c.of*9/10 || got > c.of*12/10 {
				t.Errorf("with %d slots of 10 s one is released in %v, want %v", c.slots, got, c.of)
			}
		}
		// And it stays right.
		less := engines{4, 10 * time.Second, e.ends}
		less.drain(&p, now, 3, func(now time.Time) {
			if got := p.interval(since(now), 8, 4); got < 2*time.Second || got > 4*time.Second {
				t.Errorf("with 4 slots of 10 s one is released in %v, want 2.5 s", got)
			}
		})
	}
}

// Engines without releases are noticed before the next release: each slot is held at least that long.
func TestPaceOfAStall(t *testing.T) {
	var p pace
	now := time.Now()
	p.beginWait(since(now))
	now = steady(10, time.Second).drain(&p, now, 30, func(time.Time) {}).Add(-time.Second)
	for _, c := range []struct{ after, want time.Duration }{
		{0, 100 * time.Millisecond}, {900 * time.Millisecond, 100 * time.Millisecond}, {time.Minute, 6 * time.Second}, {time.Hour, placeLast},
	} {
		if got := p.interval(since(now.Add(c.after)), 5, 10); got < c.want*9/10 || got > c.want*11/10 {
			t.Errorf("%v after the last release: one in %v, want %v", c.after, got, c.want)
		}
		if got := p.interval(since(now.Add(c.after)), 0, 10); got > 110*time.Millisecond {
			t.Errorf("%v after the last release, with nobody waiting: one in %v", c.after, got)
		}
	}
}

// Nothing overflows for any times and capacities, including clocks that go back.
func TestPaceHasBounds(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var p pace
		now := time.Now()
		for range draw.IntN(50) {
			now = now.Add(time.Duration(draw.Int64N(1<<draw.IntN(62))) - time.Second)
			switch draw.IntN(3) {
			case 0:
				p.beginWait(since(now))
			default:
				p.drained(since(now), draw.IntN(1<<draw.IntN(40))-1)
			}
			waiting, capacity := draw.IntN(1<<draw.IntN(40)), draw.IntN(1<<draw.IntN(40))-1
			if s := p.schedule(since(now), waiting, capacity); s.step < placeLeast || s.step > placeLast || s.first < placeFirst ||
				s.first >= s.last || s.last > placeLast {
				t.Fatalf("%+v", s)
			}
		}
	}
}
