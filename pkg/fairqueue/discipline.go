package fairqueue

import "time"

// discipline shares what a level gets among its sharers: it gives each sharer a tag, and the least tag goes first. It is
// stateless: what it knows lies in the level, which has the time too, the shares and the receipts. Classes of a tier,
// flows of a class and flows under a flow are all sharers, so a discipline serves at every level.
//
// Every method that changes a share reports whether the share's tags have changed with it, so that the queue computes
// them anew; charge, adjust, trueUp and refund get the receipt of r at this level, which charge fills.
type discipline interface {
	// begin is told that s becomes backlogged.
	begin(l *level, s *share)
	// tag is the tag of head, the request of s that goes next, or next in one of its lanes.
	tag(l *level, s *share, head *Request) VirtualTime
	// charge is told that r of s, with this tag, leaves the queue for an endpoint.
	charge(l *level, s *share, r *Request, tag VirtualTime, p *receipt) (moved bool)
	// refund takes a charge back: the release of r came to nothing.
	refund(l *level, s *share, r *Request, p *receipt) (moved bool)
	// freshen looks at one of all shares, when a charge has made the level stale.
	freshen(l *level, s *share) (moved bool)
	// describe tells every number that decides what a share, or with nil the level, will get, for AppendState;
	// describeReceipt does so of a receipt.
	describe(l *level, s *share, number func(int64))
	describeReceipt(l *level, p *receipt, number func(int64))
}

// level is a set of sharers and what their discipline knows of them all: the classes of a tier, the flows of a class, or
// the flows under a flow.
type level struct {
	discipline discipline
	now        *time.Time // the queue's: the last that it was told
	stale      bool       // every share has to be looked at with freshen
	wfqLevel
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
	weight Weight
	wfqShare
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
