package fairqueue

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

var withFlows = []Discipline{WFQ, VTC, FairShare}

// matchingConfig is one tier in which requests take others' turns.
func matchingConfig(d Discipline, o Order, quantum Cost) Config {
	cfg := DefaultConfig()
	cfg.CapacityMode, cfg.TotalCapacity, cfg.FlowCapacity, cfg.QueueTTL = Shared, 1_000_000, 1_000_000, time.Hour
	cfg.Discipline, cfg.Order, cfg.LocalityQuantum = d, o, quantum
	return cfg
}

// popMatch pops the owner's first request that may take the turn, or else the request whose turn it is.
func popMatch(q *FairRequestQueue, now time.Time, owner any) *Request {
	c := q.Peek(now, Allowed{Tiers: AllTiers})
	best := c.Request
	q.Matches(&c, true, func(r *Request) bool {
		if r.Owner == owner {
			best = r
		}
		return r.Owner != owner
	})
	c = c.Instead(best)
	q.Pop(c)
	return best
}

// pushNamed pushes requests of a flow with these owners, of cost 1.
func pushNamed(t *testing.T, q *FairRequestQueue, flow string, names ...string) {
	t.Helper()
	for _, name := range names {
		mustPush(t, q, &Request{Flow: flow, Owner: name, Cost: 1})
	}
}

// may lists the owners of those that may take the turn.
func may(q *FairRequestQueue, now time.Time) string {
	var names []string
	c := q.Peek(now, Allowed{Tiers: AllTiers})
	q.Matches(&c, true, func(r *Request) bool {
		names = append(names, r.Owner.(string))
		return true
	})
	return strings.Join(names, " ")
}

func wantMay(t *testing.T, q *FairRequestQueue, now time.Time, want string) {
	t.Helper()
	if got := may(q, now); got != want {
		t.Errorf("these may take the turn: %s, want %s", got, want)
	}
}

// In each discipline one of the first eight of a flow may go before the others. With the order of arrival none may.
func TestFirstEightOfAFlowMayTakeItsTurn(t *testing.T) {
	for _, d := range []Discipline{WFQ, VTC, FairShare, OneFlow} {
		for _, o := range []Order{Locality, FCFS, WSPT, EDF} {
			q := queue(t, matchingConfig(d, o, 0))
			pushNamed(t, q, "a", strings.Fields("a1 a2 a3 a4 a5 a6 a7 a8 a9")...)
			if o != Locality {
				wantMay(t, q, start, "a1")
				continue
			}
			wantMay(t, q, start, "a1 a2 a3 a4 a5 a6 a7 a8")
			popMatch(q, start, "a3")
			wantMay(t, q, start, "a1 a2 a4 a5 a6 a7 a8 a9")
			popMatch(q, start, "a1")
			wantMay(t, q, start, "a2 a4 a5 a6 a7 a8 a9")
		}
	}
}

// A class of its own order has it, and no other class.
func TestLocalityOfAClass(t *testing.T) {
	cfg := matchingConfig(VTC, FCFS, 0)
	cfg.Classes = []ClassConfig{{Name: "x", Quantum: 5, Order: Locality}, {Name: "y", Quantum: 5, Order: FCFS}}
	for _, c := range []struct{ class, want string }{{"x", "1 2"}, {"y", "1"}} {
		q := queue(t, cfg)
		for _, name := range []string{"1", "2"} {
			mustPush(t, q, &Request{Flow: "a", Path: &Path{Class: c.class}, Owner: name, Cost: 1})
		}
		wantMay(t, q, start, c.want)
	}
}

// Requests that always match overtake each waiting request of their flow at most 64 times. Then it goes.
func TestOvertakenAtMostSixtyFourTimes(t *testing.T) {
	for _, d := range []Discipline{WFQ, VTC, FairShare, OneFlow} {
		q := queue(t, matchingConfig(d, Locality, 0))
		pushNamed(t, q, "a", "first", "second")
		went := map[any]int{}
		for i := 0; went["first"] == 0 || went["second"] == 0; i++ {
			pushNamed(t, q, "a", "match")
			r := popMatch(q, start, "match")
			if went[r.Owner] == 0 {
				went[r.Owner] = i + 1
			}
		}
		// Both have been overtaken 64 times by then. The second goes next.
		if went["first"] != 65 || went["second"] != 66 {
			t.Errorf("discipline %d: they go %d. and %d., want 65. and 66.", d, went["first"], went["second"])
		}
	}
}

// In its flow's turn a request is overtaken at most 16 times by other flows, whatever the quantum.
func TestPassedAtMostSixteenTimes(t *testing.T) {
	for _, d := range withFlows {
		q := queue(t, matchingConfig(d, FCFS, 1_000_000))
		pushNamed(t, q, "a", "first", "next")
		for range 100 {
			pushNamed(t, q, "b", "match")
			pushNamed(t, q, "c", "match")
		}
		turns := 0
		for popMatch(q, start, "match").Owner != "first" {
			turns++
		}
		if turns != 16 {
			t.Errorf("discipline %d: overtaken %d times, want 16", d, turns)
		}
	}
}

