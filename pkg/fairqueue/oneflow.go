package fairqueue

// oneFlow is no fairness: all requests of the class are in one flow, in the order within flows. A head's tag is its
// rank in that order. With fcfs all tags are equal, so the many lanes of the flow are never retagged.
type oneFlow struct{ costsKnown }

func (oneFlow) begin(*level, *share) {}

func (oneFlow) tag(_ *level, _ *share, head *Request) VirtualTime {
	if head.extra == nil {
		return 0 // by arrival
	}
	return VirtualTime(head.extra.rank)
}

func (oneFlow) charge(*level, *share, *Request, VirtualTime, *receipt) (moved bool) {
	return false
}

func (oneFlow) refund(*level, *share, *Request, *receipt) (moved bool) { return false }

func (oneFlow) freshen(*level, *share) (moved bool) { return false }
