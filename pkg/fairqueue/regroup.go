package fairqueue

import (
	"cmp"
	"slices"
)

// Move is a waiting request, and the lane in which it waits from now on.
type Move struct {
	Request *Request
	To      Lane
}

// Regroup moves waiting requests to other lanes, because the lanes' names mean other sets of backends than before.
// heirs maps each changed lane to the lanes to which its requests belong now, possibly including itself. Every request
// whose lane has changed must be among the moves.
//
// Requests keep their place, their deadline and their age. In the concerned lanes all flows are unparked. A flow keeps
// its lead or lag relative to the virtual time of the lane that it leaves, so flows that move together keep their
// differences. A flow from several lanes keeps its largest lead and its largest lag. A flow without waiters is known in
// the heirs of a lane if these are few.
//
// It costs O(log n) for each move, and visits each known flow.
func (q *FairRequestQueue) Regroup(heirs map[Lane][]Lane, moves []Move) {
	if len(heirs) == 0 {
		return
	}
	q.changes++
	g := newRegrouping(heirs)
	for _, lane := range q.LaneNames(nil) {
		for l := range q.everywhere(lane) {
			if g.concerns(lane) {
				l.class.unparkAll(l)
			}
		}
	}
	if q.active {
		for _, t := range q.tiers {
			for _, c := range t.classes {
				g.survey(c, nil)
			}
		}
	}
	slices.SortFunc(moves, func(a, b Move) int { return cmp.Compare(a.Request.seq, b.Request.seq) })
	leaves := make([]*flow, len(moves))
	for i, m := range moves {
		leaves[i] = m.Request.flowLane.flow
		leaves[i].class.leaveLane(m.Request)
	}
	for _, f := range g.flows {
		f.setStandings(g.bequeathed(f))
	}
	for i, m := range moves {
		m.Request.Lane = m.To
		leaves[i].class.enterLane(leaves[i], m.Request, g)
	}
	for _, f := range g.flows {
		f.retag(nil)
	}
}

// regrouping is the state of a Regroup.
type regrouping struct {
	heirs   map[Lane][]Lane
	parents map[Lane][]Lane // of each heir, ascending
	levels  map[*siblings]laneTimes
	left    map[*flow][]leaving    // the standings in concerned lanes
	flows   []*flow                // the keys of left
	after   map[*flowLane]*Request // the last request to enter it
}

// leaving is a standing before the regrouping. Its start and floor are relative to the lane's virtual time.
type leaving struct {
	standing
	waits bool // the flow waits there
}

// laneTimes are the virtual times of the lanes of a level: before the regrouping of the concerned lanes with waiters,
// and after it of heirs, as far as known. strangers are the leads of the lanes' strangers over these.
type laneTimes struct{ before, after, strangers map[Lane]VirtualTime }

func newRegrouping(heirs map[Lane][]Lane) *regrouping {
	g := &regrouping{
		heirs: heirs, parents: map[Lane][]Lane{}, levels: map[*siblings]laneTimes{}, left: map[*flow][]leaving{},
		after: map[*flowLane]*Request{},
	}
	for lane, of := range heirs {
		for _, heir := range of {
			g.parents[heir] = append(g.parents[heir], lane)
		}
	}
	for heir, of := range g.parents {
		if _, changed := heirs[heir]; !changed {
			of = append(of, heir) // it goes on
		}
		slices.Sort(of)
		g.parents[heir] = slices.Compact(of)
	}
	return g
}

// concerns reports whether any request leaves or joins a lane.
func (g *regrouping) concerns(lane Lane) bool {
	return g.heirs[lane] != nil || g.parents[lane] != nil
}

// survey notes the lanes' virtual times and the flows' standings, for a class's own flows or the flows under one.
func (g *regrouping) survey(c *class, above *flow) {
	s := siblingsUnder(c, above)
	times := laneTimes{map[Lane]VirtualTime{}, map[Lane]VirtualTime{}, map[Lane]VirtualTime{}}
	g.levels[s] = times
	note := func(lane Lane, b *branch) {
		if g.concerns(lane) {
			times.before[lane] = b.virtual
			times.strangers[lane] = b.strangers.later(b.virtual) - b.virtual
		}
	}
	if above == nil {
		for lane, l := range c.lanes {
			note(lane, &l.branch)
		}
	} else {
		for _, fl := range above.lanes {
			note(fl.lane.name, fl.under)
		}
	}
	visit := func(f *flow) {
		f.each(func(st *standing) {
			if g.concerns(st.lane) {
				g.left[f] = append(g.left[f], g.relative(s, f, *st))
			}
		})
		if g.left[f] != nil {
			g.flows = append(g.flows, f)
		}
		if f.under != nil {
			g.survey(c, f)
		}
	}
	for f := range s.flows.all() {
		visit(f)
	}
	for f := range s.flows.idle() {
		visit(f)
	}
}

// at returns the virtual time that a lane had, and reports whether any request waited there.
func (g *regrouping) at(s *siblings, lane Lane) (at VirtualTime, waits bool) {
	if at, waits = g.levels[s].before[lane]; waits {
		return at, true
	}
	return s.virtual, false
}

