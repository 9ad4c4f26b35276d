package fairqueue

// vtc is start-time fair queueing over weighted counters (Goyal, Vin, Cheng 1996), which is the weighted Virtual Token
// Counter (Sheng et al. 2024) with charges at dispatch. It is for costs that are estimates at dispatch.
//
// # Rule
//
// Each flow has a counter in each lane that it uses, its start there (standing.go). A dispatch, after a wait or not,
// adds cost/weight to it. Among flows that can go, the least counter goes first, regardless of the cost of its head. In
// flight, a charge may be raised; at the end or later it is corrected to the actual cost, at the flow's weight at the
// dispatch.
//
// The virtual time of a lane is the largest counter with which a flow was dispatched in it. The level's virtual time is
// the largest of its lanes', and lanes without waiters have the level's. A flow that begins to wait in a lane is lifted
// to the lane's virtual time. It is lifted further to the least counter of the flows waiting there, but by at most its
// request's own charge, and only if no waiting flow reached its counter by taking turns (locality.go). So neither idle
// time nor a request held open earns credit, a slow lane does not burden newcomers, and charges that are refunded later
// do not hold back newcomers. A flow that was parked is then behind by at most its head's charge, whether the others
// waited or went at once. Only dispatches move virtual time: it does not change while no flow is active.
//
// An unknown flow pays for its first request in advance: it starts at least that charge after the lane's virtual time.
// So identities used once and replaced get as much as the same number of permanent flows. (With start tags alone each
// of them would go at once, even with a costly request.)
//
// A refund lowers a counter, but not below its floor, the value to which the flow was last lifted. So the late refund
// of a large estimate gives no credit for idle time.
//
// # Bound
//
// Let flows f and g wait in one lane, able to go, throughout an interval. Let l be a flow's largest charge over its
// weight at dispatch, including a request paid for in advance. At each moment, add up |actual − charged|/weight over
// both flows' requests in flight; E is the largest sum until the end of the interval. Let S be a flow's counter. Then
// the counters' movements differ by at most l_f + l_g + 2E:
//
//   - After f has gone once: when f goes, its counter is at most g's, so after its charge S_f − S_g <= l_f. Until f
//     goes again, only corrections of the requests then in flight raise the difference, by at most E: a refund of a
//     later dispatch of g returns at most that dispatch's charge.
//   - Before f has gone, if f came last: f was lifted to at most l_f after virtual time, which is at most g's counter;
//     or f kept its own counter, at most l_f after the virtual time of its last dispatch, and g's counter is later than
//     that, by the order or by a lift. In the other direction, f was lifted at least to virtual time, and g's counter
//     is at most l_g after that. All this holds up to corrections.
//   - Therefore −l_g − E <= S_f − S_g <= l_f + E at all times.
//
// If the interval begins when the parked f may go again, f is behind by one more request: 2l_f + l_g + 2E. The service
// attained differs by this bound plus the requests in flight. With exact costs and at most D requests in flight it
// differs by at most (D+1)(l_f + l_g). Requests out of turn (promotion, preemption) and debts beyond largestLead are
// not covered. Dispatches in other lanes move no counter of this lane, unless the flow competes there with a rival that
// also waits for these backends (Request.CountAlsoIn): then they are charged here, and the bound is for the charges.
//
// # Where this differs
//
// The paper charges counters while tokens are made, so its bound is in the size of a running batch; here it is in the
// largest requests and errors. The paper lifts to the least counter only, which another flow's refund may have lowered.
// Start-time fair queueing lifts to virtual time only, so a flow of equal requests that is idle now and then gains one
// request each time. SFQ(D) does not correct charges.
//
// # Memory
//
// A flow without requests keeps only its counter and its floor, while it is among the last keptFlows of its class, or
// the last keptUnder under an active flow. A debt counts until virtual time has passed it; a forgotten flow pays in
// advance when it returns. So the known flows are those with requests waiting or in flight plus these, however many
// identities clients send.
//
// Every operation is O(1), besides the heaps.
type vtc struct {
	free bool // no flow pays in advance
}

// vtcLevel is vtc's state of a level, beside its virtual time in wfqLevel.
type vtcLevel struct {
	since VirtualTime // virtual time when the present backlog began; no lane's virtual time is before it
}

// largestLead bounds the lead of a counter over virtual time: it is more than any single charge and any realistic debt.
// Together with wfqrebase.go it keeps counters less than 2^63 apart.
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

// reference returns the value to which r lifts a standing at this virtual time.
func (v vtc) reference(s *share, st *standing, virtual VirtualTime, r *Request) VirtualTime {
	if !st.known && !v.free {
		return virtual + increment(r.Cost, s.weight)
	}
	return virtual
}

// lift lifts the counter to at least to.
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

// matchedTo notes that a flow has reached a counter by taking another flow's turn.
func (b *branch) matchedTo(counter VirtualTime) {
	if !b.matched || b.front.before(counter) {
		b.front, b.matched = counter, true
	}
}

func (v vtc) bypassed(l *level, s *share, r *Request, p *receipt) (moved bool) {
	at, st := l.virtual, s.at(r.Lane)
	if s.flow.siblings.flows.len() > 0 {
		at = l.since // other flows wait, perhaps in a slower lane; a lift follows where this flow waits
	}
	st.lift(v.reference(s, st, at, r))
	if in := s.flow.branchIn(r.Lane); in != nil {
		in.virtual = in.virtual.later(st.start) // the waiters there are at their caps, and earn no credit
	}
	s.flow.unsettleIn(r)
	return v.dispatch(l, s, st, st.start, r, p)
}

// dispatch moves virtual time to at, the counter of s in its turn, and charges s.
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
