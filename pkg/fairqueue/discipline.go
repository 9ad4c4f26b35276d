package fairqueue

// discipline divides a level among its sharers: it computes a tag for each sharer's head, and the head with the least
// tag goes first. Sharers are the classes of a ring, the flows of a class, or the flows under a flow; a discipline can
// serve at any level. It has no state of its own: the state is in the level, in each share, and in the receipts of
// charged requests.
//
// The result moved reports whether the share's tags have changed; the queue then recomputes them. p is the receipt of r
// at this level: charge fills it, and later methods for the same request read it.
type discipline interface {
	// begin is called when s becomes backlogged.
	begin(l *level, s *share)
	// join is called when the backlogged s gets r in a lane where no other request of s waits. in is the level's branch
	// there; alone means that no other sharer waits in it.
	join(l *level, s *share, in *branch, alone bool, r *Request) (moved bool)
	// resumed is called when s is unparked in a branch, with head as its next request there.
	resumed(l *level, s *share, in *branch, head *Request) (moved bool)
	// tag returns the tag of head, the next request of s, or its next request in one lane.
	tag(l *level, s *share, head *Request) VirtualTime
	// charge charges s for the popped r, which had this tag. In a level of classes, r has been removed already, and
	// level.subject is its class.
	charge(l *level, s *share, r *Request, tag VirtualTime, p *receipt) (moved bool)
	// refund takes back the charge for the popped r, which returns to the queue.
	refund(l *level, s *share, r *Request, p *receipt) (moved bool)
	// freshen updates s after a charge has marked the level as stale. It is called for every share of the level.
	freshen(l *level, s *share) (moved bool)

	// active reports whether the discipline needs to know about requests in flight. If so, a sharer is active while it
	// has requests queued or in flight, and the queue calls the methods below.
	active() bool
	// chargesBypasses reports whether requests that do not wait are charged. Otherwise they do not count as in flight,
	// and bypassed is not called.
	chargesBypasses() bool
	// bypassed charges s for r, which is dispatched without waiting.
	bypassed(l *level, s *share, r *Request, p *receipt) (moved bool)
	// adjust raises the charge for r, which is in flight, to the cost to; trueUp corrects it to the actual cost.
	adjust(l *level, s *share, r *Request, to Cost, p *receipt) (moved bool)
	trueUp(l *level, s *share, r *Request, to Cost, p *receipt) (moved bool)
	// end is called when s is no longer active; the queue may then drop the share. In a level of classes it is called
	// for each class that has lost its last waiter, regardless of active.
	end(l *level, s *share)

	describer
}

// costsKnown implements the methods that a discipline does not need if it ignores requests in flight and lanes.
type costsKnown struct{}

func (costsKnown) active() bool { return false }

func (costsKnown) chargesBypasses() bool { return false }

func (costsKnown) join(*level, *share, *branch, bool, *Request) (moved bool) { return false }

func (costsKnown) resumed(*level, *share, *branch, *Request) (moved bool) { return false }

func (costsKnown) bypassed(*level, *share, *Request, *receipt) (moved bool) { return false }

func (costsKnown) adjust(*level, *share, *Request, Cost, *receipt) (moved bool) { return false }

func (costsKnown) trueUp(*level, *share, *Request, Cost, *receipt) (moved bool) { return false }

func (costsKnown) end(*level, *share) {}

// level is the state that a discipline shares among all sharers of one kind: the classes of a ring, the flows of a class,
// or the flows under a flow.
type level struct {
	discipline discipline
	stale      bool        // freshen must be called for every share
	classes    []*class    // the sharers, if they are classes, in their order; nil if they are flows
	subject    *class      // the class that tag or charge is about, in a level of classes
	claimed    bool        // the request being charged was claimed, not served in turn
	outOfOrder bool        // the claimed request was promoted
	another    bool        // the request took another flow's turn
	shares     *fairShares // with FairShare; else nil
	fair       *fairLevel  // with FairShare, for the class's own flows; else nil
	wfqLevel
	vtcLevel
	drrLevel
	least VirtualTime // the key of the flow whose turn it was
}

// siblings are the flows of one level: a class's own flows, or the flows under a flow.
type siblings struct {
	level
	flows   flowTable
	weights Weight // sum of the tracked flows' weights
	shed    sheddingOrder
}

// share is a discipline's state of one sharer: a class or a flow.
type share struct {
	flow *flow // nil if the sharer is a class
	wfqShare
	*drrShare // a class's; nil if the sharer is a flow: a pointer keeps thousands of flows small
	weight    Weight
}

// receipt records the charge of one pop to one sharer.
type receipt struct{ wfqReceipt }

func (d Discipline) implementation() discipline {
	switch d {
	case OneFlow:
		return oneFlow{}
	case WFQ:
		return wfq{}
	case VTC:
		return vtc{}
	case FairShare:
		return fairShare{vtc{free: true}}
	default:
		panic("fairqueue: unknown discipline")
	}
}