func (g *regrouping) relative(s *siblings, f *flow, st standing) leaving {
	at, _ := g.at(s, st.lane)
	st.start -= at
	st.floor -= at
	return leaving{st, f.laneOf(st.lane) != nil}
}

// arrival returns an heir's virtual time: its own, or the latest of its parents'.
func (g *regrouping) arrival(s *siblings, heir Lane) (at VirtualTime) {
	times := g.levels[s]
	at, known := times.after[heir]
	if known {
		return at
	}
	some := false
	for _, lane := range g.parents[heir] {
		v, waits := g.at(s, lane)
		if waits && lane == heir {
			at, some = v, true
			break
		}
		if waits && (!some || at.before(v)) {
			at, some = v, true
		}
	}
	if !some {
		at = s.virtual
	}
	times.after[heir] = at
	return at
}

// standing returns the standing of f in an heir of the lanes that it leaves; ok is false if it is known in none of
// them. From several lanes it has its largest lead and its largest lag; without waiters it has no lag.
func (g *regrouping) standing(f *flow, heir Lane) (st standing, ok bool) {
	n := 0
	var only leaving
	var lead, lag, credit, debt, floor VirtualTime
	for _, was := range g.left[f] {
		if _, comes := slices.BinarySearch(g.parents[heir], was.lane); !comes {
			continue
		}
		if n++; n == 1 {
			only, floor = was, was.floor
		}
		floor = floor.later(was.floor)
		lead, debt = lead.later(was.start), debt.earlier(was.refunds)
		if was.waits {
			lag, credit = lag.earlier(was.start), credit.later(was.refunds)
		}
	}
	st = only.standing
	if n > 1 {
		st.start, st.floor, st.refunds = lead+lag, floor, credit+debt
	}
	l, at := &f.siblings.level, g.arrival(f.siblings, heir)
	st.lane, st.known = heir, true
	st.start = (at + st.start).earlier(l.virtual + largestLead).later(l.virtual - largestLag)
	st.floor = (at + st.floor).earlier(st.start)
	return st, n > 0
}

// bequeathed returns the standings of f after the regrouping. If a lane has more heirs than a flow keeps standings, its
// heirs are left out; lanes in which f waits are known anyway.
func (g *regrouping) bequeathed(f *flow) (all []standing) {
	f.each(func(st *standing) {
		if !g.concerns(st.lane) {
			all = append(all, *st)
		}
	})
	var done []Lane
	for _, was := range g.left[f] {
		heirs, changed := g.heirs[was.lane]
		if !changed {
			heirs = []Lane{was.lane}
		}
		for _, heir := range heirs {
			waits := f.laneOf(heir) != nil
			if slices.Contains(done, heir) || !waits && len(all) > keptStandings {
				continue
			}
			if st, ok := g.standing(f, heir); ok {
				all, done = append(all, st), append(done, heir)
			}
		}
	}
	return all
}

// setStandings replaces the flow's standings.
func (s *share) setStandings(all []standing) {
	s.standing = standing{}
	if s.elsewhere != nil {
		clear(s.elsewhere.all)
		s.elsewhere.all, s.elsewhere.next = s.elsewhere.all[:0], 0
	}
	if len(all) == 0 {
		return
	}
	s.standing = all[0]
	if len(all) > 1 {
		if s.elsewhere == nil {
			s.elsewhere = new(elsewhere)
		}
		s.elsewhere.all = append(s.elsewhere.all, all[1:]...)
	}
}

// join gives the new part of a flow in an heir its standing, and its branch the heir's virtual time.
func (g *regrouping) join(fl *flowLane) {
	f, heir := fl.flow, fl.lane.name
	if fl.alone() {
		in := fl.ownBranch()
		in.virtual, in.matched, in.raise = g.arrival(f.siblings, heir), false, 0
		in.strangers = in.virtual
		for _, lane := range g.parents[heir] {
			in.strangers = in.strangers.later(in.virtual + g.levels[f.siblings].strangers[lane])
		}
	}
	if f.in(heir) == nil {
		st, _ := g.standing(f, heir)
		*f.at(heir) = st
	}
}

// leaveLane takes a request out of its line. Its flow and all counts but those of lanes stay as they are.
func (c *class) leaveLane(r *Request) {
	fl := r.flowLane
	oldest := fl.line.oldest == r
	r.flowLane = nil
	fl.line.remove(r)
	c.recountLanes(fl, -1)
	c.lost(fl, r, oldest)
	for fl != nil && fl.queued == 0 {
		above := fl.above
		c.dropFlowLane(fl)
		fl = above
	}
}

// enterLane puts a request of f that has left its lane into the line of its new one.
func (c *class) enterLane(f *flow, r *Request, g *regrouping) {
	fl := f.laneOf(r.Lane)
	if fl == nil {
		fl = c.newFlowLane(f, r, g)
	}
	r.flowLane = fl
	fl.line.insertAfter(r, g.after[fl])
	g.after[fl] = r
	c.recountLanes(fl, 1)
	c.gained(fl, r)
	fl.outermost().unsettle()
}
