package fairqueue

import "github.com/weir-epp/weir/internal/heap"

// A free slot may suit a request that is not next: the engine has its prompt cached, while the next request's prompt is
// cached elsewhere. So if the configuration permits, the queue's owner compares a few waiters and releases the one with
// the least regret (Matches, Candidate.Instead):
//
//   - with Locality: the first mostLooked requests of the line whose turn it is
//   - with Config.LocalityQuantum Q: the first mostLooked flows of the same class and lane by key, at most Q/weight
//     after the least key. A flow with nested flows competes with its next request.
//
// Only requests with the strict priority of the request whose turn it is compete, if their class or weighted tier can
// also afford them. A request is overtaken at most mostOvertaken times by its own flow, and at most mostPassed times by
// other flows while its own has the least key. It is never overtaken after half of the time to its client's own
// deadline.
//
// # Bound
//
// A request that takes another's turn is charged like any other, and its flow is that much later in the order. Virtual
// time advances to the least key only. (With the key of the released request, a flow that returns after each grant
// would begin there each time, and waiting flows would be served before it for ever.)
//
// With S, l and E as in the bounds of vtc and wfq (vtc.go, doc.go), and key the counter of vtc:
//
//   - When f goes, S_f <= S_g + Q/w_f for every g that can go, since no counter is before the least. After its charge
//     S_f − S_g <= l_f + Q/w_f, and until f goes again only corrections raise it, by at most E.
//   - Before f has gone, the argument is vtc's, since virtual time is never after the least counter of the flows that
//     can go, except for corrections.
//   - Therefore −l_g − Q/w_g − E <= S_f − S_g <= l_f + Q/w_f + E at all times.
//
// So of two waiting flows that have not taken turns before, one gets at most l_f + l_g + Q/min(w_f, w_g) + 2E more than
// the other. Over an interval that begins later, the difference may move from one side to the other: the bound is then
// l_f + l_g + Q/w_f + Q/w_g + 2E. vtc lifts a flow that begins to wait to the others' least counter; here it does not
// while that counter was reached by taking turns (branch.front), since the flow would lose the taken service each time.
// With wfq, the key is the finish tag of a flow's head. If a dearer request takes the head's turn, its flow is further
// ahead by the difference: with Locality, or orders in which dearer requests overtake within a flow, l_f is twice the
// largest cost of f minus the least. Q = 0 does not change the bounds between flows.

const (
	// mostLooked is the number of requests of a line, and of flows of a lane, that compete for a slot (K).
	mostLooked = heap.MostLeast
	// mostOvertaken is how often a request may be overtaken by its own flow (S), and mostPassed by other flows in its
	// turn.
	mostOvertaken = 64
	mostPassed    = 16
)

// turns counts how often a request was overtaken: by its own flow in the lower byte, and by other flows in its turn
// above it.
type turns uint16

const (
	byOwn    turns = 1
	byOther  turns = 1 << 8
	aside    turns = 1 << 15 // it went out of turn itself, to a slot that was free for it alone
	allOwn         = byOther - byOwn
	allOther       = aside - byOther
)

func (t turns) has(flag turns) bool { return t&flag != 0 }

func (t turns) with(flag turns, on bool) turns {
	if on {
		return t | flag
	}
	return t &^ flag
}

// Matches calls try with the requests that may take the turn of an unpromoted candidate of Peek, until try returns
// false: first the candidate, then others of its line, then, if others is true, those of other flows. There are at most
// 64.
func (q *FairRequestQueue) Matches(c *Candidate, others bool, try func(*Request) bool) {
	turn := c.Request
	top := turn.flowLane.outermost()
	if !q.matchLine(c, turn.flowLane, try) || !others || q.config.LocalityQuantum == 0 {
		return
	}
	if turn.turns&allOther >= mostPassed*byOther || q.halfOver(turn) {
		return
	}
	least := VirtualTime(top.lane.flows.MinKey().Value)
	top.lane.flows.Least(func(fl *flowLane) bool {
		if fl == top {
			return true
		}
		if most := least + increment(q.config.LocalityQuantum, fl.flow.weight); !most.before(fl.tag) {
			if !q.matchLine(c, fl.head.flowLane, try) {
				return false
			}
		}
		return !q.halfOver(fl.head)
	})
}

// matchLine is Matches for one line. It reports whether try wants more.
func (q *FairRequestQueue) matchLine(c *Candidate, fl *flowLane, try func(*Request) bool) (more bool) {
	more = true
	fl.line.first(func(r *Request) bool {
		if r.strict() != c.Request.strict() && q.config.Priorities {
			return false
		}
		if q.affords(c, r) {
			more = try(r)
		}
		return more && fl.lane.class.config.Order == Locality && r.turns&allOwn < mostOvertaken*byOwn && !q.halfOver(r)
	})
	return more
}

// halfOver reports whether half of the time to the own deadline of r's client is over.
func (q *FairRequestQueue) halfOver(r *Request) bool {
	return r.Within != 0 && q.Since(q.now)-r.arrived >= r.Within/2
}

// affords reports whether the class and the tier of a candidate would also have their turn with r.
func (q *FairRequestQueue) affords(c *Candidate, r *Request) bool {
	if r.Cost <= c.Request.Cost {
		return true
	}
	cl := r.flowLane.lane.class
	t := cl.tier
	if cl.ring.shared() && cl.turnTag(c.Request).before(cl.turnTag(r)) {
		return false
	}
	if q.config.TierMode == Strict || t.deficit >= int64(r.Cost)<<deficitBits {
		return true
	}
	for _, o := range q.tiers {
		if o != t && c.allowed.Has(o.id) && o.canGo() {
			return false
		}
	}
	return true
}

// Instead returns the candidate for r in the turn of c. Matches has called try with r.
func (c *Candidate) Instead(r *Request) Candidate {
	instead := *c
	if r != c.Request {
		instead.Request, instead.turn = r, c.Request
	}
	return instead
}

// Overtakes appends to some the requests that a candidate overtakes: the earlier ones of its line, and the request
// whose turn it takes.
func (c *Candidate) Overtakes(some []*Request) []*Request {
	if c.turn == nil {
		return some
	}
	c.Request.flowLane.line.first(func(r *Request) bool {
		if r != c.Request {
			some = append(some, r)
		}
		return r != c.Request
	})
	if c.turn.flowLane != c.Request.flowLane {
		some = append(some, c.turn)
	}
	return some
}

// overtake counts the requests that c overtakes.
func (c *Candidate) overtake() {
	var room [mostLooked + 1]*Request
	for _, r := range c.Overtakes(room[:0]) {
		if r.flowLane == c.Request.flowLane {
			r.turns += byOwn
		} else {
			r.turns += byOther
		}
	}
}
