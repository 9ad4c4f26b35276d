package fairqueue

import "time"

// Order says which request of a flow goes first.
type Order uint8

const (
	// FCFS is first come, first served.
	FCFS Order = iota
	// WSPT is the least cost over 1 + priority first.
	WSPT
)

// order is the order of the requests of one flow in one lane: by rank, across its rollover, then by arrival. A rank is
// computed once, when the request arrives.
type order interface {
	rank(sinceEpoch time.Duration, r *Request) uint64
}

// implementation is the order; nil: by arrival alone, for which a line needs no heap.
func (o Order) implementation(priorities bool) order {
	switch {
	case o == WSPT:
		return wspt{}
	case priorities:
		return urgentFirst{}
	default:
		return nil
	}
}
