package fairqueue

import (
	"fmt"
	"math"
	"testing"
)

// Two classes with quanta of 300 and 100 that always wait get actual cost in the ratio 3 to 1: with estimates of ten
// times the cost or a tenth, in one class or both, and with any number of requests in flight before their cost is
// known.
func TestClassesShareActualCosts(t *testing.T) {
	for _, cursor := range []Cursor{Stay, Advance} {
		for name, c := range map[string]struct{ estimate, actual [2]Cost }{
			"as estimated":          {[2]Cost{300, 300}, [2]Cost{300, 300}},
			"estimated at 10 times": {[2]Cost{1000, 1000}, [2]Cost{100, 100}},
			"estimated at a tenth":  {[2]Cost{300, 300}, [2]Cost{3000, 3000}},
			"the first at 10 times": {[2]Cost{400, 400}, [2]Cost{40, 400}},
			"the first at a tenth":  {[2]Cost{400, 400}, [2]Cost{4000, 400}},
			"in each way":           {[2]Cost{400, 400}, [2]Cost{40, 4000}},
			"in the other way":      {[2]Cost{400, 400}, [2]Cost{4000, 40}},
			"small, at 10 times":    {[2]Cost{100, 100}, [2]Cost{10, 10}},
			"small, at a tenth":     {[2]Cost{100, 100}, [2]Cost{1000, 1000}},
			"the first small":       {[2]Cost{40, 400}, [2]Cost{400, 400}},
			"the second small":      {[2]Cost{400, 40}, [2]Cost{400, 400}},
		} {
			if cursor == Advance && min(c.estimate[0], 3*c.estimate[1]) < 300 {
				continue // one request a turn is less than a quantum: so it is in Dynamo, also with exact costs
			}
			for _, inFlight := range []int{1, 6, 40} {
				if inFlight > 6 && c.estimate[0] < 100 {
					continue // it then owes several quanta at a time, and rounds at once favour the other one, as with exact costs
				}
				t.Run(fmt.Sprint(name, " ", cursor, " ", inFlight), func(t *testing.T) {
					q := classes(t, cursor, ab(300, 100)...)
					var served [2]float64
					var flying []*Request
					for range 10_000 {
						for class := range 2 {
							waits(t, q, "ab"[class:class+1], c.estimate[class], 2-q.top.classes[class].queued)
						}
						r := popNext(q)
						class := int(r.Path.Class[0] - 'a')
						served[class] += float64(c.actual[class])
						if flying = append(flying, r); len(flying) >= inFlight {
							first := flying[0]
							ends(q, first, c.actual[first.Path.Class[0]-'a'])
							flying = flying[1:]
						}
					}
					largest := float64(max(c.estimate[0], c.estimate[1], c.actual[0], c.actual[1]))
					most := 4 * (300 + float64(inFlight+1)*largest) // of the difference, in quanta
					if d := math.Abs(served[0]/3 - served[1]); d > most || d > served[1]/20+most/10 {
						t.Errorf("served %.0f and %.0f: %.3f to 1, want 3 to 1", served[0], served[1], served[0]/served[1])
					}
					mustHold(t, q)
				})
			}
		}
	}
}

// A class waits until it has earned the excess cost of a request, although it could otherwise pay for its next head.
func TestAClassWaitsForItsDebt(t *testing.T) {
	q := classes(t, Stay, ab(10, 10)...)
	waits(t, q, "a", 4, 10)
	waits(t, q, "b", 10, 10)
	q.TrueUp(start, popNext(q), 30) // 6 are left, and 26 owed
	if who := goes(t, q, 4); who != "bbba" {
		t.Errorf("%s go, want a to wait for three quanta", who)
	}
}

// A correction ends no turn of a class that could not pay for its next head anyway: an urgent one, which came since.
func TestACorrectionEndsNoOtherTurn(t *testing.T) {
	for _, actual := range []Cost{4, 5} {
		q := classes(t, Stay, ab(10, 10)...)
		waits(t, q, "a", 4, 2)
		waits(t, q, "b", 10, 1)
		q.TrueUp(start, popNext(q), actual) // about 6 are left
		mustPush(t, q, &Request{Path: &Path{Class: "a", Priority: 1}, Cost: 8})
		if who := goes(t, q, 1); who != "a" {
			t.Errorf("a has cost %d: %s goes", actual, who)
		}
	}
}

// A requeued request that was paid from its class's refund returns that refund.
func TestRequeueOfWhatWasPaidWithCredit(t *testing.T) {
	q := classes(t, Stay, ab(100, 100)...)
	waits(t, q, "a", 100, 1)
	waits(t, q, "a", 10, 5)
	waits(t, q, "b", 10, 5)
	q.TrueUp(start, popNext(q), 1)
	a := q.top.classes[0]
	was := a.drrShare
	r := popNext(q)
	if r.Path.Class != "a" || a.credit != was.credit-10 {
		t.Fatalf("%s goes, and a has %+v, before %+v", r.Path.Class, a.drrShare, was)
	}
	if q.Requeue(r); a.drrShare != was {
		t.Errorf("a has %+v, before %+v", a.drrShare, was)
	}
}
