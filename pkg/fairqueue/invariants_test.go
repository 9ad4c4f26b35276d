package fairqueue

import (
	"fmt"
	"maps"
	"testing"

	"github.com/weir-epp/weir/internal/heap"
)

// mustHold fails the test if an invariant does not hold.
func mustHold(t testing.TB, q *FairRequestQueue) {
	t.Helper()
	if err := checkInvariants(q); err != nil {
		t.Fatal(err)
	}
}

// checkInvariants returns a violated invariant of the queue's state, or nil. It checks the list in the package comment
// by visiting everything, in the simplest way.
func checkInvariants(q *FairRequestQueue) (err error) {
	fail := func(format string, args ...any) {
		if err == nil {
			err = fmt.Errorf(format, args...)
		}
	}
	// Each heap is ordered and has the right index for each of its elements.
	deadlinesProblem(&q.due, fail)
	waiting, queued := map[*Request]bool{}, 0
	for rank, t := range q.tiers {
		name := t.config.Name
		if t.rank != rank || q.byID[t.id] != t {
			fail("tier %s: rank %d, id %d: not at rank %d or not known by its id", name, t.rank, t.id, rank)
		}
		if t.removed == (q.names[name] == t) {
			fail("tier %s: removed %t, but taking arrivals by its name is the same", name, t.removed)
		}
		tierProblem(q, t, waiting, fail)
		queued += t.queued
	}
	// Totals are sums, and each waiting request is among the deadlines exactly once.
	if q.queued != queued || q.queued != len(waiting) {
		fail("queued %d, the tiers' sum %d, requests %d", q.queued, queued, len(waiting))
	}
	arrived := uint64(0)
	for r := range waiting {
		arrived += uint64(r.arrived)
	}
	if q.arrivedSum != arrived {
		fail("arrivals sum up to %d, counted %d", arrived, q.arrivedSum)
	}
	due := 0
	for r := range q.due.all() {
		due++
		if !waiting[r] {
			fail("request %d has a deadline, but does not wait", r.seq)
		}
	}
	if due != len(waiting) {
		fail("%d requests wait, %d have a deadline", len(waiting), due)
	}
	awaiting := map[Lane]int{}
	for _, t := range q.tiers {
		for _, c := range t.classes {
			for name, l := range c.lanes {
				if n := l.rooms.Len(); n > 0 {
					awaiting[name] += n
				}
			}
		}
	}
	if !maps.Equal(q.awaiting, awaiting) {
		fail("by lane %v flows await room, counted %v", awaiting, q.awaiting)
	}
	if top := q.top; top == nil || top.removed {
		fail("the highest tier takes no arrivals")
	}
	if b := q.budget.credit; b < 0 || b > promotionsBanked*promotionCost {
		fail("promotion credit %d: want 0 to %d", b, promotionsBanked*promotionCost)
	}
	return err
}

type failf func(format string, args ...any)

func deadlinesProblem(d *deadlines, fail failf) {
	heapProblem(&d.odd, "odd deadlines", fail)
	var last *Request
	for r := d.first; r != nil; last, r = r, r.later {
		if r.sooner != last || r.inDue != 0 || last != nil && r.key().Before(last.key()) {
			fail("deadlines: request %d is out of order", r.seq)
			return
		}
	}
	if last != d.last {
		fail("deadlines: the list does not end with its last request")
	}
}

func listed(d *deadlines, r *Request) bool {
	return r.inDue == 0 && (r.sooner != nil && r.sooner.later == r || d.first == r)
}

func heapProblem[T heap.Item](h *heap.Heap[T], name string, fail failf) {
	if err := h.Problem(); err != nil {
		fail("%s: %v", name, err)
	}
}

