package fairqueue

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// classes returns a queue of one tier with these classes and no limits; each class has one flow, as in Dynamo.
func classes(t testing.TB, cursor Cursor, list ...ClassConfig) *FairRequestQueue {
	t.Helper()
	cfg := DefaultConfig()
	cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity = Shared, 1_000_000, 1_000_000
	cfg.Discipline, cfg.Cursor, cfg.Classes, cfg.Priorities = OneFlow, cursor, list, true
	return queue(t, cfg)
}

func ab(a, b Cost) []ClassConfig {
	return []ClassConfig{{Name: "a", Quantum: a}, {Name: "b", Quantum: b}}
}

// waits queues n requests of a class with this cost.
func waits(t testing.TB, q *FairRequestQueue, class string, cost Cost, n int) {
	t.Helper()
	for range n {
		mustPush(t, q, &Request{Path: &Path{Class: class}, Cost: cost})
	}
}

// goes pops n requests and returns their classes, as in "aab".
func goes(t testing.TB, q *FairRequestQueue, n int) string {
	t.Helper()
	var b strings.Builder
	for range n {
		r := popNext(q)
		if r == nil {
			break
		}
		b.WriteString(r.Path.Class)
		q.Completed(r)
		if err := checkInvariants(q); err != nil && n < 100 {
			t.Fatal(err)
		}
	}
	return b.String()
}

// credit is a class's earnings and refunds.
func credit(q *FairRequestQueue, class int) int64 {
	return q.top.classes[class].deficit + q.top.classes[class].credit
}

// "quantum 10, costs 3,3,3,3: deficit 10 → 7 → 4 → 1, then the cursor advances."
func TestDRRBurst(t *testing.T) {
	q := classes(t, Stay, ab(10, 10)...)
	waits(t, q, "a", 3, 5)
	waits(t, q, "b", 3, 5)
	for _, want := range []int64{7, 4, 1} {
		if who := goes(t, q, 1); who != "a" || credit(q, 0) != want {
			t.Errorf("%s goes, a's credit is %d, want a and %d", who, credit(q, 0), want)
		}
	}
	if who := goes(t, q, 4); who != "bbba" {
		t.Errorf("then %s, want bbba", who)
	}
}

// "q1000/cost 7000/deficit 1000 and q2000/9000/2000 → 4 rounds; the second pops, leaving 5000 and 1000."
func TestDRRRoundsAtOnce(t *testing.T) {
	q := classes(t, Stay, ab(1000, 2000)...)
	waits(t, q, "a", 7000, 2)
	waits(t, q, "b", 9000, 2)
	q.top.classes[0].deficit, q.top.classes[1].deficit = 1000, 2000
	if who := goes(t, q, 1); who != "b" || credit(q, 0) != 5000 || credit(q, 1) != 1000 {
		t.Errorf("%s goes, leaving %d and %d; want b, 5000 and 1000", who, credit(q, 0), credit(q, 1))
	}
}

// "q1/q3, cost 1, 20+60 queued → 80 pops, each four of them one : three."
func TestDRRShares(t *testing.T) {
	q := classes(t, Stay, ab(1, 3)...)
	waits(t, q, "a", 1, 20)
	waits(t, q, "b", 1, 60)
	order := goes(t, q, 81)
	if want := strings.Repeat("abbb", 20); order != want {
		t.Errorf("%s, want %s", order, want)
	}
}

// "q7/q11, cost 100, 10,000 blocked calls → deficits 0, 0."
func TestDRRBlockedClassesEarnNothing(t *testing.T) {
	q := classes(t, Stay, ab(7, 11)...)
	waits(t, q, "a", 100, 1)
	waits(t, q, "b", 100, 1)
	for range 10_000 {
		for {
			c := q.Peek(start, Allowed{Tiers: AllTiers})
			if c.Request == nil {
				break
			}
			q.CloseLane(c.Request, LaneFull)
		}
		q.OpenLanes()
	}
	if credit(q, 0) != 0 || credit(q, 1) != 0 || q.Len() != 2 {
		t.Errorf("credits %d and %d, %d waiting; want 0, 0 and 2", credit(q, 0), credit(q, 1), q.Len())
	}
}

