package fairqueue

import "github.com/weir-epp/weir/internal/heap"

// A place that is free may suit a request that is not next: the engine there has its prompt cached, and that of the next one
// is elsewhere. So where the configuration permits, the owner of the queue looks at a few that wait, and lets the one go that
// has least to lose there (Matches, Candidate.Instead):
//
//   - with Locality: the first mostLooked of the line whose turn it is
//   - with Config.LocalityQuantum, Q: those of the flows of the same class and lane, the first mostLooked by their keys, that
//     are at most Q/weight after the least key. Of flows with others under them the one that is next competes.
//
// Only requests of the strict priority of the one whose turn it is compete, and only those that their class or weighted tier
// can afford as well. No request is overtaken more than mostOvertaken times by its own flow, or mostPassed times by others
// while its flow has the least key, or after half of the time to its client's own deadline.
//
// # Bound
//
// A request that takes another's turn is charged like any other, and its flow is that much later in the order. Virtual time
// goes on to the least key only. (If it went on to the key of the one that goes, a flow that comes back after each grant
// would begin there each time, behind flows that wait, which would be served before it for ever.)
//
// With S, l and E as in the bounds of vtc and wfq (vtc.go, doc.go), and key the counter of vtc:
//
//   - When f goes, S_f <= S_g + Q/w_f for every g that can go, since no counter is before the least. So then
//     S_f − S_g <= l_f + Q/w_f, and until f goes again it grows by corrections only, which are E in all.
//   - If f has not gone since both wait, the argument is that of vtc, since virtual time is never after the least counter of
//     those who can go, but for corrections.
//   - So S_f − S_g is between −l_g − Q/w_g − E and l_f + Q/w_f + E all the time.
//
// So where two flows wait that have not taken turns before, one gets at most l_f + l_g + Q/min(w_f, w_g) + 2E more than the
// other, whatever matches. Over an interval that begins later, the difference may first have been on one side and then on the
// other: there it is l_f + l_g + Q/w_f + Q/w_g + 2E. A flow that begins to wait is not lifted to the least counter of the
// others, as vtc does, while that is one to which taking turns has brought it (branch.front): it would lose what others have
// taken each time. With wfq, the key is the finish tag of a flow's head. Where a dearer
// request takes its turn, its flow is further ahead by the difference: l_f is twice the largest cost of f less the least with
// Locality, or where orders within flows let dearer ones overtake. Q = 0 leaves the bounds between flows.

const (
	// mostLooked is the number of requests of a line, and of flows of a lane, that compete for a place (K).
	mostLooked = heap.MostLeast
	// mostOvertaken is how often a request is overtaken by its own flow (S), and mostPassed how often by others in its turn.
	mostOvertaken = 64
	mostPassed    = 16
)

// turns counts in its lower byte how often a request was overtaken by its own flow, and above that how often by others in
// its turn.
type turns uint16

const (
	byOwn    turns = 1
	byOther  turns = 1 << 8
	aside    turns = 1 << 15 // it went out of turn itself, for a place that was free for it alone
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

// Matches calls try with the requests that may take the turn of a candidate that Peek has made and that is not promoted, in
// their order: first itself, then others of its line, then those of other flows, if others is true, until try returns false.
// There are at most 64.
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

// affords reports whether the class and the tier of a candidate would have their turn with r, too.
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

// Instead returns the candidate that goes in the turn of c: r, which Matches has called try with.
func (c *Candidate) Instead(r *Request) Candidate {
	instead := *c
	if r != c.Request {
		instead.Request, instead.turn = r, c.Request
	}
	return instead
}

// Overtakes appends to some the requests that a candidate overtakes: those before it in its line, and the one whose turn it
// takes.
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

// overtake counts that.
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