// After half of the time to its client's deadline a request is not overtaken any more; the TTL does not count.
func TestHalfTheDeadline(t *testing.T) {
	for _, o := range []Order{Locality, FCFS} {
		q := queue(t, matchingConfig(VTC, o, 100))
		in := func(flow, name string, within time.Duration) {
			mustPush(t, q, &Request{Flow: flow, Owner: name, Within: within, Cost: 1})
		}
		in("a", "a1", 0)
		in("a", "a2", 10*time.Second)
		in("a", "a3", 0)
		in("b", "b1", 20*time.Second)
		in("c", "c1", 0)
		steps := []struct {
			after      time.Duration
			want, fcfs string
		}{
			{4999 * time.Millisecond, "a1 a2 a3 b1 c1", "a1 b1 c1"},
			{5 * time.Second, "a1 a2 b1 c1", "a1 b1 c1"},
			{9999 * time.Millisecond, "a1 a2 b1 c1", "a1 b1 c1"},
			{10 * time.Second, "a1 a2 b1", "a1 b1"},
			{time.Hour - 1, "a1 a2 b1", "a1 b1"},
		}
		for _, s := range steps {
			if o == FCFS {
				s.want = s.fcfs
			}
			wantMay(t, q, start.Add(s.after), s.want)
		}
		popMatch(q, start, "a1")
		popMatch(q, start, "b1")
		popMatch(q, start, "c1")
		if o == FCFS {
			in("b", "b2", 0)
			wantMay(t, q, start.Add(5*time.Second), "a2") // whose turn it is
		}
	}
}

// Only requests of the strict priority of the one whose turn it is compete, in its flow and in others. Priorities within
// that are the order in which they are looked at.
func TestStrictPriorityIsKept(t *testing.T) {
	cfg := matchingConfig(VTC, Locality, 100)
	cfg.Priorities = true
	q := queue(t, cfg)
	in := func(flow, name string, strict, priority int) {
		mustPush(t, q, &Request{Flow: flow, Owner: name, Path: &Path{Strict: strict, Priority: priority}, Cost: 1})
	}
	in("a", "low", 0, 9)
	in("a", "a1", 1, 0)
	in("a", "a2", 1, 5)
	in("a", "a3", 1, 0)
	in("b", "higher", 2, 0)
	in("c", "c1", 1, 0)
	in("c", "below", 0, 0)
	in("d", "lower", 0, 0)
	wantMay(t, q, start, "a2 a1 a3 c1")
	cfg.Order = FCFS
	cfg.LocalityQuantum = 0
	for range 20 { // more than are looked at
		in("a", "a4", 1, 0)
	}
	reconfigure(t, q, cfg)
	wantMay(t, q, start, "a2")
}

// A flow competes while what it is ahead of the one whose turn it is, times its weight, is at most the quantum; with the
// order of arrival its first request does, with that of locality its first eight, and in all disciplines the first eight flows.
func TestQuantumByWeight(t *testing.T) {
	cfg := matchingConfig(VTC, FCFS, 100)
	cfg.Weights = map[string]Weight{"heavy": 4 * WeightOne, "light": WeightOne / 4}
	q := queue(t, cfg)
	for _, flow := range []string{"least", "heavy", "light", "equal"} { // all begin at 0 but for what they pay in advance
		mustPush(t, q, &Request{Flow: flow, Cost: 1, Owner: flow})
		f := q.top.classes[0].flows.find(flow)
		f.start = f.class.virtual
		f.retag(nil)
	}
	wantMay(t, q, start, "least heavy light equal")
	move := func(flow string, by VirtualTime) {
		f := q.top.classes[0].flows.find(flow)
		f.start += by
		f.retag(nil)
	}
	move("heavy", 25<<virtualBits)
	move("light", 400<<virtualBits)
	move("equal", 100<<virtualBits)
	wantMay(t, q, start, "least heavy equal light")
	move("heavy", 1)
	wantMay(t, q, start, "least equal light")
	move("light", 1)
	wantMay(t, q, start, "least equal")
	move("equal", 1)
	wantMay(t, q, start, "least")
}

// The first eight flows compete, however many wait.
func TestFirstEightFlowsCompete(t *testing.T) {
	for _, d := range withFlows {
		q := queue(t, matchingConfig(d, Locality, 1000))
		for i := range 100 {
			flow := fmt.Sprintf("f%02d", i)
			pushNamed(t, q, flow, flow+"a", flow+"b")
		}
		wantMay(t, q, start, "f00a f00b f01a f01b f02a f02b f03a f03b f04a f04b f05a f05b f06a f06b f07a f07b")
	}
}

