package fairqueue

// vtc is start-time fair queueing over weighted counters (Goyal, Vin, Cheng 1996), which is the weighted Virtual Token
// Counter (Sheng et al. 2024) with charges at dispatch. It is for costs that are only estimates when a request goes.
//
// # Rule
//
// Each flow has a counter in each lane that it uses, its start there (standing.go). A dispatch, waited for or not, adds
// cost/weight to it. Of the flows that can go the one with the least counter goes first: the cost of its head does not
// matter. In flight, a charge may be raised; at the end or later it is corrected to the actual cost, at the weight that
// the flow had at the dispatch.
//
// The virtual time of a lane is the largest counter with which a flow was dispatched in it; that of the level is the
// largest of its lanes, and lanes without waiters have the level's. A flow that gets a request in a lane where nothing
// of it waits is lifted there: to the lane's virtual time, and on to the least counter of the flows that wait in it, but
// no further than that request's own charge, and only where none of them is there because it took the turns of others
// (locality.go). So neither idle time nor a request held open banks anything, a slow lane is
// no burden to those who come to it, and charges of others that are refunded later hold back nobody who comes meanwhile.
// A flow that was parked is then behind by its head's charge at most, whether the others waited or went at once. Only dispatches move virtual time: it stands still
// while nobody is active.
//
// A flow of which nothing is known pays for its first request in advance: it starts at least that much after the lane's
// virtual time. So identities that are used once and replaced get as much as the same number of flows that stay. (With
// start tags alone each of them would go at once, and with a costly request at that.)
//
// A refund lowers a counter, but not below its floor: the value to which the flow was last lifted. So the late refund
// of a large estimate is no credit for the time in which the flow asked for nothing.
//
// # Bound
//
// Let flows f and g wait in one lane, and be able to go, throughout an interval. Write c for charges over weights at
// dispatch, l for the largest c of a flow (also of the request that it pays for in advance), and E for the largest
// value, until the end of the interval, of the sum of |actual − charged|/weight over both flows' requests in flight.
// Then their counters' movements differ by at most l_f + l_g + 2E:
//
//   - When f goes, its counter is at most g's, so then S_f − S_g <= l_f. Until f goes again, the difference grows only
//     by corrections of requests in flight at that moment, which are E in all: g's later dispatches can be refunded no
//     further than it was charged.
//   - If f has not gone since both wait, and it came last, it was lifted to at most l_f after virtual time, which was a
//     counter not above g's, but for corrections; or it kept its own counter, which was at most l_f after the virtual time
//     at its last dispatch, and g's is later than that, by the order or by a lift. It was lifted to virtual time at least,
//     and g's counter is at most l_g after that, but for corrections.
//   - So S_f − S_g is between −l_g − E and l_f + E all the time.
//
// If the interval begins when f, which was parked, may go again, f is behind by one request more: 2l_f + l_g + 2E. The
// difference of the service attained is that, and the requests in flight. With exact costs and at most D requests in
// flight it is at most (D+1)(l_f + l_g). Requests out of turn (promotion, preemption) and debts beyond largestLead are
// not covered. Dispatches in other lanes move no counter of this one, unless the flow competes there with a rival that
// waits for these backends too (Request.CountAlsoIn): then they are charged here, and the bound is for the charges.
//
// # Where this differs
//
// The paper's counters are charged while tokens are made, so its spread is that of a running batch; here it is that of
// the largest requests and errors. The paper lifts to the least counter only, which a refund of somebody else may have
// lowered; start-time fair queueing lifts to virtual time only, so a flow of equal requests that is idle now and then is
// one ahead each time. SFQ(D) does not correct.
//
// # Memory
//
// All that is kept of a flow without requests is its counter and its floor, for the last keptFlows of a class and the
// last keptUnder under an active flow. A debt counts until virtual time has passed it; a forgotten flow pays in
// advance when it comes back. So any number of identities leaves as many flows known as wait or are in flight, and these.
//
// Every operation is O(1), besides the heaps.
type vtc struct {
	free bool // no flow pays in advance
}

// vtcLevel is vtc's state of a level, beside its virtual time in wfqLevel.
type vtcLevel struct {
	since VirtualTime // virtual time when somebody began to wait, who has not been alone since; no lane's is before
}

// largestLead bounds how far a counter may be ahead of virtual time: any single charge, and more than all debts that are
// not absurd. Together with wfqrebase.go it keeps counters less than 2^63 apart.
const largestLead = largestStep

func (vtc) active() bool { return true }

func (vtc) chargesBypasses() bool { return true }

func (vtc) begin(l *level, s *share) {
	s.flow.newcomer = l.newcomerFirst
	if s.flow.siblings.flows.len() == 1 {
		l.since = l.virtual
	}
}

