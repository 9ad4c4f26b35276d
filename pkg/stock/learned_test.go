package stock

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// told is a report, and whether a request for that backend waits.
type told struct {
	Report
	Wanted bool
}

func (r told) wanted() bool { return r.Wanted }

// The rule, one report per line, a second apart.
func TestLearned(t *testing.T) {
	full := func(held int) told { return told{Report{Held: held}, true} }
	says := func(r told, running, waiting int, counters ...int64) told {
		r.Running, r.Waiting = running, waiting
		if len(counters) > 0 {
			r.Produced = counters[0]
		}
		if len(counters) > 1 {
			r.Preemptions = counters[1]
		}
		return r
	}
	type step struct {
		told
		want int
	}
	again := func(n int, r told, want int) []step { return slices.Repeat([]step{{r, want}}, n) }
	for name, steps := range map[string][]step{
		"two that wait for nine seconds": slices.Concat(
			again(9, says(full(64), 16, 48), 64), []step{{says(full(64), 16, 48), 17}, {says(full(64), 16, 47), 17}},
		),
		"two reports of an engine that is as fast as ever": {
			{says(full(64), 16, 48, 1600), 64}, {says(full(64), 16, 48, 3200), 17},
		},
		"one that is nearly so": {{says(full(64), 16, 48, 1600), 64}, {says(full(64), 17, 47, 3300), 64}, {says(full(64), 17, 47, 4440), 18}},
		"one that was faster":   {{says(full(64), 16, 0, 1600), 64}, {says(full(64), 16, 48, 3200), 64}, {says(full(64), 16, 48, 4250), 64}},
		"one that is slow":      {{says(full(64), 16, 48, 100), 64}, {says(full(64), 16, 48, 259), 64}, {says(full(64), 16, 48, 419), 17}},
		"one that is fast, while more run": {
			{says(full(64), 16, 48, 1600), 64}, {says(full(64), 17, 47, 3300), 64}, {says(full(64), 18, 46, 5100), 64},
		},
		"a pace is that of an engine since its start": {
			{says(full(20), 16, 0, 1600), 64},
			{says(full(20), 16, 0, 3200), 64},
			{says(full(64), 16, 48, 10), 64},
			{says(full(64), 16, 48, 330), 17},
		},
		"those that have ended had tokens, too": {
			{says(full(20), 64, 0, 1), 64},
			{says(full(20), 1, 0, 3201), 64},
			{says(full(64), 16, 48, 4801), 64},
			{says(full(64), 16, 48, 6401), 17},
		},
		"tokens beyond all measure": {{says(full(64), 16, 48, 1), 64}, {says(full(64), 16, 48, 1<<50), 17}},
		"one that waits is none":    again(20, says(full(64), 63, 1), 64),
		"it comes and goes": slices.Concat(
			again(9, says(full(64), 16, 48), 64), again(1, says(full(64), 64, 0), 64), again(9, says(full(64), 16, 48), 64),
		),
		"an engine that still reads prompts": slices.Concat(
			again(9, says(full(64), 4, 60), 64), again(9, says(full(64), 5, 59), 64), again(5, says(full(64), 9, 55), 64),
			again(4, says(full(64), 7, 55), 64), again(1, says(full(64), 7, 57), 10),
		),
		"never less than what it has run": slices.Concat(
			again(9, says(full(25), 16, 9), 64), again(5, says(full(21), 12, 9), 17), again(1, says(full(17), 16, 1), 17),
			again(9, says(full(21), 12, 9), 17), again(1, says(full(21), 12, 9), 13),
		),
		"also where others fill it": slices.Concat(again(9, says(full(9), 0, 9), 64), again(1, says(full(9), 0, 9), 1)),
		"a step that has ended some": slices.Concat(
			again(9, says(full(64), 16, 48), 64), []step{{says(full(64), 13, 48), 17}, {says(full(19), 14, 3), 17}},
		),
		"a step that has ended all": slices.Concat(again(9, says(full(64), 0, 48), 64), again(1, says(full(64), 0, 48), 17)),
		"some are on their way": slices.Concat(
			again(9, says(full(64), 16, 9), 64), []step{{says(full(64), 16, 9), 56}, {says(full(56), 16, 9), 48}},
		),
		"more than the engine tells of": slices.Concat(again(9, says(full(3), 16, 9), 64), again(1, says(full(3), 16, 9), 17)),
		"it shrinks where nobody waits here": slices.Concat(
			again(9, says(told{Report{Held: 30}, false}, 16, 14), 64), again(1, says(told{Report{Held: 30}, false}, 16, 14), 17),
		),
		"a quarter more, then one": {{says(full(64), 64, 0, 1), 64}, {says(full(64), 64, 0, 99), 80}, {says(full(80), 70, 10, 200), 80}, {says(full(80), 70, 10, 300), 71}, {says(full(71), 70, 1, 400), 71}, {says(full(71), 70, 0, 500), 71}, {says(full(71), 70, 0, 600), 72}},
		"growth is taken back at once, and no more": slices.Concat(
			[]step{{says(full(64), 64, 0, 1), 64}, {says(full(64), 64, 0, 99), 80}, {says(full(80), 20, 60, 200), 80}},
			again(8, says(full(80), 20, 60, 300), 64), again(1, says(full(64), 20, 44, 400), 21),
		),
		"two steps of growth are taken back together": {
			{says(full(64), 64, 0, 1), 64},
			{says(full(64), 64, 0, 99), 80},
			{says(full(80), 80, 0, 299), 100},
			{says(full(100), 20, 80, 399), 100},
			{says(full(100), 20, 80, 499), 64},
		},
		"not while more run": {
			{says(full(64), 64, 0, 1), 64},
			{says(full(64), 64, 0, 99), 80},
			{says(full(80), 20, 60, 199), 80},
			{says(full(80), 21, 59, 299), 80},
			{says(full(80), 21, 59, 399), 64},
		},
		"growth that has stood stays": slices.Concat(
			[]step{{says(full(64), 64, 0, 1), 64}, {says(full(64), 64, 0, 99), 80}}, again(8, says(full(70), 70, 0, 199), 80),
			again(9, says(full(80), 20, 60, 300), 80), again(1, says(full(80), 20, 60, 300), 21),
		),
		"not while every other report has some waiting": slices.Concat(again(9, says(full(64), 8, 56, 99), 64), []step{
			{says(full(64), 8, 56, 199), 9},
			{says(full(9), 8, 0, 299), 9},
			{says(full(9), 8, 1, 399), 9},
			{says(full(9), 8, 0, 499), 9},
			{says(full(9), 5, 4, 599), 9},
			{says(full(9), 8, 0, 699), 9},
			{says(full(9), 8, 0, 799), 10},
			{says(full(10), 8, 0, 899), 11},
		}),
		"not while nobody waits here":     {{says(told{Report{Held: 64}, false}, 64, 0, 1), 64}, {says(told{Report{Held: 64}, false}, 64, 0, 99), 64}},
		"not while there is room":         {{says(full(63), 63, 0, 1), 64}, {says(full(63), 63, 0, 99), 64}},
		"not while one waits inside":      {{says(full(64), 63, 1, 1), 64}, {says(full(64), 63, 1, 99), 64}},
		"not while it hangs":              {{says(full(64), 64, 0, 5), 64}, {says(full(64), 64, 0, 5), 64}, {says(full(64), 64, 0, 5), 64}},
		"not before each has had a token": {{says(full(64), 64, 0, 1), 64}, {says(full(64), 64, 0, 63), 64}, {says(full(64), 64, 0, 64), 80}},
		"a preemption, and ten seconds": {
			{says(full(64), 64, 0, 1, 5), 64},
			{says(full(64), 50, 14, 99, 6), 50},
			{says(full(50), 50, 0, 199, 6), 50},
			{says(full(50), 50, 0, 299, 6), 50},
			{says(full(50), 50, 0, 399, 6), 50},
			{says(full(50), 50, 0, 499, 6), 50},
			{says(full(50), 50, 0, 599, 6), 50},
			{says(full(50), 50, 0, 699, 6), 50},
			{says(full(50), 50, 0, 799, 6), 50},
			{says(full(50), 50, 0, 899, 6), 50},
			{says(full(50), 50, 0, 999, 6), 50},
			{says(full(50), 50, 0, 1999, 6), 51},
		},
		"what it had preempted before": {{says(full(64), 64, 0, 1, 500), 64}, {says(full(64), 64, 0, 99, 500), 80}},
		"a restart": slices.Concat(again(9, says(full(64), 16, 48, 100), 64), []step{
			{says(full(64), 16, 48, 200), 17},
			{says(full(17), 16, 0, 20), 17},
			{says(full(17), 17, 0, 90), 22},
			{says(full(22), 17, 5, 190), 22},
			{says(full(22), 17, 5, 290), 18},
		}),
	} {
		l, now := NewLearned(StartSlots), time.Unix(1000, 0)
		for i, s := range steps {
			before := l.Bound()
			if changed := l.Follow(now, s.Report, s.wanted); changed != (l.Bound() != before) {
				t.Errorf("%s, report %d: says that it changed: %v", name, i+1, changed)
			}
			if l.Bound() != s.want {
				t.Errorf("%s, report %d: %+v: %d, want %d", name, i+1, s.told, l.Bound(), s.want)
				break
			}
			now = now.Add(time.Second)
		}
		if moved := slices.ContainsFunc(steps, func(s step) bool { return s.want != StartSlots }); l.Moved() != moved {
			t.Errorf("%s: moved: %v", name, l.Moved())
		}
	}
}

