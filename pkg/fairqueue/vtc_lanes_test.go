package fairqueue

import "testing"

// Lanes have a virtual time each. Who comes to a lane that goes slowly starts with those who wait there; who comes from
// it to a fast one has banked nothing there; and a lane in which nobody waits has no memory.
func TestVTCLanes(t *testing.T) {
	q := counting(t, ByArrival)
	in := func(flow string, lane Lane, n int) (first *Request) {
		for range n {
			r := &Request{Flow: flow, Lane: lane, Cost: 10}
			if first == nil {
				first = r
			}
			mustPush(t, q, r)
		}
		return first
	}
	next := func(n int) (flows string) {
		for range n {
			r := popNext(q)
			flows += r.Flow
			q.Completed(r)
		}
		return flows
	}
	slow := in("s", "x", 4)
	q.CloseLane(slow, LaneFull)
	in("f", "", 104)
	next(100)
	in("g", "x", 3)
	q.OpenLane("x")
	if got := next(6); got != "sgsgsg" {
		t.Errorf("in the slow lane %s goes, want by turns", got)
	}
	in("s", "", 3) // it waits in x as well, far behind
	q.CloseLane(q.HeadIn(0, "x"), LaneFull)
	if got := next(6); got != "fsfsfs" {
		t.Errorf("in the fast lane %s goes, want by turns", got)
	}
	next(q.Len() - 1)
	q.OpenLane("x")
	next(q.Len())
	in("f", "x", 3)
	in("h", "x", 3)
	if got := next(4); got != "fhfh" && got != "hfhf" {
		t.Errorf("in the lane that was empty %s goes, want by turns", got)
	}
}

// A flow that is parked keeps its place, but banks no more than its head's charge, however long others go meanwhile.
func TestVTCParkedBanksOneRequest(t *testing.T) {
	q := counting(t, ByArrival)
	keep(t, q, "capped", 10, 20)
	q.ParkFlow(q.HeadIn(0, ""))
	for range 200 {
		keep(t, q, "busy", 10, 2)
		q.Completed(popNext(q))
	}
	keep(t, q, "busy", 10, 20)
	q.UnparkFlow(0, "capped")
	flows := ""
	for range 12 {
		flows += popNext(q).Flow[:1]
	}
	if want := "cccbcbcbcbcb"; flows != want { // what it is behind, what the others have had since, and then by turns
		t.Errorf("%s goes, want %s", flows, want)
	}
}

// The same if the others never wait, and bypass the parked flow: they are not behind it by all that they have had.
func TestVTCParkedBanksNoBypasses(t *testing.T) {
	q := counting(t, ByArrival)
	keep(t, q, "capped", 10, 20)
	q.ParkFlow(q.HeadIn(0, ""))
	for range 200 {
		r := &Request{Flow: "busy", Cost: 10}
		q.Bypassed(start, r)
		q.Completed(r)
	}
	keep(t, q, "busy", 10, 20)
	q.UnparkFlow(0, "capped")
	flows := ""
	for range 12 {
		flows += popNext(q).Flow[:1]
	}
	if want := "cccbcbcbcbcb"; flows != want { // as if they had waited
		t.Errorf("%s goes, want %s", flows, want)
	}
}

// A known flow that sends now and then waits for at most one grant of the flood; with NewcomerFirst for none.
func TestVTCQuietFlow(t *testing.T) {
	for tieBreak, most := range map[TieBreak]int{ByArrival: 1, NewcomerFirst: 0} {
		q := counting(t, tieBreak)
		q.Bypassed(start, &Request{Flow: "quiet", Cost: 1})
		for range 200 {
			keep(t, q, "flood", 1, 20)
			for range 5 {
				q.Completed(popNext(q))
			}
			mustPush(t, q, &Request{Flow: "quiet", Cost: 1})
			if n := servedBefore(t, q, "quiet"); n > most {
				t.Fatalf("tie-break %d: %d go before, want %d", tieBreak, n, most)
			}
		}
	}
}

// A flow that waits in two lanes is lifted in both when it is no longer parked in one.
func TestVTCParkedInOneOfTwoLanes(t *testing.T) {
	q := counting(t, ByArrival)
	keep(t, q, "capped", 10, 2)
	q.ParkFlow(q.HeadIn(0, ""))
	elsewhere := &Request{Flow: "capped", Lane: "x", Cost: 10}
	mustPush(t, q, elsewhere)
	q.CloseLane(elsewhere, LaneFull)
	for range 50 {
		keep(t, q, "busy", 10, 2)
		q.Completed(popNext(q))
	}
	q.UnparkFlow(0, "capped")
	mustHold(t, q)
}