// flowTableProblem checks that every flow is known by its key and is either tracked, resting or kept.
func flowTableProblem(t *flowTable, fail failf) {
	tracked, resting := 0, 0
	for key, f := range t.known {
		if f.key != key {
			fail("flow %q is known as %q", f.key, key)
		}
		switch {
		case f.tracked:
			tracked++
		case f.resting:
			resting++
		}
		if f.tracked != (f.queued > 0) || f.resting != (f.queued == 0 && f.inflight > 0) {
			fail("flow %q: tracked %t, resting %t, with %d queued and %d in flight", key, f.tracked, f.resting,
				f.queued, f.inflight)
		}
	}
	inOrder := 0
	for f := range t.all() {
		if inOrder++; !f.tracked || t.known[f.key] != f {
			fail("tracked flow %q is out of place", f.key)
		}
	}
	if inOrder != tracked {
		fail("%d flows are tracked, %d in order", tracked, inOrder)
	}
	kept := 0
	var last *flow
	for f := t.oldest; f != nil; last, f = f, f.position.newer {
		kept++
		if f.tracked || f.resting || f.position.older != last || t.known[f.key] != f {
			fail("kept flow %q is out of place", f.key)
			return
		}
	}
	if tracked != t.tracked || kept != t.kept || last != t.newest || tracked+resting+kept != len(t.known) || kept > t.most {
		fail("%d flows known, %d tracked, %d kept: want %d, %d", len(t.known), tracked, kept, t.tracked, t.kept)
	}
}

// tierProblem checks one tier and adds its requests to waiting.
func tierProblem(q *FairRequestQueue, t *tier, waiting map[*Request]bool, fail failf) {
	queued, reserved, stuck, names := 0, 0, 0, map[string]bool{}
	for _, c := range t.classes {
		r := classProblem(q, c, waiting, fail)
		queued += c.queued
		reserved += r
		for _, l := range c.lanes {
			stuck += l.stuck()
		}
		if names[c.config.Ring+"/"+c.config.Name] || c.tier != t || c.drained() || c.gone || c.inflight < 0 {
			fail("tier %s: class %q is there twice, another tier's, or has drained, or fewer than nothing is in flight", t.config.Name, c.config.Name)
		}
		names[c.config.Ring+"/"+c.config.Name] = true
	}
	if t.classes[0].removed || t.rings[0].removed() {
		fail("tier %s: nobody takes arrivals of no class", t.config.Name)
	}
	ringsProblem(t, fail)
	if t.queued != queued || t.reserved != reserved || t.stuck != stuck {
		fail("tier %s: queued %d (%d), reserved %d (%d), stuck %d (%d)",
			t.config.Name, t.queued, queued, t.reserved, reserved, t.stuck, stuck)
	}
	if t.queued == 0 && t.deficit != 0 {
		fail("tier %s: empty with a deficit of %d", t.config.Name, t.deficit)
	}
	if t.deficit > deficitCap || t.deficit < -deficitCap {
		fail("tier %s: deficit %d beyond its cap", t.config.Name, t.deficit)
	}
}

// ringsProblem checks that each class of a tier is in the ring of its name, and each ring in the tier's.
func ringsProblem(t *tier, fail failf) {
	classes, names, next := 0, map[string]bool{}, false
	for i, r := range t.rings {
		if r.place != i || r.tier != t || names[r.name] || len(r.classes) == 0 {
			fail("tier %s: ring %q at %d says %d, is there twice, another tier's or empty", t.config.Name, r.name, i, r.place)
		}
		names[r.name], next = true, next || r == t.next
		for place, c := range r.classes {
			if classes++; c.ring != r || c.place != place || c.config.Ring != r.name {
				fail("tier %s: class %q of ring %q is in ring %q at %d", t.config.Name, c.config.Name, c.config.Ring, r.name, place)
			}
		}
	}
	if classes != len(t.classes) || !next {
		fail("tier %s: %d classes in rings, want %d; the next turn is one of them: %t", t.config.Name, classes, len(t.classes), next)
	}
}

