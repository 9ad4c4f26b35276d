package fairqueue

import "testing"

// Pop refuses candidates not made by Peek or Claim, candidates of another queue, and invalid ones.
func TestOnlyTheQueueMakesCandidates(t *testing.T) {
	for name, forge := range map[string]func(q *FairRequestQueue, c Candidate) Candidate{
		"made by hand":  func(_ *FairRequestQueue, c Candidate) Candidate { return Candidate{Request: c.Request} },
		"another queue": func(*FairRequestQueue, Candidate) Candidate { return popped(t) },
		"after an arrival": func(q *FairRequestQueue, c Candidate) Candidate {
			mustPush(t, q, &Request{Flow: "b", Cost: 1})
			return c
		},
		"after a cancellation": func(q *FairRequestQueue, c Candidate) Candidate { q.Remove(c.Request); return c },
		"after its lane was closed": func(q *FairRequestQueue, c Candidate) Candidate {
			q.CloseLane(c.Request, LaneFull)
			return c
		},
		"after its flow was parked": func(q *FairRequestQueue, c Candidate) Candidate { q.ParkFlow(c.Request); return c },
		"twice":                     func(q *FairRequestQueue, c Candidate) Candidate { q.Pop(c); return c },
		"nobody":                    func(*FairRequestQueue, Candidate) Candidate { return Candidate{} },
	} {
		t.Run(name, func(t *testing.T) {
			q := queue(t, DefaultConfig())
			mustPush(t, q, &Request{Flow: "a", Cost: 1})
			mustPush(t, q, &Request{Flow: "a", Cost: 1})
			c := forge(q, q.Peek(start, Allowed{Tiers: AllTiers}))
			defer func() {
				if recover() == nil {
					t.Error("popped")
				}
			}()
			q.Pop(c)
		})
	}
}

func popped(t *testing.T) Candidate {
	q := queue(t, DefaultConfig())
	mustPush(t, q, &Request{Flow: "a", Cost: 1})
	return q.Peek(start, Allowed{Tiers: AllTiers})
}

// Claim pops a head out of turn, and charges it like any other.
func TestClaim(t *testing.T) {
	q := queue(t, DefaultConfig())
	for _, flow := range []string{"a", "a", "b", "b"} {
		mustPush(t, q, &Request{Flow: flow, Lane: Lane(flow), Cost: 1})
	}
	claimed := q.HeadIn(0, "b")
	q.Pop(q.Claim(claimed))
	if claimed.Queued() {
		t.Error("it still waits")
	}
	if next := popNext(q); next.Flow != "a" {
		t.Errorf("then %s goes, want a, which has had nothing yet", next.Flow)
	}
	mustHold(t, q)
}
