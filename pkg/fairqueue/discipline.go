package fairqueue

import "time"

// discipline shares what a level gets among its sharers: it gives each sharer a tag, and the least tag goes first. It is
// stateless: what it knows lies in the level, which has the time too, the shares and the receipts. Classes of a tier,
// flows of a class and flows under a flow are all sharers, so a discipline serves at every level.
//
// Every method that changes a share reports whether the share's tags have changed with it, so that the queue computes
// them anew; charge, adjust, trueUp and refund get the receipt of r at this level, which charge fills.
type discipline interface {
	// begin is called when s becomes backlogged.
	begin(l *level, s *share)
	// tag returns the tag of head, the request of s that goes next, or next in one of its lanes.
	tag(l *level, s *share, head *Request) VirtualTime
	// charge is called when r of s, with this tag, leaves the queue for an endpoint. In a level of classes it has left, and
	// class.offer of each is what that had to offer beside r, of s what it has now.
	charge(l *level, s *share, r *Request, tag VirtualTime, p *receipt) (moved bool)
	// refund takes a charge back: the release of r came to nothing.
	refund(l *level, s *share, r *Request, p *receipt) (moved bool)
	// freshen looks at one of all shares, when a charge has made the level stale.
	freshen(l *level, s *share) (moved bool)

	// active reports whether the discipline wants to know of what does not wait: then a sharer is active while it has
	// anything queued or in flight, and the methods that follow are called.
	active() bool
	// bypassed is called for a request that is dispatched without having waited.
	bypassed(l *level, s *share, r *Request, p *receipt) (moved bool)
	// adjust raises what r, which is in flight, is charged to this cost; trueUp corrects it to what r has really cost.
	adjust(l *level, s *share, r *Request, to Cost, p *receipt) (moved bool)
	trueUp(l *level, s *share, r *Request, to Cost, p *receipt) (moved bool)
	// end is called when s is no longer active. The discipline's state of s may be dropped from then on.
	end(l *level, s *share)
	// advance is called before a turn from level.nextAdvance on, because the tag of level.timeVarying changes with time.
	// It sets both to the next such sharer and its time, or timeVarying to nil if there is none.
	advance(l *level)

	// describe passes to number every value that decides what a share, or with nil the level, will get, for AppendState;
	// describeReceipt does the same for a receipt.
	describe(l *level, s *share, number func(int64))
	describeReceipt(l *level, p *receipt, number func(int64))
}

// costsKnown is the part of a discipline whose charges are final at the pop, and depend on nothing but what waits.
type costsKnown struct{}

func (costsKnown) active() bool { return false }

func (costsKnown) bypassed(*level, *share, *Request, *receipt) (moved bool) { return false }

func (costsKnown) adjust(*level, *share, *Request, Cost, *receipt) (moved bool) { return false }

func (costsKnown) trueUp(*level, *share, *Request, Cost, *receipt) (moved bool) { return false }

func (costsKnown) end(*level, *share) {}

func (costsKnown) advance(*level) {}

// level is a set of sharers and what their discipline knows of them all: the classes of a tier, the flows of a class, or
// the flows under a flow.
type level struct {
	discipline  discipline
	now         *time.Time // the queue's: the last that it was told
	stale       bool       // every share has to be looked at with freshen
	classes     []*class   // of a tier, in their order; nil: its sharers are flows
	claimed     bool       // the turn that is charged is none: it is a claim
	timeVarying *share     // the one whose tag changes with time, of a class's own flows; nil: none
	nextAdvance time.Time  // when advance must be called for it
	wfqLevel
	drrLevel
}

// siblings are a level of flows.
type siblings struct {
	level
	flows   flowTable
	weights Weight // Σ weight of the tracked flows
	shed    sheddingOrder
}

// share is what a discipline knows of one sharer: a class or a flow.
type share struct {
	flow   *flow // nil: it is a class
	weight Weight
	wfqShare
	drrShare
}

// receipt is what one pop has charged to one sharer.
type receipt struct{ wfqReceipt }

func (d Discipline) implementation() discipline {
	switch d {
	case OneFlow:
		return oneFlow{}
	case WFQ:
		return wfq{}
	default:
		panic("fairqueue: unknown discipline")
	}
}