// "q4 with cost 101 while a q100 class is blocked → pops, the blocked one keeps its queue and its deficit."
func TestDRRBlockedClassKeepsItsCredit(t *testing.T) {
	q := classes(t, Stay, ab(4, 100)...)
	waits(t, q, "a", 101, 1)
	waits(t, q, "b", 500, 1)
	q.top.classes[1].deficit = 60
	q.CloseLane(q.top.classes[1].head(), LaneFull)
	if who := goes(t, q, 1); who != "a" || credit(q, 1) != 60 || q.Len() != 1 {
		t.Errorf("%s goes, b has %d and %d wait; want a, 60 and 1", who, credit(q, 1), q.Len())
	}
}

// "fcfs(50, 1) and wspt(50, 1) with q50 → the long one of the first class, then the short one of the second."
func TestDRROrders(t *testing.T) {
	q := classes(t, Stay, ClassConfig{Name: "a", Quantum: 50}, ClassConfig{Name: "b", Quantum: 50, Order: WSPT})
	for _, class := range []string{"a", "b"} {
		waits(t, q, class, 50, 1)
		waits(t, q, class, 1, 1)
	}
	first, second := popNext(q), popNext(q)
	if first.Path.Class != "a" || first.Cost != 50 || second.Path.Class != "b" || second.Cost != 1 {
		t.Errorf("%s with %d, then %s with %d", first.Path.Class, first.Cost, second.Path.Class, second.Cost)
	}
}

// "Equal quantum, 320 + 320 requests of 512 tokens: 140 to 180 of one class in the first 320. 512:128: at least 240 of
// the first in the first 320; 220 to 260 of the second left when the first ends." And for costs below the quantum, with
// the cursor of the released version: "quanta 512:128 with costs of 100: 160 of the first 320, where stay gives 256".
func TestDRRLongRun(t *testing.T) {
	for _, c := range []struct {
		a, b, cost Cost
		cursor     Cursor
		min, max   int // of a in the first 320
	}{
		{512, 512, 512, Stay, 140, 180},
		{512, 128, 512, Stay, 240, 320},
		{512, 128, 100, Stay, 250, 262},
		{512, 128, 100, Advance, 160, 160},
	} {
		q := classes(t, c.cursor, ab(c.a, c.b)...)
		waits(t, q, "a", c.cost, 320)
		waits(t, q, "b", c.cost, 320)
		if n := strings.Count(goes(t, q, 320), "a"); n < c.min || n > c.max {
			t.Errorf("%+v: %d of a in the first 320", c, n)
		}
		if c.cost != 512 || c.b != 128 {
			continue
		}
		for q.top.classes[0].queued > 0 {
			popNext(q)
		}
		if left := q.top.classes[1].queued; left < 220 || left > 260 {
			t.Errorf("%d of b are left when a ends, want 220 to 260", left)
		}
	}
}

// "10,000 lanes, every second one blocked → 5,000 pops without scanning more than 10,000 predicates."
func TestDRRManyLanes(t *testing.T) {
	q := classes(t, Stay, ab(512, 128)...)
	for i := range 10_000 {
		mustPush(t, q, &Request{Path: &Path{Class: "ab"[i/2%2 : i/2%2+1]}, Lane: Lane(fmt.Sprint(i)), Cost: Cost(1 + i%700)})
	}
	asked, popped := 0, 0
	for {
		c := q.Peek(start, Allowed{Tiers: AllTiers})
		if c.Request == nil {
			break
		}
		asked++
		if blocked := (c.Request.Lane[len(c.Request.Lane)-1]-'0')%2 == 1; blocked {
			q.CloseLane(c.Request, LaneFull)
			continue
		}
		q.Pop(c)
		popped++
	}
	if popped != 5000 || asked > 10_000 {
		t.Errorf("%d popped, %d asked: want 5000 of at most 10000", popped, asked)
	}
}