// Without a counter of tokens an end shows that the engine works; each one is good for one growth.
func TestLearnedWithoutTokens(t *testing.T) {
	l, r := NewLearned(8), told{Report{Running: 8, Held: 8}, true}
	now := time.Unix(1000, 0)
	follow := func(want int) {
		t.Helper()
		now = now.Add(time.Second)
		if l.Follow(now, r.Report, r.wanted); l.Bound() != want {
			t.Errorf("%d, want %d", l.Bound(), want)
		}
		r.Held = l.Bound()
	}
	follow(8)
	follow(8)
	l.Settled()
	follow(10)
	follow(10)
	l.Settled()
	follow(13)
}

// Whether a request waits that could go to a backend may take a look at every lane that has it, and engines report each
// second. So it is asked only of a full engine that works, without a request inside that waits, and once for each report.
func TestLearnedAsksOnlyWhereItMayGrow(t *testing.T) {
	l, now, produced, asked := NewLearned(64), time.Unix(1000, 0), int64(1), 0
	says := func(what string, want int, r Report) {
		t.Helper()
		asked, produced, now = 0, produced+99, now.Add(time.Second)
		r.Produced = produced
		if l.Follow(now, r, func() bool { asked++; return false }); asked != want || l.Bound() != 64 {
			t.Errorf("%s: asked %d times, want %d; bound %d", what, asked, want, l.Bound())
		}
	}
	says("the first report", 0, Report{Running: 64, Held: 64})
	says("full", 1, Report{Running: 64, Held: 64})
	says("room for one", 0, Report{Running: 63, Held: 63})
	says("one waits inside", 0, Report{Running: 63, Waiting: 1, Held: 64})
	produced -= 99
	says("it hangs", 0, Report{Running: 64, Held: 64})
	says("a preemption", 0, Report{Running: 64, Held: 64, Preemptions: 1})
	says("just after it", 0, Report{Running: 64, Held: 64, Preemptions: 1})
}

