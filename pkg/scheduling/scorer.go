package scheduling

import (
	"cmp"
	"slices"
)

// Score is a scorer's rating of an endpoint, from 0 to ScoreOne, the best.
type Score int64

// ScoreOne is the best Score. With at most 16 scorers of a weight of at most 1000 a total stays below 2^54.
const ScoreOne Score = 1 << 40

// Total is a sum of scores times weights.
type Total int64

// scorer rates one endpoint without looking at the others. It sets live or request, and the hooks that it needs; its
// state is in the variables that these functions share.
type scorer struct {
	// live rates an endpoint by its requests in flight and what its engine reports. It is called under the lock when
	// one of these changes, not for a pick. If it depends on other state, a hook may only change that state for the
	// hook's own endpoint.
	live func(Load) Score
	// request rates endpoints for a request (a prefix that they have cached, a session that they know): it returns
	// those that it prefers, each once, in any order; the others get 0. It is called once, before the lock, by many
	// goroutines at a time: it must not read what a hook writes, unless that is safe to share.
	request func(*constraint, *Snapshot) []EndpointScore
	// placed is called, under the lock, when the request is counted at an endpoint; completed when that one is
	// released.
	placed    func(*Query, EndpointID)
	completed func(EndpointID)
}

// EndpointScore is an endpoint's Score for a request.
type EndpointScore struct {
	ID    EndpointID
	Score Score
}

// kind is a scorer that a configuration can name. A new one is a file with a constructor, and a line in the registry.
type kind struct {
	name string
	// make returns a new scorer for one scheduler.
	make func() scorer
}

// scorers is the registry, sorted by name.
var scorers = []kind{{ScorerLeastStock, newLeastStock}}

func scorerByName(name string) (kind, bool) {
	for _, k := range scorers {
		if k.name == name {
			return k, true
		}
	}
	return kind{}, false
}

func scorerNames() []string {
	names := make([]string, 0, len(scorers))
	for _, k := range scorers {
		names = append(names, k.name)
	}
	return names
}

// weighted is a scorer with its weight.
type weighted struct {
	scorer
	name   string
	weight int64
}

// of returns the score's part of a total. Scores out of range are clamped.
func (w *weighted) of(s Score) Total { return Total(w.weight * int64(min(max(s, 0), ScoreOne))) }

// rating is one scorer's score of an endpoint for a request.
type rating struct {
	scorer string
	EndpointScore
}

// extra is a request's addition to an endpoint's total.
type extra struct {
	id    EndpointID
	total Total
}

// rated calls the scorers that depend on the request. The result is sorted by ID and valid on any snapshot.
func (s *Scheduler) rated(snap *Snapshot, c *constraint) []rating {
	var ratings []rating
	for i := range s.request {
		for _, score := range s.request[i].request(c, snap) {
			ratings = append(ratings, rating{s.request[i].name, score})
		}
	}
	slices.SortStableFunc(ratings, func(a, b rating) int { return cmp.Compare(a.ID, b.ID) })
	return ratings
}

// extrasOf weighs ratings. It returns those above 0, once for each endpoint, sorted by ID. Ratings of scorers that the
// scheduler does not have are ignored.
func (s *Scheduler) extrasOf(ratings []rating) []extra {
	var extras []extra
	for _, r := range ratings {
		for i := range s.request {
			w := &s.request[i]
			total := w.of(r.Score)
			if w.name != r.scorer || total == 0 {
				continue
			}
			if n := len(extras); n > 0 && extras[n-1].id == r.ID {
				extras[n-1].total += total
			} else {
				extras = append(extras, extra{r.ID, total})
			}
		}
	}
	return extras
}
