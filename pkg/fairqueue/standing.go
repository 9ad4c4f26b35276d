package fairqueue

// standing is a flow's position in one lane: the counter or start that orders its requests there, for wfq and vtc. A
// flow has one for each lane that it has used lately, because lanes advance at different speeds: a time far ahead in
// one lane is past in another.
//
// A request moves the standing of its lane, and of the lanes of Request.CountAlsoIn: overlapping sets of backends,
// where its flow competes for the same backend. So a tenant has one share of each set of backends, and service by other
// backends does not count there.
type standing struct {
	lane    Lane
	known   bool        // the fields below are valid
	entered bool        // wfq: a refund has entered the lane, before the refunded request waits there
	start   VirtualTime // where the tags of its heads start; see the package comment. vtc: its counter
	floor   VirtualTime // corrections do not lower start below this
	refunds VirtualTime // wfq: how far corrections have put start behind virtual time, and may; below 0: ahead of it
}

// elsewhere has a flow's standings beside its first one.
type elsewhere struct {
	all  []standing
	next int      // index of the next standing to consider for replacement
	mine *userUse // FairShare: the flow's use, kept here to save room in flow
}

// keptStandings is the number of lanes, besides the first, in which a flow without waiters keeps its standing.
const keptStandings = 15

// in returns the flow's standing in a lane, or nil if it has none there.
func (s *share) in(lane Lane) *standing {
	if !s.known {
		return nil
	}
	if s.lane == lane {
		return &s.standing
	}
	return s.elsewhere.in(lane)
}

// waitsIn is in for a lane in which the flow waits, where it always has a standing.
func (s *share) waitsIn(lane Lane) *standing {
	if s.elsewhere == nil || len(s.elsewhere.all) == 0 {
		return &s.standing // its only one
	}
	return s.in(lane)
}

// in returns the standing in a lane, or nil if there is none.
func (e *elsewhere) in(lane Lane) *standing {
	if e != nil {
		for i := range e.all {
			if st := &e.all[i]; st.lane == lane {
				return st
			}
		}
	}
	return nil
}

// at returns the flow's standing in a lane, and makes an unknown one if it has none. The pointer is valid until the
// next call.
func (s *share) at(lane Lane) *standing {
	if st := s.in(lane); st != nil {
		return st
	}
	if !s.known {
		s.standing = standing{lane: lane}
		return &s.standing
	}
	if s.elsewhere == nil {
		s.elsewhere = new(elsewhere)
	}
	e := s.elsewhere
	if len(e.all) >= keptStandings {
		for range e.all {
			st := &e.all[e.next]
			e.next = (e.next + 1) % len(e.all)
			if s.flow.laneOf(st.lane) == nil {
				*st = standing{lane: lane}
				return st
			}
		}
	}
	e.all = append(e.all, standing{lane: lane})
	return &e.all[len(e.all)-1]
}

// standings returns the number of the flow's standings, known or not.
func (s *share) standings() int {
	if s.elsewhere == nil {
		return 1
	}
	return 1 + len(s.elsewhere.all)
}

// standingAt returns a standing by index.
func (s *share) standingAt(i int) *standing {
	if i == 0 {
		return &s.standing
	}
	return &s.elsewhere.all[i-1]
}

// each calls f with every known standing of the flow.
func (s *share) each(f func(*standing)) {
	if !s.known {
		return
	}
	f(&s.standing)
	if s.elsewhere != nil {
		for i := range s.elsewhere.all {
			if st := &s.elsewhere.all[i]; st.known {
				f(st)
			}
		}
	}
}

// moveOthers moves the flow's standings in the lanes where the charge of r counts too, and where the flow still waits.
func (s *share) moveOthers(l *level, by VirtualTime, r *Request) {
	if r.extra != nil && len(r.extra.also) > 0 {
		s.moveAlso(l, by, r)
	}
}

// moveAlso is moveOthers for a request with such lanes.
func (s *share) moveAlso(l *level, by VirtualTime, r *Request) {
	for _, lane := range r.also() {
		if st := s.in(lane); st != nil && lane != r.Lane && s.flow.laneOf(lane) != nil {
			st.move(l, by, l.virtual-largestLag)
		}
	}
}

// move moves start by by, but not below the floor or least, or more than largestLead ahead of virtual time. It returns
// the distance moved.
func (st *standing) move(l *level, by, least VirtualTime) (moved VirtualTime) {
	was := st.start
	switch most := l.virtual + largestLead; {
	case by.before(0):
		if least = st.floor.later(least); least.before(st.start) {
			st.start = least.later(st.start + by)
		}
	case most.before(st.start + by):
		st.start = st.start.later(most)
	default:
		st.start += by
	}
	st.corrected(was - st.start)
	return st.start - was
}

// corrected notes that a correction lowers the start by by.
func (st *standing) corrected(by VirtualTime) {
	st.refunds = VirtualTime(max(-int64(largestLag), min(int64(st.refunds+by), int64(largestLag))))
}

// branchIn returns the branch of f's siblings in a lane, or nil if no request waits there.
func (f *flow) branchIn(lane Lane) *branch {
	if f.above != nil {
		if fl := f.above.laneOf(lane); fl != nil {
			return fl.under
		}
		return nil
	}
	if l := f.class.lanes[lane]; l != nil && l.queued > 0 {
		return &l.branch
	}
	return nil
}

// freshen keeps the standings, and the virtual time of the lanes where the flow waits, within largestLag of the level's
// virtual time. It reports whether a start has changed.
func (s *share) freshen(l *level) (moved bool) {
	least := l.virtual - largestLag
	s.each(func(st *standing) {
		moved = moved || st.start.before(least)
		st.start, st.floor = st.start.later(least), st.floor.later(least)
	})
	for _, fl := range s.flow.lanes {
		in := fl.ownBranch()
		in.virtual = in.virtual.later(least)
	}
	return moved
}