// classProblem checks a class, and returns its flows' reservations.
func classProblem(q *FairRequestQueue, c *class, waiting map[*Request]bool, fail failf) (reserved int) {
	name := fmt.Sprintf("class %q of tier %s", c.config.Name, c.tier.config.Name)
	queued, flowLanes := siblingsProblem(q, c, &c.siblings, nil, waiting, fail)
	for f := range c.flows.all() {
		reserved += int(f.reserves)
	}
	heapProblem(&c.open, "open lanes", fail)
	heapProblem(&c.busy, "busy lanes", fail)
	heapProblem(&c.aged, "aged lanes", fail)
	linedUp := 0
	for name, l := range c.lanes {
		heapProblem(&l.flows, fmt.Sprintf("flows of lane %q", name), fail)
		heapProblem(&l.ages, fmt.Sprintf("ages of lane %q", name), fail)
		linedUp += laneProblem(c, l, fail)
		if l.name != name || l.class != c {
			fail("lane %q is kept as %q", l.name, name)
		}
		// A lane is in its class's heap if and only if it is open and has a flow that is not parked.
		some := l.flows.Len() > 0
		if in := c.open.Holds(l); in != (some && l.state == LaneOpen) {
			fail("lane %q: state %d, flows %t, among the open ones %t", name, l.state, some, in)
		}
		want := c.guarded && some && (l.state == LaneOpen || l.state == LaneBusy)
		wantBusy := want && l.state == LaneBusy
		if aged, busy := c.aged.Holds(&l.oldest), c.busy.Holds(&l.busy); aged != want || busy != wantBusy {
			fail("lane %q: state %d, flows %t, among the aged ones %t, the busy ones %t", name, l.state, some, aged, busy)
		}
	}
	var sum amounts
	for r := range waiting {
		if r.flowLane.lane.class == c {
			sum.count(r, 1)
		}
	}
	if sum != c.amounts {
		fail("%s: %v waits, counted as %v", name, sum, c.amounts)
	}
	if c.queued != queued || linedUp != flowLanes {
		fail("%s: queued %d (%d), flow lanes %d (%d)", name, c.queued, queued, linedUp, flowLanes)
	}
	wfqProblem(&c.siblings, name, fail)
	vtcProblem(&c.siblings, name, fail)
	fairProblem(c, name, fail)
	return reserved
}

// siblingsProblem checks the flows of a level and those under them. It returns the number of requests that wait there,
// and the number of flowLanes of the level's flows.
func siblingsProblem(
	q *FairRequestQueue, c *class, in *siblings, above *flow, waiting map[*Request]bool, fail failf,
) (queued, flowLanes int) {
	var weights Weight
	flowTableProblem(&in.flows, fail)
	for f := range in.flows.all() {
		if f.siblings != in || f.above != above || f.class != c {
			fail("flow %q is not where it belongs", f.key)
		}
		flowProblem(q, c, f, waiting, fail)
		queued += f.queued
		weights += f.weight
		flowLanes += len(f.lanes)
	}
	if in.weights != weights {
		fail("weights %d, their sum %d", in.weights, weights)
	}
	if in.shed.enabled {
		sheddingProblem(in, fail)
	}
	return queued, flowLanes
}

