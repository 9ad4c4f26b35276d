package fairqueue

import "testing"

// keepIn is keep for a lane.
func keepIn(t *testing.T, q *FairRequestQueue, flow string, lane Lane, cost Cost) {
	t.Helper()
	f := q.top.classes[0].flows.find(flow)
	for f == nil || f.laneOf(lane) == nil || f.laneOf(lane).queued < 3 {
		mustPush(t, q, &Request{Flow: flow, Lane: lane, Cost: cost})
		f = q.top.classes[0].flows.find(flow)
	}
}

// A flow has no entitled share while it is at its cap, however long; afterwards it has its share again.
func TestFairnessGapBesideACap(t *testing.T) {
	q := counting(t, ByArrival, func(*Config) {})
	serve := func(n int) {
		for range n {
			for _, flow := range []string{"a", "b", "c"} {
				keep(t, q, flow, 10, 3)
			}
			ends(q, popNext(q), 10)
		}
	}
	serve(2 * attainedWindow)
	q.ParkFlow(q.HeadsOf(0, "a", nil)[0])
	serve(2 * attainedWindow)
	q.UnparkFlow(0, "a")
	if got := q.Fairness()[0]; got.Gap > got.Bound {
		t.Errorf("when it is below its cap again: %+v", got)
	}
	serve(2 * attainedWindow)
	if got := q.Fairness()[0]; got.Gap > got.Bound {
		t.Errorf("later: %+v", got)
	}
	// It is compared again: without its share, the gap shows it.
	q.top.classes[0].discipline = unfair{neglects: "a"}
	serve(2 * attainedWindow)
	if got := q.Fairness()[0]; got.Gap <= got.Bound {
		t.Errorf("with a twentieth of its share: %+v", got)
	}
}

// Service by other backends does not count at those that a flow waits for: neither that of a request that went before
// the flow waited here, nor that of another lane where it also waits.
func TestFairnessGapInEachLane(t *testing.T) {
	t.Run("long requests elsewhere", func(t *testing.T) {
		q := counting(t, ByArrival, func(*Config) {})
		var long []*Request
		for range 5 {
			mustPush(t, q, &Request{Flow: "a", Lane: "y", Cost: 100_000})
			long = append(long, popNext(q))
		}
		for range 2 * attainedWindow {
			keepIn(t, q, "a", "x", 10)
			keepIn(t, q, "b", "x", 10)
			ends(q, popNext(q), 10)
		}
		for _, r := range long {
			ends(q, r, 120_000)
		}
		if got := q.Fairness()[0]; got.Gap > 100 {
			t.Errorf("%+v", got)
		}
	})
	for _, neglected := range []string{"", "a"} {
		t.Run("two lanes at a time, neglected: "+neglected, func(t *testing.T) {
			q := counting(t, ByArrival, func(*Config) {})
			q.top.classes[0].discipline = unfair{neglects: neglected}
			for range 4 * attainedWindow {
				for _, lane := range []Lane{"x", "y"} {
					keepIn(t, q, "a", lane, 10)
					keepIn(t, q, map[Lane]string{"x": "b", "y": "c"}[lane], lane, 10)
				}
				ends(q, popNext(q), 10)
			}
			if got := q.Fairness()[0]; (got.Gap > got.Bound) != (neglected != "") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A bypass is not a turn: it does not count, neither at its end nor when its usage is known later.
func TestFairnessGapWithoutBypasses(t *testing.T) {
	q := counting(t, ByArrival, func(*Config) {})
	r := &Request{Flow: "a", Cost: 50_000}
	q.Bypassed(start, r)
	for range 2 * attainedWindow {
		keep(t, q, "a", 10, 3)
		keep(t, q, "b", 10, 3)
		ends(q, popNext(q), 10)
	}
	q.Completed(r)
	q.TrueUp(start, r, 90_000)
	if got := q.Fairness()[0]; got.Gap >= 40_000 {
		t.Errorf("%+v", got)
	}
}
