package fairqueue

import "time"

// Order determines which request of a flow goes first.
type Order uint8

const (
	// FCFS is first come, first served.
	FCFS Order = iota
	// WSPT is weighted shortest processing time: the request with the least cost over (1 + priority) goes first.
	WSPT
	// EDF is earliest deadline first: the client's own deadline, or else the end of the TTL.
	EDF
	// Locality is first come, first served, except that one of the first waiters may go early because it suits the free
	// slot better (locality.go).
	Locality
)

// order is the order of one flow's requests in one lane: by rank, which may roll over, then by arrival.
type order interface {
	// rank returns the rank of r. arrived is its arrival, and deadline its client's own deadline or else the end of its
	// TTL, both relative to the queue's epoch. It is computed once.
	rank(arrived, deadline time.Duration, r *Request) uint64
}

// implementation returns the order. nil means by arrival alone, for which a line needs no heap.
func (o Order) implementation(priorities bool, ageing time.Duration) order {
	switch {
	case o == WSPT && ageing > 0:
		return agingWSPT{ageing}
	case o == WSPT:
		return wspt{}
	case o == EDF:
		return edf{}
	case priorities:
		return urgentFirst{}
	default:
		return nil
	}
}
