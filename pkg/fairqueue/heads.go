package fairqueue

// HeadIn is the request that goes next of those that wait in a lane of a tier and are not parked, whether the lane is
// open or closed; nil: there is none.
func (q *FairRequestQueue) HeadIn(tier int, lane Lane) *Request {
	if tier < 0 || tier >= maxTiers || q.byID[tier] == nil {
		return nil
	}
	l := q.byID[tier].class.lanes[lane]
	if l == nil {
		return nil
	}
	if fl := l.flows.min(); fl != nil {
		return fl.line.first
	}
	return nil
}