func (v vtc) join(l *level, s *share, in *branch, alone bool, r *Request) (moved bool) {
	if alone {
		in.virtual, in.matched = l.virtual, false
	}
	st := s.at(r.Lane)
	to := v.reference(s, st, in.virtual, r)
	if in.flows.Len() > 0 && !(in.matched && !in.front.before(VirtualTime(in.flows.MinKey().Value))) {
		least := VirtualTime(in.flows.MinKey().Value)
		to = to.later(least.earlier(in.virtual + increment(r.Cost, s.weight)))
	}
	return st.lift(to)
}

// reference returns the value to which a standing is lifted at this virtual time, because of r.
func (v vtc) reference(s *share, st *standing, virtual VirtualTime, r *Request) VirtualTime {
	if !st.known && !v.free {
		return virtual + increment(r.Cost, s.weight)
	}
	return virtual
}

// lift lifts the counter to at least this.
func (st *standing) lift(to VirtualTime) (moved bool) {
	if !st.known {
		st.known, st.start, st.floor = true, to, to
		return true
	}
	was := st.start
	st.start, st.floor = was.later(to), st.floor.later(to)
	return st.start != was
}

func (vtc) tag(_ *level, s *share, head *Request) VirtualTime { return s.waitsIn(head.Lane).start }

func (v vtc) charge(l *level, s *share, r *Request, _ VirtualTime, p *receipt) (moved bool) {
	in, st := r.branchOf(s.flow), s.waitsIn(r.Lane)
	at := st.start
	if l.another {
		at = l.least
	}
	in.virtual = in.virtual.later(at)
	if in.matched && in.front.before(in.virtual) {
		in.matched = false
	}
	if at.before(st.start) {
		in.matchedTo(st.start + increment(r.Cost, s.weight))
	}
	return v.dispatch(l, s, st, at, r, p)
}

// matchedTo notes that a flow has come to a counter because it took another one's turn.
func (b *branch) matchedTo(counter VirtualTime) {
	if !b.matched || b.front.before(counter) {
		b.front, b.matched = counter, true
	}
}

func (v vtc) bypassed(l *level, s *share, r *Request, p *receipt) (moved bool) {
	at, st := l.virtual, s.at(r.Lane)
	if s.flow.siblings.flows.len() > 0 {
		at = l.since // some wait elsewhere, perhaps in a slower lane; this one is lifted where it comes to wait
	}
	st.lift(v.reference(s, st, at, r))
	if in := s.flow.branchIn(r.Lane); in != nil {
		in.virtual = in.virtual.later(st.start) // the waiters there are at their caps, and bank nothing
	}
	s.flow.unsettleIn(r)
	return v.dispatch(l, s, st, st.start, r, p)
}

// dispatch moves virtual time to this, which is the counter of s in its turn, and charges s.
func (v vtc) dispatch(l *level, s *share, st *standing, at VirtualTime, r *Request, p *receipt) (moved bool) {
	l.virtual = l.virtual.later(at)
	l.rebase()
	s.flow.newcomer = false
	p.charged, p.weight = 0, s.weight
	return s.correct(l, st, increment(r.Cost, s.weight), st.floor, r, p)
}

func (v vtc) adjust(l *level, s *share, r *Request, to Cost, p *receipt) (moved bool) {
	return p.weight != 0 && increment(to, p.weight) > p.charged && v.trueUp(l, s, r, to, p)
}

func (v vtc) trueUp(l *level, s *share, r *Request, to Cost, p *receipt) (moved bool) {
	if p.weight == 0 {
		return false // it was passed on, and nothing was charged
	}
	return v.correct(l, s, increment(to, p.weight), r, p)
}

func (v vtc) refund(l *level, s *share, r *Request, p *receipt) (moved bool) {
	return v.correct(l, s, 0, r, p)
}

// correct corrects the charge of a dispatch.
func (vtc) correct(l *level, s *share, to VirtualTime, r *Request, p *receipt) (moved bool) {
	st := s.in(r.Lane)
	if st == nil {
		return false
	}
	return s.correct(l, st, to, st.floor, r, p)
}

func (vtc) resumed(_ *level, s *share, in *branch, head *Request) (moved bool) {
	st := s.in(head.Lane)
	was := st.start
	st.start = st.start.later(in.virtual - increment(head.Cost, s.weight))
	return st.start != was
}

func (vtc) end(*level, *share) {}

// freshen keeps counters and virtual times within largestLag of the level's virtual time.
func (vtc) freshen(l *level, s *share) (moved bool) {
	l.since = l.since.later(l.virtual - largestLag)
	return s.freshen(l)
}

func (vtc) describe(l *level, s *share, number func(int64)) {
	if s == nil {
		number(int64(l.since - l.virtual))
		return
	}
	number(one(s.flow.newcomer))
	s.describe(l, number, func(*standing) {})
}

func (vtc) describeReceipt(_ *level, p *receipt, number func(int64)) {
	number(int64(p.charged))
	number(int64(p.weight))
}
