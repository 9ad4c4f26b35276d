package fairqueue

import "testing"

// by returns the flows of the next n requests, which end at once as they were charged.
func by(t testing.TB, q *FairRequestQueue, n int) (flows string) {
	t.Helper()
	for range n {
		r := popNext(q)
		q.Completed(r)
		flows += r.Flow
	}
	return flows
}

// An estimate of 10 turns out to be 30, while its flow and another one wait, each request 10. What was charged too little
// is waited for, whenever it becomes known.
func TestWFQTrueUpMovesTheFlow(t *testing.T) {
	for name, c := range map[string]struct {
		correct func(q *FairRequestQueue, r *Request)
		want    string
	}{
		"as charged":       {func(*FairRequestQueue, *Request) {}, "babababa"},
		"more":             {func(q *FairRequestQueue, r *Request) { q.TrueUp(start, r, 30) }, "bbbababa"},
		"more, later":      {func(q *FairRequestQueue, r *Request) { q.Completed(r); q.TrueUp(start, r, 30) }, "bbbababa"},
		"raised":           {func(q *FairRequestQueue, r *Request) { q.Adjust(start, r, 30) }, "bbbababa"},
		"raised, then not": {func(q *FairRequestQueue, r *Request) { q.Adjust(start, r, 90); q.TrueUp(start, r, 10) }, "babababa"},
		"not lowered":      {func(q *FairRequestQueue, r *Request) { q.Adjust(start, r, 5) }, "babababa"},
		"told twice":       {func(q *FairRequestQueue, r *Request) { q.TrueUp(start, r, 30); q.TrueUp(start, r, 30) }, "bbbababa"},
	} {
		t.Run(name, func(t *testing.T) {
			q := truingUp(t, WFQ, ByArrival)
			keep(t, q, "a", 10, 20)
			keep(t, q, "b", 10, 20)
			c.correct(q, popNext(q))
			if got := by(t, q, 8); got != c.want {
				t.Errorf("%s go, want %s", got, c.want)
			}
		})
	}
}

// A flow waits for its request, which is estimated at 40, as long as that takes. It was 10, so it makes up for the wait:
// but not if it has gone idle meanwhile, or if it was at its cap while others went on.
func TestWFQRefunds(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(q *FairRequestQueue)
		want      string // who goes after the refund
	}{
		"at once": {func(*FairRequestQueue) {}, "aaababab"},
		"idle": {func(q *FairRequestQueue) {
			for waiting(q, "a") > 0 {
				q.Remove(q.top.classes[0].flows.find("a").lanes[0].head)
			}
			by(t, q, 30)
			keep(t, q, "a", 10, 10)
		}, "babababa"},
		"at its cap": {func(q *FairRequestQueue) {
			q.ParkFlow(q.top.classes[0].flows.find("a").lanes[0].head)
			by(t, q, 30)
			q.UnparkFlow(0, "a")
			if who := by(t, q, 1); who != "a" {
				t.Errorf("%s goes, want the flow that others passed", who)
			}
		}, "abababab"},
	} {
		t.Run(name, func(t *testing.T) {
			q := truingUp(t, WFQ, ByArrival)
			keep(t, q, "a", 40, 1)
			keep(t, q, "a", 10, 20)
			keep(t, q, "b", 10, 100)
			r := popNext(q)
			for ; r.Flow != "a"; r = popNext(q) {
				q.Completed(r)
			}
			c.meanwhile(q)
			ends(q, r, 10)
			if got := by(t, q, 8); got != c.want {
				t.Errorf("%s go, want %s", got, c.want)
			}
		})
	}
}