// A class that has saved for a head of cost 10,000 and then gets cheap requests before it does not win with these until
// its savings are spent.
func TestDRRHeadSwap(t *testing.T) {
	q := classes(t, Stay, ClassConfig{Name: "a", Quantum: 100, Order: WSPT}, ClassConfig{Name: "b", Quantum: 100})
	waits(t, q, "a", 10_000, 1)
	waits(t, q, "b", 100, 300)
	if order := goes(t, q, 99); order != strings.Repeat("b", 99) {
		t.Fatalf("%s, want b to go while a saves", order)
	}
	if saved := credit(q, 0); saved < 9_000 {
		t.Fatalf("a has saved %d, want nearly its head's cost", saved)
	}
	waits(t, q, "a", 100, 99)
	if n := strings.Count(goes(t, q, 20), "a"); n < 9 || n > 12 {
		t.Errorf("then %d of 20 are of a, want about half", n)
	}
}

// A class that becomes empty loses its deficit, whether its requests were served or cancelled.
func TestDRREmptyClassBeginsAnew(t *testing.T) {
	q := classes(t, Stay, ab(100, 100)...)
	mustPush(t, q, &Request{Path: &Path{Class: "a"}, Cost: 10_000})
	waits(t, q, "b", 100, 100)
	goes(t, q, 50)
	saver := q.top.classes[0].head()
	if credit(q, 0) < 4000 {
		t.Fatalf("a has saved %d", credit(q, 0))
	}
	q.Remove(saver)
	waits(t, q, "a", 1000, 1)
	if order := goes(t, q, 8); strings.Contains(order, "a") {
		t.Errorf("%s: the new one of a goes by the old one's credit", order)
	}
}

// A claim is paid for later. A requeued release costs its class nothing.
func TestDRRDebtsAndRefunds(t *testing.T) {
	q := classes(t, Stay, ab(100, 100)...)
	waits(t, q, "a", 100, 60)
	waits(t, q, "b", 100, 60)
	for range 10 {
		q.Pop(q.Claim(q.top.classes[0].head()))
	}
	if n := strings.Count(goes(t, q, 30), "a"); n < 9 || n > 11 {
		t.Errorf("after 10 claims of a %d of the next 30 are of a, want 10", n)
	}
	q = classes(t, Stay, ab(100, 100)...)
	waits(t, q, "a", 100, 60)
	waits(t, q, "b", 100, 60)
	kept := 0
	for range 60 {
		r := popNext(q)
		switch {
		case r.Path.Class == "a" && r.seq%2 == 0 && r.Owner == nil:
			r.Owner = "came back"
			q.Requeue(r)
		case r.Path.Class == "a":
			kept++
		}
		mustHold(t, q)
	}
	if kept < 19 || kept > 31 {
		t.Errorf("a kept %d", kept)
	}
	for range 100 { // however many claims, the debt is bounded
		waits(t, q, "b", MaxCost, 1)
		q.Pop(q.Claim(q.top.classes[1].headIn("")))
	}
	if owed := credit(q, 1); owed < -mostOwed {
		t.Errorf("b owes %d", owed)
	}
}

// The largest costs and debts stay in range with the smallest and the largest quanta.
func TestDRRLargestNumbers(t *testing.T) {
	q := classes(t, Stay, ab(1, MaxCost)...)
	for range 40 {
		waits(t, q, "a", MaxCost, 2)
		waits(t, q, "b", MaxCost, 2)
		q.Pop(q.Claim(q.top.classes[0].head()))
		goes(t, q, 3)
	}
	for i := range 2 {
		if c := credit(q, i); c > 2*int64(MaxCost) || c < -mostOwed {
			t.Errorf("class %d: credit %d", i, c)
		}
	}
}

