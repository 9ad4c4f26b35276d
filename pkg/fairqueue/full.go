package fairqueue

// Full is the limit of the queue that rejects a request.
type Full uint8

// The limits: of the request's flow, of a flow under it, of the whole queue, of its tier, and of the tier's share of
// the whole.
const (
	FullFlow Full = iota
	FullUnder
	FullTotal
	FullTier
	FullTierShare
)

// FullBy returns the limit by which Push has just rejected r, and its number of requests. It changes nothing.
func (q *FairRequestQueue) FullBy(r *Request) (by Full, most int) {
	c := q.tierOf(r.Tier).classOf(r)
	t, f := c.tier, c.flows.find(c.flowKey(r))
	capacity := q.config.flowCapacity(c.flowKey(r))
	if f != nil {
		capacity = f.capacity
	}
	switch {
	case t.config.QueueSize == 0:
		return FullTier, 0
	case f != nil && f.queued >= capacity:
		return FullFlow, capacity
	case q.fullUnder(c, f, r) > 0:
		return FullUnder, q.fullUnder(c, f, r)
	case f == nil && q.tiersReserve() && q.reserves(t, capacity) > q.tierShare(t)-t.reserved:
		return FullTierShare, q.tierShare(t)
	case t.config.QueueSize > 0 && t.queued >= t.config.QueueSize:
		return FullTier, t.config.QueueSize
	case q.config.TierMode == Weighted && t.queued >= q.tierShare(t):
		return FullTierShare, q.tierShare(t)
	}
	return FullTotal, q.config.totalCapacity()
}