// Silence ends a series of reports, and the bound stays.
func TestLearnedForgets(t *testing.T) {
	l, now := NewLearned(64), time.Unix(1000, 0)
	crowded := told{Report{Running: 16, Waiting: 48, Held: 64}, true}
	follow := func(want int) {
		t.Helper()
		if l.Follow(now, crowded.Report, crowded.wanted); l.Bound() != want {
			t.Errorf("at %v: %d, want %d", now, l.Bound(), want)
		}
	}
	follow(64)
	l.Forget()
	now = now.Add(time.Minute)
	follow(64)
	now = now.Add(patience - 1)
	follow(64)
	now = now.Add(1)
	follow(17)
	l.Forget()
	if l.Bound() != 17 {
		t.Errorf("silence changed the bound to %d", l.Bound())
	}
	if b := NewLearned(0); b.Bound() != 1 {
		t.Errorf("begins with %d", b.Bound())
	}
	if b := NewLearned(MaxPerBackend + 1); b.Bound() != MaxPerBackend {
		t.Errorf("begins with %d", b.Bound())
	}
}

// Whatever engines say: a bound is at least 1 and never below what the engine runs because of what waits there; it grows
// only while somebody waits here, nobody waits there and it is full, by a quarter at most, and not within 10 s of a
// preemption; and it changes only in a report.
func TestLearnedIsBounded(t *testing.T) {
	for seed := range uint64(200) {
		lot := rand.New(rand.NewPCG(seed, 1))
		l, now := NewLearned(1+lot.IntN(300)), time.Unix(1000, 0)
		var last told
		preempted, quiet := int64(0), time.Time{}
		for i := range 500 {
			now = now.Add(time.Duration(lot.IntN(3000)) * time.Millisecond)
			before := l.Bound()
			r := told{Report{
				Running: lot.IntN(2 * before), Held: lot.IntN(2*before + 1), Produced: last.Produced + int64(lot.IntN(1000)),
			}, lot.IntN(3) > 0}
			if lot.IntN(2) == 0 {
				r.Waiting = lot.IntN(4)
			}
			if lot.IntN(20) == 0 {
				preempted++
			}
			if r.Preemptions = preempted; i > 0 && preempted > last.Preemptions {
				quiet = now.Add(10 * time.Second)
			}
			l.Follow(now, r.Report, r.wanted)
			switch after := l.Bound(); {
			case after < 1 || after < before && after < min(before, r.Running):
				t.Fatalf("seed %d: %d became %d by %+v", seed, before, after, r)
			case after < before && last.Waiting < 2 && r.Preemptions == last.Preemptions:
				t.Fatalf("seed %d: %d became %d by one report: %+v", seed, before, after, r)
			case after < before && r.Waiting < 2 && r.Preemptions == last.Preemptions:
				t.Fatalf("seed %d: %d became %d, though nothing waits there: %+v", seed, before, after, r)
			case after > before && r.Waiting >= 2 && after != r.Running+1:
				t.Fatalf("seed %d: %d became %d beside %+v", seed, before, after, r)
			case after > before && r.Waiting < 2 && (!r.Wanted || r.Waiting > 0 || r.Held < before || now.Before(quiet) || after > before+(before+3)/4):
				t.Fatalf("seed %d: %d became %d by %+v", seed, before, after, r)
			}
			last = r
		}
	}
}
