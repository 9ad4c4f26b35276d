package fairqueue

// oneFlow is no fairness at all: every request of the class is of the same flow, and goes by the order within flows. Its
// tag is its head's rank there, and with fcfs that is the same for all, so nothing is ever tagged anew in the lanes, of
// which this one flow has all.
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

func (oneFlow) describe(*level, *share, func(int64)) {}

func (oneFlow) describeReceipt(*level, *receipt, func(int64)) {}
