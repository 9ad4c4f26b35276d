package scheduling

import (
	"fmt"
	"slices"
	"testing"
)

// shortLine prefers the endpoint whose engine reports the fewest waiting requests; unknown counts as none.
func shortLine(l Load) Score { return ScoreOne / Score(1+l.Signals.Waiting) }

// Signals reach the board by endpoint, and stay with it through changes of the pool until it leaves.
func TestSignals(t *testing.T) {
	s := mustNew(t, func(c *Config) { c.Scorers, c.TieBreak = nil, TieFirst })
	s.add(weighted{name: "short-line", weight: 1, scorer: scorer{live: shortLine}})
	b := three(t, s)
	q := prepare(t, b, Ask{})
	wantPlaced(t, b, q, BelowLower, 0, 0)
	set := func(id EndpointID, waiting int32, known bool) {
		t.Helper()
		if b.SetSignals(id, Signals{Known: true, Waiting: waiting}) != known {
			t.Fatalf("endpoint %d known: %t", id, !known)
		}
		checkInvariants(t, b)
	}
	set(0, 5, true)
	wantPlaced(t, b, q, BelowLower, 1)
	set(1, 3, true)
	set(2, 4, true)
	set(9, 0, false)
	wantPlaced(t, b, q, BelowLower, 1)
	b.SetBounds(1, 1_800_000, 2_200_001)
	b.SetSnapshot(changed(b.Snapshot(), func(e *Endpoint) { e.Slots++ }))
	wantPlaced(t, b, q, BelowLower, 1)
	setPool(b, 2, ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"))
	wantPlaced(t, b, q, BelowLower, 1)
	setPool(b, 3, ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"), ready(2, "10.0.0.3:80"))
	wantPlaced(t, b, q, BelowLower, 2) // a new engine
	set(2, 9, true)
	set(1, 9, true)
	wantPlaced(t, b, q, BelowLower, 0)
	if d := b.Explain(q); d.Candidates[0].Total != Total(ScoreOne/6) {
		t.Errorf("%+v", d.Candidates[0])
	}
}

// A scorer's hooks are called once for each reservation and once for each release.
func TestScorerHooks(t *testing.T) {
	var told []string
	s := mustNew(t)
	s.add(weighted{name: "remembers", weight: 1, scorer: scorer{
		live:      func(Load) Score { return 0 },
		placed:    func(q *Query, id EndpointID) { told = append(told, fmt.Sprintf("%s at %d", q.model, id)) },
		completed: func(id EndpointID) { told = append(told, fmt.Sprintf("done at %d", id)) },
	}})
	b := three(t, s)
	q := prepare(t, b, Ask{Model: "a"})
	first := b.Place(q, BelowLower, nil)
	b.HasRoom(q, BelowLower, nil)
	second := b.PlaceAt(q, 2)
	b.SetSnapshot(NewSnapshot(2, nil))
	b.Place(q, BelowLower, nil) // refused
	b.Release(&first)
	b.Release(&second)
	b.Release(&second)
	if got, want := fmt.Sprint(told), "[a at 0 a at 2 done at 0 done at 2]"; got != want {
		t.Fatalf("told %s, want %s", got, want)
	}
}

// Ratings from before the lock hold on any snapshot, and are weighed by the current scheduler.
func TestRatingsSurvive(t *testing.T) {
	with := func(weight int64) *Scheduler {
		s := mustNew(t)
		if weight > 0 {
			s.add(weighted{name: "likes", weight: weight, scorer: scorer{request: likes}})
		}
		return s
	}
	liked := ready(2, "10.0.0.3:80")
	liked.Labels = map[string]string{"likes": "a"}
	pool := []Endpoint{ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"), liked}
	b := poolOf(t, with(10), pool...)
	q := prepare(t, b, Ask{Model: "a"})
	pool[2].Labels = nil // ratings were computed before: the label does not matter any more
	b.SetSnapshot(NewSnapshot(2, pool))
	wantPlaced(t, b, q, BelowUpper, 2, 2)
	b.SetSnapshot(NewSnapshot(3, pool[:2]))
	wantPlaced(t, b, q, BelowUpper, 0)
	b.SetSnapshot(NewSnapshot(4, pool))
	wantPlaced(t, b, q, BelowUpper, 2)
	b.SetScheduler(with(0))
	wantPlaced(t, b, q, BelowUpper, 1)
	b.SetScheduler(with(10))
	wantPlaced(t, b, q, BelowUpper, 2)
	if r := b.Explain(q).Candidates[2].Scores[1]; r.Score != ScoreOne || r.Weight != 10 {
		t.Errorf("%+v", r)
	}
}

// Several scorers' values of an endpoint for a request are added up, each with its weight, in any order.
func TestPreferencesAddUp(t *testing.T) {
	const part = ScoreOne / 4
	preferring := func(name string, weight int64, parts ...Score) weighted {
		return weighted{name: name, weight: weight, scorer: scorer{request: func(*constraint, *Snapshot) (scores []EndpointScore) {
			for id, n := range slices.Backward(parts) {
				scores = append(scores, EndpointScore{EndpointID(id), n * part})
			}
			return scores
		}}}
	}
	with := func(scorers ...weighted) *Scheduler {
		s := mustNew(t, func(c *Config) { c.Scorers, c.TieBreak = nil, TieFirst })
		for _, w := range scorers {
			s.add(w)
		}
		return s
	}
	warm, known := preferring("warm", 1, 4, 2, 0, 4), preferring("known", 3, 0, 1, 1, 0)
	b := poolOf(t, with(warm, known),
		ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"), ready(2, "10.0.0.3:80"), ready(3, "10.0.0.4:80"))
	q := prepare(t, b, Ask{})
	wantPlaced(t, b, q, BelowUpper, 1) // by 2 + 3, with 4, 3 and 4 for the others
	if got := q.Destinations(nil); !slices.Equal(got, []string{"10.0.0.2:80", "10.0.0.4:80", "10.0.0.1:80"}) {
		t.Errorf("fallbacks %v", got[1:])
	}
	want := []Rating{{"warm", 1, 2 * part}, {"known", 3, part}}
	if c := b.Explain(q).Candidates[1]; c.Total != Total(5*part) || !slices.Equal(c.Scores, want) {
		t.Errorf("total %d of %+v", c.Total, c.Scores)
	}
	b.SetScheduler(with(known))
	wantPlaced(t, b, q, BelowUpper, 1)
	if got := q.Destinations(nil); !slices.Equal(got, []string{"10.0.0.2:80", "10.0.0.3:80", "10.0.0.4:80"}) {
		t.Errorf("fallbacks %v", got[1:])
	}
	b.SetScheduler(with(warm))
	wantPlaced(t, b, q, BelowUpper, 0)
}

// A scorer that leaves its range neither rules an endpoint out nor outweighs more than its weight allows.
func TestScoresStayInRange(t *testing.T) {
	s := mustNew(t, func(c *Config) { c.TieBreak = TieFirst })
	s.add(weighted{name: "wild", weight: 1, scorer: scorer{live: func(l Load) Score { return Score(l.Slots-1) * 4 * ScoreOne }}})
	low, high := ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80")
	high.Slots = 2
	b := poolOf(t, s, low, high)
	q := prepare(t, b, Ask{})
	wantPlaced(t, b, q, BelowUpper, 1, 1, 1)
	for _, c := range b.Explain(q).Candidates {
		if c.Total < 0 || c.Total > 2*Total(ScoreOne) {
			t.Errorf("total %d", c.Total)
		}
	}
}
