package fairqueue

import (
	"fmt"
	"testing"
)

// checkInvariants says what is wrong with the queue's state; nil: nothing. The list is that of the package comment.
// It walks everything, by the plainest means.
func checkInvariants(q *FairRequestQueue) (err error) {
	fail := func(format string, args ...any) {
		if err == nil {
			err = fmt.Errorf(format, args...)
		}
	}
	// Each heap is ordered and knows the place of each of its elements.
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
	if q.due.len() != len(waiting) {
		fail("%d requests wait, %d have a deadline", len(waiting), q.due.len())
	}
	for r := range q.due.all() {
		if !waiting[r] {
			fail("request %d has a deadline, but does not wait", r.seq)
		}
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
	n := 0
	var last *Request
	for r := d.first; r != nil; last, r = r, r.later {
		n++
		if r.sooner != last || r.inDue != 0 || last != nil && r.key().before(last.key()) {
			fail("deadlines: request %d is out of order", r.seq)
			return
		}
	}
	if n != d.listed || last != d.last {
		fail("deadlines: %d are listed, want %d", n, d.listed)
	}
}

func listed(d *deadlines, r *Request) bool {
	return r.inDue == 0 && (r.sooner != nil && r.sooner.later == r || d.first == r)
}

func heapProblem[T heapItem](h *heap[T], name string, fail failf) {
	if numbers := max(0, len(h.of)-1); len(h.items)+len(h.free) != numbers || len(h.at) != len(h.of) {
		fail("%s: %d elements and %d free numbers of %d", name, len(h.items), len(h.free), numbers)
		return
	}
	for i, x := range h.items {
		of := h.of[x.number]
		if *of.handle() != x.number || int(h.at[x.number]) != i {
			fail("%s: the element at %d, number %d, believes to be number %d at %d", name, i, x.number, *of.handle(),
				h.at[x.number])
			return
		}
		if x.key != of.key() {
			fail("%s: the element at %d lies there by %v, its key is %v", name, i, x.key, of.key())
			return
		}
		if parent := h.items[max(0, i-1)/heapArity]; x.key.before(parent.key) {
			fail("%s: the element at %d is before its parent", name, i)
			return
		}
	}
}

// flowTableProblem checks that every flow is known by its key, and either tracked or kept.
func flowTableProblem(t *flowTable, fail failf) {
	tracked := 0
	for key, f := range t.known {
		if f.key != key {
			fail("flow %q is known as %q", f.key, key)
		}
		if f.place.tracked {
			tracked++
		}
	}
	inOrder := 0
	for f := range t.all() {
		if inOrder++; !f.place.tracked || t.known[f.key] != f {
			fail("tracked flow %q is out of place", f.key)
		}
	}
	if inOrder != tracked {
		fail("%d flows are tracked, %d in order", tracked, inOrder)
	}
	kept := 0
	var last *flow
	for f := t.oldest; f != nil; last, f = f, f.place.newer {
		kept++
		if f.place.tracked || f.place.older != last || t.known[f.key] != f {
			fail("kept flow %q is out of place", f.key)
			return
		}
	}
	if tracked != t.tracked || kept != t.kept || last != t.newest || tracked+kept != len(t.known) || kept > keptFlows {
		fail("%d flows known, %d tracked, %d kept: want %d, %d", len(t.known), tracked, kept, t.tracked, t.kept)
	}
}

// tierProblem checks one tier and adds its requests to waiting.
func tierProblem(q *FairRequestQueue, t *tier, waiting map[*Request]bool, fail failf) {
	c := &t.class
	queued, reserved, stuck, flowLanes := 0, 0, 0, 0
	var weights Weight
	flowTableProblem(&t.flows, fail)
	for f := range t.flows.all() {
		flowProblem(q, t, f, waiting, fail)
		queued += f.queued
		reserved += f.reserves
		weights += f.weight
		flowLanes += len(f.lanes)
	}
	heapProblem(&c.open, "open lanes", fail)
	heapProblem(&c.busy, "busy lanes", fail)
	heapProblem(&c.aged, "aged lanes", fail)
	linedUp := 0
	for name, l := range c.lanes {
		heapProblem(&l.flows, fmt.Sprintf("flows of lane %q", name), fail)
		heapProblem(&l.ages, fmt.Sprintf("ages of lane %q", name), fail)
		linedUp += laneProblem(t, l, fail)
		stuck += l.stuck()
		if l.name != name || l.class != c {
			fail("lane %q is kept as %q", l.name, name)
		}
		// A lane is in its class's heap exactly when it has a flow that is not parked and is not closed.
		some := len(l.flows.items) > 0
		if in := within(&c.open, l); in != (some && l.state == LaneOpen) {
			fail("lane %q: state %d, flows %t, among the open ones %t", name, l.state, some, in)
		}
		want := c.guarded && some && (l.state == LaneOpen || l.state == LaneBusy)
		wantBusy := want && l.state == LaneBusy
		if aged, busy := within(&c.aged, &l.oldest), within(&c.busy, &l.busy); aged != want || busy != wantBusy {
			fail("lane %q: state %d, flows %t, among the aged ones %t, the busy ones %t", name, l.state, some, aged, busy)
		}
	}
	if t.weights != weights {
		fail("tier %s: weights %d, their sum %d", t.config.Name, t.weights, weights)
	}
	if t.queued != queued || t.reserved != reserved || c.stuck != stuck || linedUp != flowLanes {
		fail("tier %s: queued %d (%d), reserved %d (%d), stuck %d (%d), flow lanes %d (%d)",
			t.config.Name, t.queued, queued, t.reserved, reserved, c.stuck, stuck, linedUp, flowLanes)
	}
	if t.queued == 0 && t.deficit != 0 {
		fail("tier %s: empty with a deficit of %d", t.config.Name, t.deficit)
	}
	if t.deficit > deficitCap || t.deficit < -deficitCap {
		fail("tier %s: deficit %d beyond its cap", t.config.Name, t.deficit)
	}
	if t.shed.enabled {
		sheddingProblem(t, fail)
	}
}

func within[T heapItem](h *heap[T], x T) bool {
	number := *x.handle()
	return number > 0 && int(number) < len(h.of) && h.of[number].handle() == x.handle()
}

// flowProblem checks a flow with its lines.
func flowProblem(q *FairRequestQueue, t *tier, f *flow, waiting map[*Request]bool, fail failf) {
	queued, cost := 0, int64(0)
	for i, fl := range f.lanes {
		if fl.place != i || f.laneOf(fl.lane.name) != fl {
			fail("flow %q: its lane %q is not found", f.key, fl.lane.name)
		}
		if fl.flow != f || t.class.lanes[fl.lane.name] != fl.lane {
			fail("flow %q: a line of another flow or of a lane that is gone", f.key)
		}
		n := 0
		var prev *Request
		for r := fl.line.first; r != nil; prev, r = r, r.next {
			n++
			if r.at != fl || r.prev != prev || prev != nil && prev.seq >= r.seq {
				fail("flow %q lane %q: request %d is out of its line", f.key, fl.lane.name, r.seq)
			}
			if waiting[r] {
				fail("request %d waits twice", r.seq)
			}
			waiting[r] = true
			if !listed(&q.due, r) && !within(&q.due.odd, r) || r.due != r.Expires().Sub(q.epoch) {
				fail("request %d: not among the deadlines, or at another one", r.seq)
			}
			cost += int64(r.Cost)
		}
		if n == 0 || n != fl.line.n || prev != fl.line.last {
			fail("flow %q lane %q: %d requests, counted %d", f.key, fl.lane.name, n, fl.line.n)
			continue
		}
		// A head's tag is what the discipline says now: nothing waits to be tagged anew.
		if tag := t.discipline.tag(f, fl.line.first); fl.tag != tag {
			fail("flow %q lane %q: tag %d, want %d", f.key, fl.lane.name, fl.tag, tag)
		}
		if in := within(&fl.lane.flows, fl); in == fl.parked || (in && fl.lane.class.guarded) != within(&fl.lane.ages, &fl.age) {
			fail("flow %q lane %q: parked %t, in its lane's heap %t", f.key, fl.lane.name, fl.parked, in)
		}
		queued += n
	}
	if queued == 0 || f.queued != queued || f.cost != cost {
		fail("flow %q: queued %d (%d), cost %d (%d)", f.key, f.queued, queued, f.cost, cost)
	}
	if t.class.virtual.before(f.start) {
		fail("flow %q: start %d ahead of virtual time %d", f.key, f.start, t.class.virtual)
	}
	if f.weight != q.config.weight(f.key) || f.capacity != q.config.flowCapacity(f.key) {
		fail("flow %q: weight %d, capacity %d are not the configured ones", f.key, f.weight, f.capacity)
	}
}

// laneProblem checks a lane's counts against its flows and returns how many flows have a line in it.
func laneProblem(t *tier, l *classLane, fail failf) int {
	queued, capped, lines := 0, 0, 0
	for f := range t.flows.all() {
		for _, fl := range f.lanes {
			if fl.lane != l {
				continue
			}
			lines++
			queued += fl.line.n
			if fl.parked {
				capped += fl.line.n
			}
		}
	}
	if queued == 0 || l.queued != queued || l.capped != capped {
		fail("lane %q: queued %d (%d), capped %d (%d)", l.name, l.queued, queued, l.capped, capped)
	}
	return lines
}

// sheddingProblem checks the orders that displacement asks for.
func sheddingProblem(t *tier, fail failf) {
	s := &t.shed
	inTree := 0
	var last *flow
	var walk func(f *flow) (least *flow)
	walk = func(f *flow) *flow {
		if f == nil {
			return nil
		}
		n := &f.shed.node
		for _, child := range []*flow{n.left, n.right} {
			if child != nil && child.shed.node.priority > n.priority {
				fail("share tree: flow %q is below a lower priority", child.key)
			}
		}
		left := walk(n.left)
		if last != nil && !shareBefore(last, f) {
			fail("share tree: flow %q is not behind %q", f.key, last.key)
		}
		last = f
		inTree++
		if t.flows.find(f.key) != f || f.shed.queued != f.queued {
			fail("share tree: flow %q is not tracked, or lies under %d of its %d", f.key, f.shed.queued, f.queued)
		}
		least := lessRecent(lessRecent(f, left), walk(n.right))
		if n.least != least {
			fail("share tree: flow %q knows a wrong least recently displaced one", f.key)
		}
		return least
	}
	walk(s.shares.root)
	if inTree != t.flows.len() {
		fail("shedding order of %s: %d in the tree, of %d flows", t.config.Name, inTree, t.flows.len())
	}
}

// audit checks the invariants after each step, and what only a comparison of two steps shows: virtual time never goes
// back, and reservations fit but where a reload or a requeue went beyond them.
type audit struct {
	virtual map[*tier]VirtualTime
	excused bool
}

func (a *audit) check(t testing.TB, q *FairRequestQueue) {
	t.Helper()
	if err := checkInvariants(q); err != nil {
		t.Fatalf("invariant broken: %v", err)
	}
	if a.virtual == nil {
		a.virtual = map[*tier]VirtualTime{}
	}
	for _, tier := range q.tiers {
		if before, ok := a.virtual[tier]; ok && tier.class.virtual.before(before) {
			t.Fatalf("virtual time of %s went back from %d to %d", tier.config.Name, before, tier.class.virtual)
		}
		a.virtual[tier] = tier.class.virtual
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
