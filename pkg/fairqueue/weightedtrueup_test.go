package fairqueue

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// liar is a tier whose requests are not estimated right.
type liar struct {
	tier     int
	estimate func(actual Cost) Cost
	backlog  int // its waiting requests: with one, it loses its last waiter with each release
}

// attains serves the tiers of weightedTiers for so many releases, with flying requests in flight, and returns the actual
// cost that each was served, and the largest sum of what the requests in flight differed from their estimates. What a
// request has cost becomes known when it completes, or later.
func (l liar) attains(t *testing.T, releases, flying int) (served [3]float64, wrong float64) {
	random := rand.New(rand.NewPCG(uint64(l.tier), 7))
	q := queue(t, weightedTiers())
	actual := map[*Request]Cost{}
	var flight []*Request
	for range releases {
		for tier := range 3 {
			most := 3
			if tier == l.tier {
				most = l.backlog
			}
			for q.tiers[tier].queued < most {
				cost := Cost(10 * (1 + random.IntN(20)))
				r := &Request{Flow: "f", Tier: tier, Cost: cost}
				if tier == l.tier {
					r.Cost = l.estimate(cost)
				}
				actual[r] = cost
				mustPush(t, q, r)
			}
		}
		r := popNext(q)
		served[r.Tier] += float64(actual[r])
		flight = append(flight, r)
		sum := 0.0
		for _, r := range flight {
			sum += math.Abs(float64(actual[r] - r.Cost))
		}
		wrong = max(wrong, sum)
		if len(flight) == flying {
			i := random.IntN(flying)
			r := flight[i]
			flight[i] = flight[flying-1]
			flight = flight[:flying-1]
			q.Completed(r)
			q.TrueUp(start, r, actual[r])
			delete(actual, r)
		}
	}
	return served, wrong
}

// A tier whose estimates are 10 times too low, or too high, gets its share of what requests really cost, and so do the
// others, whose estimates are exact: within what the estimates of requests in flight are wrong by and the largest cost of
// each tier, however long it goes on. The same holds for one that loses its last waiter, and what it owes, each time.
func TestTiersShareWhatRequestsReallyCost(t *testing.T) {
	const largest = 200
	for how, estimate := range map[string]func(Cost) Cost{
		"too low":  func(c Cost) Cost { return c / 10 },
		"too high": func(c Cost) Cost { return c * 10 },
	} {
		for tier := range 3 {
			for _, flying := range []int{1, 20} {
				for _, backlog := range []int{1, 3} {
					t.Run(fmt.Sprintf("%s, tier %d, %d in flight, %d waiting", how, tier, flying, backlog), func(t *testing.T) {
						served, wrong := liar{tier, estimate, backlog}.attains(t, 30_000, flying)
						total := served[0] + served[1] + served[2]
						for i, share := range []float64{0.7, 0.2, 0.1} {
							if off := served[i] - share*total; math.Abs(off) > wrong+3*largest {
								t.Errorf("tier %d was served %.0f of %.0f, which is %.0f beside its share, want at most %.0f",
									i, served[i], total, off, wrong+3*largest)
							}
						}
					})
				}
			}
		}
	}
}
