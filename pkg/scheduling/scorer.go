package scheduling

import (
	"cmp"
	"slices"
)

// Score is how good an endpoint is in one scorer's eyes: 0 to ScoreOne.
type Score int64

// ScoreOne is the best Score. With at most 16 scorers of a weight of at most 1000 a total stays below 2^54.
const ScoreOne Score = 1 << 40

// Total is a sum of scores times weights.
type Total int64

// scorer rates one endpoint without looking at the others. It sets live or request, and the hooks that it needs; what
// it remembers is in the variables that these functions share.
type scorer struct {
	// live rates an endpoint with what is in flight there and what its engine reports. It is asked under the lock, when
	// one of these changes, not at a pick. What it remembers besides may change an endpoint's score in a hook for the
	// same endpoint only.
	live func(Load) Score
	// request rates endpoints for a request (a prefix that they have cached, a session that they know): those that it
	// prefers, each once, in any order; the others get 0. It is asked once, before the lock, by many goroutines at a
	// time: it must not read what a hook writes, unless that is safe to share.
	request func(*constraint, *Snapshot) []EndpointScore
	// placed is told, under the lock, that the request was counted at an endpoint, and completed that one was released.
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
	// make returns a scorer of its own for one scheduler.
	make func() scorer
}

// scorers is the registry, in order of name.
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

// weighted is a scorer with its say.
type weighted struct {
	scorer
	name   string
	weight int64
}

// of is the score's part of a total. A scorer that leaves its range does not leave it here.
func (w *weighted) of(s Score) Total { return Total(w.weight * int64(min(max(s, 0), ScoreOne))) }

// rating is what one scorer said of an endpoint for a request.
type rating struct {
	scorer string
	EndpointScore
}

// extra is what a request adds to an endpoint's total.
type extra struct {
	id    EndpointID
	total Total
}

// rated asks the scorers that depend on the request. The answer is in order of ID and valid on any snapshot.
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

// extrasOf weighs ratings: what is above 0, once for each endpoint, in order of ID. Those of scorers that the scheduler
// does not have count for nothing.
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
