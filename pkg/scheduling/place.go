package scheduling

import "slices"

// Place picks the best endpoint for the request and counts it there, in one step, or returns NoEndpoint when none can
// take it now: none is ready, all are at their MaxInFlight, or the lane (unless it is the whole pool) is not below
// the bound.
func (b *Board) Place(q *Query, bound Bound) EndpointID { return b.PlaceExcept(q, bound, nil) }

// HasRoom says whether Place would find an endpoint.
func (b *Board) HasRoom(q *Query, bound Bound) bool {
	b.refresh(q)
	return b.laneHasRoom(q, bound) && b.best(q, nil) >= 0
}

// PlaceExcept is Place without the endpoints of except, which the request's flow may not use more of.
func (b *Board) PlaceExcept(q *Query, bound Bound, except []EndpointID) EndpointID {
	b.refresh(q)
	q.nChosen = 0
	if !b.laneHasRoom(q, bound) {
		return NoEndpoint
	}
	at := b.best(q, except)
	if at < 0 {
		return NoEndpoint
	}
	return b.choose(q, at)
}

// PlaceAt counts the request at the given endpoint, whatever the bounds and limits. It is called only after
// CanServe(q, id); otherwise it panics. A preemptor takes its victim's endpoint so.
func (b *Board) PlaceAt(q *Query, id EndpointID) {
	b.refresh(q)
	at, ok := q.reach.readyAt(b.snap, id)
	if !ok {
		panic("scheduling: PlaceAt an endpoint that cannot serve the request")
	}
	b.choose(q, at)
}

// choose settles on the at-th ready endpoint of the lane, and on the fallbacks after it.
func (b *Board) choose(q *Query, at int) EndpointID {
	p := q.reach.ready[at]
	q.placedOn, q.chosen[0], q.nChosen = b.snap, p, 1
	b.addFallbacks(q, at)
	b.reserve(p)
	b.last = b.snap.members[p].ID
	return b.last
}

// laneHasRoom compares exactly: stock in millionths against the sum of bounds in millionths.
func (b *Board) laneHasRoom(q *Query, bound Bound) bool { return b.laneHasRoomFor(q, bound, 0) }

// laneHasRoomFor is laneHasRoom with the lane's stock changed by so many.
func (b *Board) laneHasRoomFor(q *Query, bound Bound, change int64) bool {
	if bound == Unbounded || q.lane == "" && q.reach.whole {
		return true
	}
	stock := b.laneStock(q.reach) + change
	return stock == 0 || stock*Millionths < q.reach.bound(bound)
}

func (b *Board) laneStock(r *reach) int64 {
	var stock int64
	for _, p := range r.ready {
		stock += int64(b.spots[p].inFlight)
	}
	return stock
}

// best returns the index in the lane's ready endpoints of the one with the highest total, or -1.
func (b *Board) best(q *Query, except []EndpointID) int {
	ready := q.reach.ready
	random := b.scheduler.config.TieBreak == TieRandom
	best, tied := -1, 0
	var top Total
	for n, i := 0, b.start(ready); n < len(ready); n++ {
		p := ready[i]
		if s := &b.spots[p]; s.inFlight < s.limit && !slices.Contains(except, b.snap.members[p].ID) {
			switch total := b.totalAt(q, p); {
			case best < 0 || total > top:
				best, top, tied = i, total, 1
			case random && total == top:
				if tied++; b.random.IntN(tied) == 0 {
					best = i
				}
			}
		}
		if i++; i == len(ready) {
			i = 0
		}
	}
	return best
}

// start is where in the lane's ready endpoints the comparison begins, and so which of equals wins.
func (b *Board) start(ready []int32) int {
	if b.scheduler.config.TieBreak != TieRotate {
		return 0
	}
	lo, hi := 0, len(ready)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if b.snap.members[ready[mid]].ID <= b.last {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(ready) {
		return 0
	}
	return lo
}

func (b *Board) totalAt(q *Query, p int32) Total {
	if q.request == nil {
		return b.spots[p].total
	}
	return b.spots[p].total + q.request[p]
}

// addFallbacks names the next best of the lane's ready endpoints, equals in ring order after the chosen one.
func (b *Board) addFallbacks(q *Query, chosen int) {
	most := b.scheduler.config.Fallbacks
	if most == 0 {
		return
	}
	var totals [MaxFallbacks]Total
	n, ready := 0, q.reach.ready
	i := chosen
	for range len(ready) - 1 {
		if i++; i == len(ready) {
			i = 0
		}
		p := ready[i]
		if s := &b.spots[p]; s.inFlight >= s.limit {
			continue
		}
		total := b.totalAt(q, p)
		if n == most && total <= totals[n-1] {
			continue
		}
		n = min(n+1, most)
		at := n - 1
		for ; at > 0 && totals[at-1] < total; at-- {
			totals[at] = totals[at-1]
			q.chosen[1+at] = q.chosen[at]
		}
		totals[at], q.chosen[1+at] = total, p
	}
	q.nChosen = 1 + n
}