// A reload keeps deficits and waiters. A class that is no longer listed drains and accepts no arrivals.
func TestDRRReload(t *testing.T) {
	q := classes(t, Stay, ab(100, 100)...)
	waits(t, q, "a", 1000, 3)
	waits(t, q, "b", 100, 50)
	goes(t, q, 5)
	saved := credit(q, 0)
	cfg := q.config
	cfg.Classes = []ClassConfig{{Name: "c", Quantum: 5}, {Name: "b", Quantum: 100, Order: WSPT}, {Name: "a", Quantum: 100}}
	reconfigure(t, q, cfg)
	if saved < 400 || q.top.classes[2].deficit != saved {
		t.Errorf("a had saved %d, and has %d", saved, q.top.classes[2].deficit)
	}
	cfg.Classes = cfg.Classes[:2]
	reconfigure(t, q, cfg)
	waits(t, q, "a", 1, 1) // of the first class now
	if n := q.top.classes[0].queued; n != 1 {
		t.Errorf("%d wait in c, want the one of a class that is gone", n)
	}
	if order := goes(t, q, 1000); strings.Count(order, "a") != 4 || len(q.top.classes) != 2 {
		t.Errorf("%s, %d classes left", order, len(q.top.classes))
	}
}

// Within a class, strict priority comes first, then the score. Neither affects other classes.
func TestStrictAndPriority(t *testing.T) {
	push := func(q *FairRequestQueue, at time.Duration, name string, p Path, cost Cost) {
		p.Class = "a"
		if _, err := q.Push(start.Add(at), &Request{Path: &p, Cost: cost, Owner: name}); err != nil {
			t.Fatal(err)
		}
	}
	order := func(q *FairRequestQueue) (names []string) {
		for r := popNext(q); r != nil; r = popNext(q) {
			names = append(names, r.Owner.(string))
		}
		return names
	}
	// "FCFS: priority 50 at t=5 beats 0 at t=0." "Strict 1 at t=1000 beats priority 1000 at t=0."
	q := classes(t, Stay, ab(1, 1)...)
	q.config.QueueTTL = time.Hour
	push(q, 0, "plain", Path{}, 1)
	push(q, 0, "thousand", Path{Priority: 1000}, 1)
	push(q, 5*time.Second, "fifty", Path{Priority: 50}, 1)
	push(q, 6*time.Second, "below nothing", Path{Priority: -50, Strict: -1}, 1)
	push(q, 1000*time.Second, "strict", Path{Strict: 1}, 1)
	push(q, 1000*time.Second, "stricter", Path{Strict: 2}, 1)
	if got, want := order(q), []string{"stricter", "strict", "thousand", "fifty", "plain", "below nothing"}; !slices.Equal(got, want) {
		t.Errorf("fcfs: %v, want %v", got, want)
	}
	// "WSPT: 1/64, 1/1008, 1/1024, 1/1", and (1 + priority) / cost.
	q = classes(t, Stay, ClassConfig{Name: "a", Quantum: 1, Order: WSPT}, ClassConfig{Name: "b", Quantum: 1})
	push(q, 0, "1024", Path{}, 1024)
	push(q, 0, "1008", Path{}, 1008)
	push(q, 0, "64", Path{}, 64)
	push(q, 0, "1", Path{}, 1)
	push(q, 0, "20 of 1010", Path{Priority: 19}, 1010)
	push(q, 0, "strict 5000", Path{Strict: 1}, 5000)
	if got, want := order(q), []string{"strict 5000", "1", "20 of 1010", "64", "1008", "1024"}; !slices.Equal(got, want) {
		t.Errorf("wspt: %v, want %v", got, want)
	}
	q = classes(t, Stay, ab(1, 1)...)
	push(q, 0, "plain", Path{}, 1)
	waits(t, q, "b", 1, 2)
	mustPush(t, q, &Request{Path: &Path{Class: "b", Strict: 9}, Cost: 1})
	if got := goes(t, q, 2); got != "ab" {
		t.Errorf("classes: %s, want ab", got)
	}
}

// An arrival waits behind all classes of its tier: one that went past them, uncharged, would take their turn.
func TestDRRBypass(t *testing.T) {
	q := classes(t, Stay, ab(1, 1)...)
	waits(t, q, "a", 1, 1)
	for class, want := range map[string]bool{"a": false, "b": false, "unknown": false} {
		if may, _ := q.MayBypass(start, &Request{Path: &Path{Class: class}}, true); may != want {
			t.Errorf("class %s: %t, want %t", class, may, want)
		}
	}
}

