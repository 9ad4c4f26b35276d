package scheduling

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// watchedQuery returns a query that is watched.
func watchedQuery(t testing.TB, b *Board, ask Ask) *Query {
	t.Helper()
	q := prepare(t, b, ask)
	q.Watch()
	return q
}

// A view shows the state at the choice: it counts neither the request itself nor later ones.
func TestViewIsAsOfTheChoice(t *testing.T) {
	b := poolOf(t, mustNew(t), ready(0, "10.0.0.1:80"), ready(1, "10.0.0.2:80"))
	wantPlaced(t, b, prepare(t, b, Ask{}), BelowUpper, 0)
	q := watchedQuery(t, b, Ask{})
	wantPlaced(t, b, q, BelowUpper, 1)
	wantPlaced(t, b, prepare(t, b, Ask{}), BelowUpper, 0, 1)
	d := q.Explained()
	if d == nil || d.Chosen != "10.0.0.2:80" || d.Stock != 1 || d.Candidates[0].Stock != 1 || d.Candidates[1].Stock != 0 || d.More != 0 {
		t.Fatalf("%+v", d)
	}
	if d.Candidates[1].Total <= d.Candidates[0].Total {
		t.Errorf("the chosen endpoint has the score %d, the other one %d", d.Candidates[1].Total, d.Candidates[0].Total)
	}
	if q.Explained() != nil {
		t.Error("the view is there twice")
	}
	if prepare(t, b, Ask{}).Explained() != nil {
		t.Error("an unwatched query is explained")
	}
}

// A request that could not be placed has the view of its last attempt, with the failed constraints, its caller's too.
func TestViewOfAVainAttempt(t *testing.T) {
	full := ready(0, "10.0.0.1:80")
	full.MaxInFlight = 1
	b := poolOf(t, mustNew(t), full, ready(1, "10.0.0.2:80"), unready(2, "10.0.0.3:80"))
	wantPlaced(t, b, prepare(t, b, subsetOf("10.0.0.1")), BelowUpper, 0)
	except := &EndpointSet{}
	except.Add(1)
	q := watchedQuery(t, b, Ask{})
	if r := b.Place(q, BelowUpper, except); !r.Empty() {
		t.Fatal("it was placed")
	}
	d := q.Explained()
	if d == nil || d.Chosen != "" {
		t.Fatalf("%+v", d)
	}
	for i, want := range []string{filterMaxInFlight, filterExcepted, FilterReady} {
		if f := d.Candidates[i].Failed; len(f) != 1 || f[0].Filter != want {
			t.Errorf("%s: %+v, want %s", d.Candidates[i].Address, f, want)
		}
	}
}

// The chosen endpoint is the best one without a constraint against it, by the numbers of the view itself: its score,
// its cost or its points. Among equals the first in ring order after the last pick wins.
func TestChosenIsTheBestInItsView(t *testing.T) {
	for _, policy := range []string{PolicyCost, PolicyMindRouter} {
		for seed := range uint64(60) {
			lot := rand.New(rand.NewPCG(seed, 1))
			var pool []Endpoint
			for id := range EndpointID(2 + lot.IntN(9)) {
				e := ready(id, fmt.Sprintf("10.0.0.%d:80", id+1))
				e.Ready = lot.IntN(5) > 0
				e.Priority = lot.IntN(3)
				pool = append(pool, e)
			}
			b := poolOf(t, mustNew(t, func(c *Config) { c.Policy = policy }), pool...)
			for range 60 {
				q := watchedQuery(t, b, Ask{})
				if rated := policy == PolicyCost && lot.IntN(2) == 0; rated {
					r := &Ratings{Prompt: 1 + lot.Int64N(5000)}
					for id := range EndpointID(3) {
						r.Above = append(r.Above, Cached{ID: id, Tokens: 1 + lot.Int64N(r.Prompt)})
					}
					q.Rate(r)
				}
				reservation := b.Place(q, BelowUpper, nil)
				d := q.Explained()
				if lot.IntN(3) == 0 {
					b.Release(&reservation)
				}
				if d == nil {
					t.Fatal("no view")
				}
				if d.Chosen == "" {
					continue
				}
				better := func(c *Candidate) int64 {
					switch {
					case c.Score != nil:
						return c.Score.Total()
					case d.Prompt > 0:
						return -c.Cost
					}
					return int64(c.Total)
				}
				i := slices.IndexFunc(d.Candidates, func(c Candidate) bool { return c.Address == d.Chosen })
				for j := range d.Candidates {
					if c := &d.Candidates[j]; len(c.Failed) == 0 && better(c) > better(&d.Candidates[i]) {
						t.Fatalf("%s, seed %d: %s was chosen with %d, and %s has %d", policy, seed, d.Chosen, better(&d.Candidates[i]), c.Address, better(c))
					}
				}
				if len(d.Candidates[i].Failed) > 0 {
					t.Fatalf("%s was chosen, and is ruled out: %+v", d.Chosen, d.Candidates[i].Failed)
				}
			}
		}
	}
}

// In a large pool a view has the most endpoints allowed: the chosen one, endpoints with the prompt cached, and others
// of the lane.
func TestViewIsBounded(t *testing.T) {
	var pool []Endpoint
	for id := range EndpointID(300) {
		pool = append(pool, ready(id, fmt.Sprintf("10.0.%d.%d:80", id/200, id%200)))
	}
	b := poolOf(t, mustNew(t), pool...)
	for range 250 {
		b.Place(prepare(t, b, Ask{}), Unbounded, nil)
	}
	q := watchedQuery(t, b, Ask{})
	q.Rate(&Ratings{Prompt: 1000, Above: []Cached{{ID: 280, Tokens: 900}, {ID: 290, Tokens: 10}}})
	wantPlaced(t, b, q, Unbounded, 280)
	d := q.Explained()
	if len(d.Candidates) != MostViewed || d.More != 300-MostViewed {
		t.Fatalf("%d candidates, %d more", len(d.Candidates), d.More)
	}
	seen := map[EndpointID]bool{}
	for i, c := range d.Candidates {
		if seen[c.ID] || i > 0 && c.ID < d.Candidates[i-1].ID {
			t.Errorf("%d is there twice, or out of order", c.ID)
		}
		seen[c.ID] = true
	}
	if !seen[280] || !seen[290] {
		t.Error("the chosen endpoint, or one that has some of the prompt, is missing")
	}
}

// BenchmarkWatched measures a pick, one that is watched, and the explanation outside the lock.
func BenchmarkWatched(b *testing.B) {
	for _, n := range []int{10, 100, 2000} {
		for _, mode := range []string{"pick", "watched", "explained"} {
			b.Run(fmt.Sprintf("%d/%s", n, mode), func(b *testing.B) {
				board, q := benchmarkBoard(b, n, Ask{}, false)
				r := board.Place(q, Unbounded, nil)
				if mode != "pick" {
					q.Watch()
				}
				view := q.view
				b.ReportAllocs()
				for b.Loop() {
					board.Release(&r)
					q.view = view
					r = board.Place(q, Unbounded, nil)
					if mode == "explained" {
						q.Explained()
					}
				}
			})
		}
	}
}