// Flows that are parked, in other lanes, classes or tiers, do not compete.
func TestOthersThatDoNotCompete(t *testing.T) {
	cfg := matchingConfig(VTC, FCFS, 1000)
	cfg.Tiers = []TierConfig{{Name: "high", QueueSize: NoLimit}, {Name: "low", QueueSize: NoLimit}}
	cfg.Classes = []ClassConfig{{Name: "x", Quantum: 10}, {Name: "y", Quantum: 10}}
	q := queue(t, cfg)
	in := func(name, class string, tier int, lane Lane) *Request {
		r := &Request{Flow: name, Owner: name, Path: &Path{Class: class}, Tier: tier, Lane: lane, Cost: 1}
		mustPush(t, q, r)
		return r
	}
	in("turn", "x", 0, "")
	in("other", "x", 0, "")
	in("class", "y", 0, "")
	in("tier", "x", 1, "")
	in("lane", "x", 0, "l")
	parked := in("parked", "x", 0, "")
	q.ParkFlow(parked)
	wantMay(t, q, start, "turn other")
	q.UnparkFlow(parked.Tier, "parked")
	wantMay(t, q, start, "turn other parked")
}

// A request does not take a turn that its class, or its weighted tier, could not have with it.
func TestTurnsThatAreAfforded(t *testing.T) {
	cfg := matchingConfig(VTC, Locality, 1000)
	cfg.Classes = []ClassConfig{{Name: "x", Quantum: 10, Order: Locality}, {Name: "y", Quantum: 10}}
	q := queue(t, cfg)
	in := func(flow, name, class string, tier int, cost Cost) {
		mustPush(t, q, &Request{Flow: flow, Owner: name, Path: &Path{Class: class}, Tier: tier, Cost: cost})
	}
	in("a", "turn", "x", 0, 10)
	in("a", "one more round", "x", 0, 11)
	in("a", "cheaper", "x", 0, 1)
	in("b", "two more", "x", 0, 21)
	in("b", "alike", "x", 0, 10)
	in("c", "other class", "y", 0, 1)
	wantMay(t, q, start, "turn cheaper alike")

	cfg = matchingConfig(VTC, Locality, 1000)
	cfg.TierMode = Weighted
	cfg.Tiers = []TierConfig{{Name: "p", Weight: WeightOne, QueueSize: NoLimit}, {Name: "q", Weight: WeightOne, QueueSize: NoLimit}}
	q = queue(t, cfg)
	in("a", "turn", "", 0, 10)
	in("a", "dearer", "", 0, 11)
	in("a", "cheaper", "", 0, 9)
	wantMay(t, q, start, "turn dearer cheaper") // no other tier waits
	in("a", "other tier", "", 1, 1)
	wantMay(t, q, start, "turn cheaper")
	q.byID[0].deficit = 11 << deficitBits
	wantMay(t, q, start, "turn dearer cheaper")
}

// Under a competing flow only the next user competes.
func TestUsersOfAFlowThatCompetes(t *testing.T) {
	cfg := matchingConfig(VTC, Locality, 1000)
	cfg.Levels = 2
	q := queue(t, cfg)
	in := func(flow, user, name string) {
		mustPush(t, q, &Request{Flow: flow, Owner: name, Path: &Path{Under: []string{user}}, Cost: 1})
	}
	in("a", "u", "au1")
	in("a", "v", "av1")
	in("a", "u", "au2")
	in("b", "w", "bw1")
	in("b", "x", "bx1")
	in("b", "w", "bw2")
	wantMay(t, q, start, "au1 au2 bw1 bw2")
	popMatch(q, start, "bw2")
	wantMay(t, q, start, "au1 au2 bx1")
	popMatch(q, start, "au2")
	wantMay(t, q, start, "av1 bx1")
}

// Without matching no request may take a turn, and a pop of any but the head is an error.
func TestNobodyTakesATurnByDefault(t *testing.T) {
	cfg := DefaultConfig()
	if cfg.LooksForMatches() {
		t.Error("it looks for matches")
	}
	for _, c := range []Config{matchingConfig(WFQ, Locality, 0), matchingConfig(WFQ, FCFS, 1)} {
		if !c.LooksForMatches() {
			t.Errorf("%+v does not look for matches", c)
		}
	}
	q := queue(t, cfg)
	pushNamed(t, q, "a", "a1", "a2")
	pushNamed(t, q, "b", "b1")
	wantMay(t, q, start, "a1")
}

// The quantum is for flows, and a cost.
func TestLocalityQuantumIsChecked(t *testing.T) {
	for _, c := range []struct {
		d    Discipline
		q    Cost
		want string
	}{
		{OneFlow, 5, "LocalityQuantum: 5: must be 0 with Discipline none, which knows no flows"},
		{WFQ, -1, "LocalityQuantum: -1: must be from 0 to 1073741824"},
		{VTC, MaxCost + 1, "LocalityQuantum: 1073741825: must be from 0 to 1073741824"},
	} {
		cfg := matchingConfig(c.d, Locality, c.q)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