// A class pays the actual cost of its requests, whenever it is known, and gets overcharges back.
func TestAClassIsTruedUp(t *testing.T) {
	for name, c := range map[string]struct {
		correct func(q *FairRequestQueue, r *Request)
		want    string // who goes after the first one of a, of equal quanta and costs of one
	}{
		"as charged":       {func(*FairRequestQueue, *Request) {}, "babababa"},
		"more":             {func(q *FairRequestQueue, r *Request) { q.TrueUp(start, r, 4) }, "bbbbabab"},
		"more, after all":  {func(q *FairRequestQueue, r *Request) { q.Completed(r); q.TrueUp(start, r, 4) }, "bbbbabab"},
		"raised":           {func(q *FairRequestQueue, r *Request) { q.Adjust(start, r, 4) }, "bbbbabab"},
		"raised, then not": {func(q *FairRequestQueue, r *Request) { q.Adjust(start, r, 9); q.TrueUp(start, r, 1) }, "babababa"},
		"told twice":       {func(q *FairRequestQueue, r *Request) { q.TrueUp(start, r, 4); q.TrueUp(start, r, 4) }, "bbbbabab"},
		"not lowered":      {func(q *FairRequestQueue, r *Request) { q.TrueUp(start, r, 4); q.Adjust(start, r, 2) }, "bbbbabab"},
	} {
		t.Run(name, func(t *testing.T) {
			q := classes(t, Advance, ab(1, 1)...)
			waits(t, q, "a", 1, 20)
			waits(t, q, "b", 1, 20)
			r := popNext(q)
			if r.Path.Class != "a" {
				t.Fatalf("%s goes first", r.Path.Class)
			}
			c.correct(q, r)
			if who := goes(t, q, 8); who != c.want {
				t.Errorf("%s go, want %s", who, c.want)
			}
		})
	}
}

// A class loses its credit with its last waiter, and pays nothing with it. While it is empty, the corrections of its
// requests add up; it loses the surplus in the end.
func TestAnEmptyClassPaysNothingWithLostCredit(t *testing.T) {
	q := classes(t, Advance, ab(10, 10)...)
	waits(t, q, "a", 10, 2)
	first := popNext(q)
	q.TrueUp(start, first, 4)
	popNext(q) // the last one, with a credit of 6 left
	if q.TrueUp(start, first, 9); credit(q, 0) != -5 {
		t.Errorf("a's credit is %d, want the debt of 5 that became known when it was empty", credit(q, 0))
	}
	if q.TrueUp(start, first, 1); credit(q, 0) != 3 {
		t.Errorf("a's credit is %d, want 3: what became known while it was empty adds up", credit(q, 0))
	}
	waits(t, q, "a", 10, 1)
	if credit(q, 0) != 0 {
		t.Errorf("a begins with a credit of %d, want none", credit(q, 0))
	}
}

// The overestimate of a request is credited to its class. If that class is removed, or no longer shares with others, no
// other class is corrected instead.
func TestTrueUpOfClassesThatCameAndWent(t *testing.T) {
	q := classes(t, Advance, ab(10, 10)...)
	waits(t, q, "a", 10, 3)
	waits(t, q, "b", 10, 3)
	r := popNext(q)
	if q.TrueUp(start, r, 4); credit(q, 0) != 6 {
		t.Errorf("a's credit is %d, want the 6 that it was charged too much", credit(q, 0))
	}
	q.Drain(nil)
	cfg := q.config
	cfg.Classes = []ClassConfig{{Name: "c", Quantum: 10}, {Name: "b", Quantum: 10}}
	reconfigure(t, q, cfg)
	q.TrueUp(start, r, 100)
	q.Completed(r)
	if credit(q, 0) != 0 {
		t.Errorf("c's credit is %d, want none of a's debt", credit(q, 0))
	}
	late := &Request{Path: &Path{Class: "b"}, Cost: 10}
	mustPush(t, q, late)
	popNext(q)
	cfg.Classes = cfg.Classes[1:]
	reconfigure(t, q, cfg)
	was := credit(q, 0)
	if q.TrueUp(start, late, 500); credit(q, 0) != was {
		t.Errorf("b's credit went from %d to %d, with nobody to share with", was, credit(q, 0))
	}
	mustHold(t, q)
}
