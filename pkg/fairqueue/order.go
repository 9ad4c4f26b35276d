package fairqueue

import "time"

// Order says which request of a flow goes first.
type Order uint8

// FCFS is first come, first served.
const FCFS Order = iota

// order is the order of the requests of one flow in one lane: by rank, across its rollover, then by arrival. A rank is
// computed once, when the request arrives.
type order interface {
	rank(sinceEpoch time.Duration, r *Request) uint64
}

// implementation is the order; nil: by arrival alone, for which a line needs no heap.
func (o Order) implementation(priorities bool) order { return nil }
