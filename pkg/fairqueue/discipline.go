package fairqueue

// discipline orders the flows of a class and charges them. It is stateless: what it knows lies in the class and the
// flows. A flow's order is the tag of its head, least first; ties as TieBreak says.
type discipline interface {
	// flowOf is the key of the flow that a request with this key joins.
	flowOf(key string) string
	// begin is told that f becomes backlogged.
	begin(c *class, f *flow)
	// tag is the tag of head, a request of f that is the first in its lane.
	tag(f *flow, head *Request) VirtualTime
	// charge is told that r of f, with this tag, has been popped.
	charge(c *class, f *flow, r *Request, tag VirtualTime)
	// refund takes a charge back: r, popped once, is to wait again.
	refund(c *class, f *flow, r *Request)
}

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

// wfq is the seed's weighted fair queueing with deferred finish tags; see the package comment.
type wfq struct{}

func (wfq) flowOf(key string) string { return key }

func (wfq) begin(c *class, f *flow) { f.start, f.newcomer = c.virtual, c.newcomerFirst }

func (wfq) tag(f *flow, head *Request) VirtualTime { return f.start + increment(head.Cost, f.weight) }

func (wfq) charge(c *class, f *flow, r *Request, tag VirtualTime) {
	r.start, r.charged, r.newcomer = f.start, tag-f.start, f.newcomer
	c.virtual = c.virtual.later(tag)
	f.start = tag.later(c.virtual - f.refunded) // max(virtualTime, lastVirFinishTime), but what was given back stays
	f.refunded, f.newcomer = c.virtual-f.start, false
}

// refund takes from the flow's start what r has added to it, no more, whatever was popped since and whatever the flow
// weighs now; virtual time stays. The flow may lie as far behind that as it was given back. A flow that has nothing to
// take back any more, since it was tracked anew, still gets no more than r's own increment.
func (wfq) refund(c *class, f *flow, r *Request) {
	f.refunded = min(f.refunded+r.charged, largestLag)
	if lag := c.virtual - f.start; lag < largestLag {
		f.start = c.virtual - min(lag+r.charged, largestLag)
	}
	if f.start == r.start {
		f.newcomer = r.newcomer
	}
}

// oneFlow is no fairness at all: every request of the class is of the same flow, in order of arrival. So all tags are
// equal and stay so, and nothing is tagged anew in the lanes, of which this one flow has all.
type oneFlow struct{}

func (oneFlow) flowOf(string) string { return "" }

func (oneFlow) begin(c *class, f *flow) { f.start = c.virtual }

func (oneFlow) tag(f *flow, _ *Request) VirtualTime { return f.start }

func (oneFlow) charge(_ *class, f *flow, r *Request, _ VirtualTime) { r.start, r.charged = f.start, 0 }

func (oneFlow) refund(*class, *flow, *Request) {}