// A flow that owes goes out of turn, because it preempts. It still owes, and so it does not when it has waited in turn.
func TestWFQDebtsOutOfTurn(t *testing.T) {
	q := truingUp(t, WFQ, ByArrival)
	keep(t, q, "debtor", 10, 50)
	keep(t, q, "other", 10, 200)
	ends(q, popNext(q), 1000)
	head := q.top.classes[0].flows.find("debtor").lanes[0].head
	q.Pop(q.Claim(head))
	q.Completed(head)
	if n := servedBefore(t, q, "debtor"); n < 99 || n > 102 {
		t.Errorf("%d of the other flow go before, want the 1010 that the debtor owes", n)
	}
	if who := by(t, q, 4); who != "otherdebtorotherdebtor" {
		t.Errorf("then %s, want by turns", who)
	}
}

// A flow whose debt nobody else makes good is where virtual time is: who comes then does not go on until it is paid.
func TestWFQDebtsConcernThoseWhoWaited(t *testing.T) {
	q := truingUp(t, WFQ, ByArrival)
	keep(t, q, "debtor", 10, 50)
	for range 20 {
		ends(q, popNext(q), 1000)
	}
	keep(t, q, "fresh", 10, 200)
	if n := servedBefore(t, q, "debtor"); n > 101 {
		t.Errorf("%d of the new flow go before, want at most the last request's 1000", n)
	}
}

// Debts and refunds of many of the largest costs at the smallest weight, more than virtual time has room for: what is
// kept of them is bounded, and in the end everybody is served.
func TestWFQLargestTrueUps(t *testing.T) {
	for n := range 40 {
		for _, owes := range []bool{true, false} {
			q := truingUp(t, WFQ, ByArrival, func(c *Config) { c.Weights = map[string]Weight{"wrong": MinWeight, "other": MinWeight} })
			charged, actual := Cost(1), MaxCost
			if !owes {
				charged, actual = actual, charged
			}
			keep(t, q, "wrong", charged, n+5)
			var flying []*Request
			for range n {
				flying = append(flying, popNext(q))
			}
			for _, r := range flying {
				ends(q, r, actual)
				mustHold(t, q)
			}
			keep(t, q, "other", MaxCost, 50)
			if before := servedBefore(t, q, "wrong"); before > 2 {
				t.Errorf("%d times wrong, owes %t: %d of the largest cost go before", n, owes, before)
			}
			if before := servedBefore(t, q, "other"); before > n+5 {
				t.Errorf("%d times wrong, owes %t: %d go before the other flow", n, owes, before)
			}
			mustHold(t, q)
		}
	}
}

// A correction goes by the weight at which the request was charged, whatever the flow's weight is now.
func TestWFQTrueUpUsesTheWeightAtDispatch(t *testing.T) {
	for _, waits := range []bool{false, true} {
		q := truingUp(t, WFQ, ByArrival, func(c *Config) { c.Weights = map[string]Weight{"a": 4 * WeightOne} })
		keep(t, q, "a", 400, 1)
		r := popNext(q)
		if waits {
			keep(t, q, "a", 1, 1)
		}
		cfg := q.config
		cfg.Weights = nil
		reconfigure(t, q, cfg)
		q.TrueUp(start, r, 440)
		keep(t, q, "a", 1, 1)
		if got := q.top.classes[0].flows.find("a").start; got != increment(110, WeightOne) {
			t.Errorf("waits %t: it starts at %d, want 110", waits, got>>virtualBits)
		}
	}
}

// Requests that do not wait leave no tag, as in the seed, and so their usage does not either.
func TestWFQBypassesAreFree(t *testing.T) {
	q := truingUp(t, WFQ, ByArrival)
	for range 10 {
		r := &Request{Flow: "a", Cost: 10}
		q.Bypassed(start, r)
		q.Adjust(start, r, 50)
		ends(q, r, 100)
	}
	if n := len(q.top.classes[0].flows.known); n != 0 {
		t.Errorf("%d flows are known", n)
	}
	keep(t, q, "a", 10, 5)
	keep(t, q, "b", 10, 5)
	if who := by(t, q, 4); who != "abab" {
		t.Errorf("%s go, want by turns", who)
	}
}
