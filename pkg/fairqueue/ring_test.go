package fairqueue

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// inRing queues a request of a ring's class with this cost.
func inRing(t testing.TB, q *FairRequestQueue, ring, class string, cost Cost) *Request {
	t.Helper()
	r := &Request{Path: &Path{Ring: ring, Class: class}, Cost: cost}
	mustPush(t, q, r)
	return r
}

// rings pops n requests and returns their rings, as in "xyx".
func rings(q *FairRequestQueue, n int) string {
	var b strings.Builder
	for range n {
		if r := popNext(q); r != nil {
			b.WriteString(r.Path.Ring)
			q.Completed(r)
		}
	}
	return b.String()
}

func twoRings() []ClassConfig {
	return []ClassConfig{
		{Name: "a", Quantum: 100, Ring: "x"},
		{Name: "b", Quantum: 300, Ring: "x"},
		{Name: "a", Quantum: 1, Ring: "y"},
	}
}

// Profiles by model are rings: they take turns, one request of any cost each, and a ring without requests is skipped.
func TestRingsTakeTurns(t *testing.T) {
	q := classes(t, Stay, twoRings()...)
	for range 6 {
		inRing(t, q, "x", "a", 1000)
		inRing(t, q, "y", "a", 1)
	}
	if got := rings(q, 8); got != "xyxyxyxy" {
		t.Errorf("got %s", got)
	}
	for range 2 {
		popNext(q)
	}
	q.Remove(q.HeadIn(0, "")) // x's last
	if got := rings(q, 1); got != "y" {
		t.Errorf("without one in x: got %s", got)
	}
	inRing(t, q, "y", "a", 1)
	inRing(t, q, "y", "a", 1)
	inRing(t, q, "x", "b", 1)
	if got := rings(q, 3); got != "xyy" {
		t.Errorf("x is next: got %s", got)
	}
}

// A ring without a class that can go keeps its place and its deficits, and earns nothing in others' turns.
func TestABlockedRingIsPassedOver(t *testing.T) {
	q := classes(t, Stay, twoRings()...)
	held := inRing(t, q, "x", "a", 1000)
	inRing(t, q, "x", "b", 1000)
	if popNext(q) != nil && q.classAt(held).deficit+q.top.classes[1].deficit == 0 {
		t.Fatal("nothing is earned in x")
	}
	for _, c := range q.top.classes[:2] {
		if r := c.head(); r != nil {
			q.CloseLane(r, LaneBlocked)
		}
	}
	before := q.Classes()
	for range 5 {
		inRing(t, q, "y", "a", 1)
	}
	if got := rings(q, 5); got != "yyyyy" {
		t.Errorf("got %s", got)
	}
	for i, c := range q.Classes()[:2] {
		if c != before[i] {
			t.Errorf("x has %+v, want %+v", c, before[i])
		}
	}
	q.OpenLane("")
	if popNext(q) != nil {
		t.Error("room opens a lane that is blocked")
	}
	q.OpenLanes()
	if got := rings(q, 2); got != "x" {
		t.Errorf("opened: got %s", got)
	}
}

// Classes with one name in two rings are two classes. A request with an unknown ring belongs to the first ring, and
// with an unknown class to the first class of its ring.
func TestWhoBelongsToWhichRing(t *testing.T) {
	q := classes(t, Stay, twoRings()...)
	for _, test := range []struct {
		path        *Path
		ring, class string
		number      int
	}{
		{nil, "x", "a", 0},
		{&Path{}, "x", "a", 0},
		{&Path{Class: "b"}, "x", "b", 1},
		{&Path{Ring: "y", Class: "a"}, "y", "a", 2},
		{&Path{Ring: "y", Class: "b"}, "y", "a", 2},
		{&Path{Ring: "z", Class: "b"}, "x", "b", 1},
		{&Path{Ring: "X", Class: "c"}, "x", "a", 0},
	} {
		r := &Request{Path: test.path, Cost: 1}
		for _, when := range []string{"before it comes", "waiting", "gone"} {
			ring, class := q.ClassOf(r)
			if n := q.NumberOfClass(r); ring != test.ring || class != test.class || n != test.number {
				t.Errorf("%+v, %s: %s of %s, number %d; want %s of %s, %d", test.path, when, class, ring, n, test.class, test.ring, test.number)
			}
			switch when {
			case "before it comes":
				mustPush(t, q, r)
			case "waiting":
				popNext(q)
			}
		}
	}
}

