package fairqueue

import (
	"slices"

	"github.com/weir-epp/weir/internal/heap"
)

// branchProblem checks, for a flow with others under it, the heaps of one lane. It returns the number of requests that
// wait there.
func branchProblem(fl *flowLane, fail failf) (queued int) {
	heapProblem(&fl.under.flows, "flows under one", fail)
	heapProblem(&fl.under.ages, "ages under one", fail)
	parked, capped := 0, 0
	for g := range fl.flow.under.flows.all() {
		if part := g.laneOf(fl.lane.name); part != nil {
			queued += part.queued
			capped += part.capped()
			if part.parked > 0 {
				parked++
			}
		}
	}
	if parked != len(fl.under.parked) || capped != fl.under.capped {
		fail("flow %q lane %q: %d parked under it (%d), with %d requests (%d)",
			fl.flow.key, fl.lane.name, parked, len(fl.under.parked), capped, fl.under.capped)
	}
	first := fl.under.flows.Min()
	if first != nil && fl.head != first.head {
		fail("flow %q lane %q: its head is not that of the first under it", fl.flow.key, fl.lane.name)
	}
	if first == nil && !slices.ContainsFunc(fl.under.parked, func(p *flowLane) bool { return p.head == fl.head }) {
		fail("flow %q lane %q: its head is not one of those that are parked under it", fl.flow.key, fl.lane.name)
	}
	return queued
}

// capped returns the number of requests of fl of which a flow is parked.
func (fl *flowLane) capped() (n int) {
	switch {
	case fl.parked > 0:
		return fl.queued
	case fl.under == nil:
		return 0
	}
	for g := range fl.flow.under.flows.all() {
		if part := g.laneOf(fl.lane.name); part != nil {
			n += part.capped()
		}
	}
	return n
}

// lineProblem checks a line, and returns the number of requests in it and their cost.
func lineProblem(q *FairRequestQueue, fl *flowLane, waiting map[*Request]bool, fail failf) (n int, cost int64) {
	var prev, oldest, newest, first *Request
	for r := range fl.line.all() {
		n++
		if r.flowLane != fl || fl.line.row == nil && (r.prev != prev || prev != nil && prev.seq >= r.seq) {
			fail("flow %q lane %q: request %d is out of its line", fl.flow.key, fl.lane.name, r.seq)
		}
		prev = r
		if oldest == nil || r.seq < oldest.seq {
			oldest = r
		}
		if newest == nil || r.seq > newest.seq {
			newest = r
		}
		if first == nil || rankKey(r).Before(rankKey(first)) {
			first = r
		}
		if waiting[r] {
			fail("request %d waits twice", r.seq)
		}
		waiting[r] = true
		if !listed(&q.due, r) && !q.due.odd.Holds((*oddDue)(r)) || r.due > r.deadline() || r.ownDue && r.due != r.deadline() {
			fail("request %d: not among the deadlines, or at another one", r.seq)
		}
		cost += int64(r.Cost)
	}
	if n != fl.queued || oldest != fl.line.oldest || newest != fl.line.newest || first != fl.line.head() || first != fl.head {
		fail("flow %q lane %q: %d requests (%d), or a wrong oldest, newest or first", fl.flow.key, fl.lane.name, n, fl.queued)
	}
	if w := fl.line.row; w != nil {
		heapProblem(&w.next, "a row", fail)
		heapProblem(&w.old, "a row's ages", fail)
		heapProblem(&w.young, "a row's newest", fail)
	}
	return n, cost
}

// rankKey returns the key by which requests of one flow are ordered.
func rankKey(r *Request) heap.Key {
	if r.extra == nil {
		return heap.Key{Value: 0, Seq: r.seq}
	}
	return heap.Key{Value: r.extra.rank, Seq: r.seq}
}

// laneProblem checks a lane's counts against its flows. It returns the number of the class's own flows that wait in it.
func laneProblem(c *class, l *classLane, fail failf) int {
	queued, capped, parked, lines := 0, 0, 0, 0
	for f := range c.flows.all() {
		for _, fl := range f.lanes {
			if fl.lane != l {
				continue
			}
			lines++
			queued += fl.queued
			capped += fl.capped()
			if fl.parked > 0 {
				parked++
			}
			awaits := l.rooms.Holds((*awaiting)(fl))
			if awaits && (!fl.atCap || fl.parkedBelow()) || (awaits && c.guarded) != l.roomAges.Holds((*awaitingAge)(fl)) {
				fail("lane %q: flow %q awaits room: %t, parked %t", l.name, f.key, awaits, fl.parked > 0)
			}
		}
	}
	if len(l.parked) != parked {
		fail("lane %q: %d are parked, want %d", l.name, len(l.parked), parked)
	}
	if queued == 0 || l.queued != queued || l.capped != capped {
		fail("lane %q: queued %d (%d), capped %d (%d)", l.name, l.queued, queued, l.capped, capped)
	}
	return lines
}