// flowProblem checks a flow and its lines, or the flows under it.
func flowProblem(q *FairRequestQueue, c *class, f *flow, waiting map[*Request]bool, fail failf) {
	queued, cost := 0, int64(0)
	if f.under != nil {
		siblingsProblem(q, c, f.under, f, waiting, fail)
		wfqProblem(f.under, "flow "+f.key, fail)
		vtcProblem(f.under, "flow "+f.key, fail)
		for g := range f.under.flows.all() {
			cost += g.cost
		}
	}
	for i, fl := range f.lanes {
		if int(fl.laneIndex) != i || f.laneOf(fl.lane.name) != fl {
			fail("flow %q: its lane %q is not found", f.key, fl.lane.name)
		}
		if fl.flow != f || c.lanes[fl.lane.name] != fl.lane {
			fail("flow %q: a line of another flow or of a lane that is gone", f.key)
		}
		if fl.above != nil && (fl.above.flow != f.above || fl.above.lane != fl.lane) {
			fail("flow %q: its part of lane %q is under another's", f.key, fl.lane.name)
		}
		// A part is parked if its flow is at its cap, or if all flows under it are parked.
		if parked := fl.atCap || fl.under != nil && fl.under.flows.Len() == 0; parked != (fl.parked > 0) {
			fail("flow %q lane %q: parked %t, at its cap %t", f.key, fl.lane.name, fl.parked > 0, fl.atCap)
		}
		n := 0
		if f.under == nil {
			var lineCost int64
			n, lineCost = lineProblem(q, fl, waiting, fail)
			cost += lineCost
		} else {
			n = branchProblem(fl, fail)
		}
		if n == 0 || n != fl.queued || fl.head == nil {
			fail("flow %q lane %q: %d requests, counted %d", f.key, fl.lane.name, n, fl.queued)
			continue
		}
		// The tag of a head is what the discipline computes now, so no tag is out of date.
		if tag := f.siblings.discipline.tag(&f.siblings.level, &f.share, fl.head); fl.tag != tag {
			fail("flow %q lane %q: tag %d, want %d", f.key, fl.lane.name, fl.tag, tag)
		}
		b := fl.ownBranch()
		if fl.parked > 0 && (int(fl.parked) > len(b.parked) || b.parked[fl.parked-1] != fl) {
			fail("flow %q lane %q: it is not where it is parked", f.key, fl.lane.name)
		}
		if fl.above != nil && (fl.awaits != 0 || fl.awaitsAge != 0) {
			fail("flow %q lane %q: it awaits room under another", f.key, fl.lane.name)
		}
		if in := b.flows.Holds(fl); in == (fl.parked > 0) || (in && c.guarded) != b.ages.Holds((*age)(fl)) {
			fail("flow %q lane %q: parked %t, in its lane's heap %t", f.key, fl.lane.name, fl.parked > 0, in)
		}
		queued += n
	}
	if queued == 0 || f.queued != queued || f.cost != cost {
		fail("flow %q: queued %d (%d), cost %d (%d)", f.key, f.queued, queued, f.cost, cost)
	}
	weight, capacity := q.config.leastWeight(f), 0
	if f.above == nil {
		capacity = q.config.flowCapacity(f.key)
	}
	if lower := len(q.config.Roles) > 0 && f.weight < weight; f.weight != weight && !lower || f.capacity != capacity {
		fail("flow %q: weight %d, capacity %d are not the configured ones", f.key, f.weight, f.capacity)
	}
}

// sheddingProblem checks the orders that displacement uses.
func sheddingProblem(in *siblings, fail failf) {
	s := &in.shed
	inTree := 0
	var last *flow
	var walk func(f *flow) (least *flow)
	walk = func(f *flow) *flow {
		if f == nil {
			return nil
		}
		n := &f.shed.node
		for _, child := range []*flow{n.left, n.right} {
			if child != nil && child.priority() > f.priority() {
				fail("share tree: flow %q is below a lower priority", child.key)
			}
		}
		left := walk(n.left)
		if last != nil && !shareBefore(last, f) {
			fail("share tree: flow %q is not behind %q", f.key, last.key)
		}
		last = f
		inTree++
		if in.flows.find(f.key) != f || f.queued == 0 {
			fail("share tree: flow %q is not tracked, or has %d requests", f.key, f.queued)
		}
		least := lessRecent(lessRecent(f, left), walk(n.right))
		if n.least != least {
			fail("share tree: flow %q knows a wrong least recently displaced one", f.key)
		}
		return least
	}
	walk(s.shares.root)
	if inTree != in.flows.len() {
		fail("shedding order: %d in the tree, of %d flows", inTree, in.flows.len())
	}
}

// audit checks the invariants after each step, and also what only two successive steps show: those of wfq, and that
// reservations fit unless a reload or a requeue exceeded them.
type audit struct {
	wfqAudit
	vtcAudit
	excused bool
}

func (a *audit) check(t testing.TB, q *FairRequestQueue) {
	t.Helper()
	if err := checkInvariants(q); err != nil {
		t.Fatalf("invariant broken: %v", err)
	}
	a.wfqAudit.check(t, q)
	if q.config.Discipline == VTC {
		a.vtcAudit.check(t, q)
	}
	if q.config.CapacityMode != Reserved || a.excused {
		return
	}
	if q.config.TierMode == Strict && q.reserved() > q.config.TotalCapacity {
		t.Fatalf("%d reserved of %d", q.reserved(), q.config.TotalCapacity)
	}
	for _, tier := range q.tiers {
		if q.config.TierMode == Weighted && !tier.removed && tier.reserved > q.tierShare(tier) {
			t.Fatalf("tier %s: %d reserved of its share %d", tier.config.Name, tier.reserved, q.tierShare(tier))
		}
	}
}