// Within a ring the order, and so the shares, are as if it were alone, whatever happens in others.
func TestARingIsAsIfAlone(t *testing.T) {
	for seed := range seeds(60) {
		random := rand.New(rand.NewPCG(seed, 21))
		var list, alone []ClassConfig
		for i := range 6 {
			c := ClassConfig{Name: fmt.Sprint(i), Quantum: Cost(1 + random.IntN(300)), Ring: []string{"x", "y"}[random.IntN(2)], Order: Order(random.IntN(2))}
			if list = append(list, c); c.Ring == "x" {
				alone = append(alone, c)
			}
		}
		if len(alone) == 0 {
			continue
		}
		cursor := Cursor(random.IntN(2))
		both, one := classes(t, cursor, list...), classes(t, cursor, alone...)
		var got, want []int
		for n := range 300 {
			c := list[random.IntN(len(list))]
			cost := Cost(1 + random.IntN(1000))
			if random.IntN(3) > 0 {
				r := inRing(t, both, c.Ring, c.Name, cost)
				if r.Owner = n; c.Ring == "x" {
					inRing(t, one, c.Ring, c.Name, cost).Owner = n
				}
				continue
			}
			if r := popNext(both); r != nil && r.Path.Ring == "x" {
				got, want = append(got, r.Owner.(int)), append(want, popNext(one).Owner.(int))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("seed %d:\ngot  %v\nwant %v", seed, got, want)
		}
		mustHold(t, both)
	}
}

// The orders that were recorded from Dynamo 1.6.1 come out exactly in a ring beside another one, too.
func TestDynamoOrdersInARing(t *testing.T) {
	for i, scene := range dynamoScenes(t) {
		if got, want := dynamoOrderIn(t, scene, Advance, "m"), dynamoOrderIn(t, scene, Advance, ""); !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("order %d:\ngot  %v\nwant %v", i+1, got, want)
		}
	}
}

// A reload keeps the rings' turn, deficits and cursors. A removed ring drains, and a new one joins at its place.
func TestReloadOfRings(t *testing.T) {
	q := classes(t, Stay, twoRings()...)
	for range 4 {
		inRing(t, q, "x", "a", 40)
		inRing(t, q, "x", "b", 40)
		inRing(t, q, "y", "a", 1)
	}
	if got := rings(q, 1); got != "x" { // y is next
		t.Fatalf("got %s", got)
	}
	before := q.Classes()
	cfg := q.config
	cfg.Classes = []ClassConfig{{Name: "a", Quantum: 5, Ring: "z"}, twoRings()[2], twoRings()[1], twoRings()[0]}
	reconfigure(t, q, cfg)
	after := q.Classes()
	if after[3].Deficit != before[0].Deficit || before[0].Deficit == 0 {
		t.Errorf("the deficit was %d and is %d", before[0].Deficit, after[3].Deficit)
	}
	inRing(t, q, "z", "a", 1)
	if got := rings(q, 3); got != "yxz" {
		t.Errorf("got %s, want y, whose turn it was, x and z", got)
	}
	cfg.Classes = cfg.Classes[:1] // only z
	reconfigure(t, q, cfg)
	mustHold(t, q)
	if r, c := q.ClassOf(&Request{Path: &Path{Ring: "x", Class: "b"}}); r != "z" || c != "a" {
		t.Errorf("an arrival of a ring that drains joins %s of %s", c, r)
	}
	inRing(t, q, "z", "a", 1)
	if got := rings(q, 99); got != "yxzyxyxxxx" {
		t.Errorf("got %s", got)
	}
	for _, r := range q.top.rings {
		if r.name != "z" {
			t.Errorf("ring %s is still there, with %d in flight", r.name, r.classes[0].inflight)
		}
	}
}

// Limits are those of a ring's class, and an error names both.
func TestLimitsOfRings(t *testing.T) {
	list := twoRings()
	list[2].Limits.Requests = new(int64(1))
	q := classes(t, Stay, list...)
	inRing(t, q, "x", "a", 1)
	inRing(t, q, "x", "a", 1)
	if err := q.Limited(&Request{Path: &Path{Ring: "y", Class: "a"}}, 1); err != nil {
		t.Error(err)
	}
	inRing(t, q, "y", "a", 1)
	err := q.Limited(&Request{Path: &Path{Ring: "y", Class: "a"}}, 1)
	if e := new(LimitError); !errors.As(err, &e) || e.Ring != "y" || e.Class != "a" {
		t.Errorf("got %v", err)
	}
	if err := q.Limited(&Request{Path: &Path{Ring: "x", Class: "a"}}, 0); err != nil {
		t.Error(err)
	}
}

// A flow is entitled to its class's part of its ring, and to the ring's of the tier.
func TestEntitledInRings(t *testing.T) {
	q := classes(t, Stay, twoRings()...)
	inRing(t, q, "x", "a", 1)
	inRing(t, q, "x", "b", 1)
	inRing(t, q, "y", "a", 1)
	got := map[string]int64{}
	for _, v := range q.View(9) {
		got[v.Class+fmt.Sprint(v.Entitled)]++
	}
	if got["a125000"] != 1 || got["b375000"] != 1 || got["a500000"] != 1 {
		t.Errorf("got %v", got)
	}
}

// A request that goes out of turn, because a slot is free for it alone, takes no ring's turn.
func TestAClaimIsNoTurnOfARing(t *testing.T) {
	q := classes(t, Stay, twoRings()...)
	inRing(t, q, "x", "a", 1)
	claimed := inRing(t, q, "x", "b", 1)
	inRing(t, q, "y", "a", 1)
	q.Pop(q.Claim(claimed))
	if got := rings(q, 2); got != "xy" {
		t.Errorf("got %s, want x, whose turn it was, and y", got)
	}
}
