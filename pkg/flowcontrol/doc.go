// Package flowcontrol is the RequestQueueController: the one lock over the fair queue and the stock, the goroutines
// that wait in it, the poppers, the timer, and every request's outcome.
//
// # Who decides, and where
//
// A request's own goroutine (its stream's) calls TryEnqueue and waits inside it. Everything is decided under one
// mutex, so that a grant, a cancellation, an expiry, a preemption and a settlement of the same request have one
// order: a caller that gives up asks for the verdict under the lock, and if the grant won, it returns the grant.
//
//	TryEnqueue ── bypass ───────────────────────────► lease
//	     │ └───── reject ──────────────────────────► Rejection
//	     ▼ push
//	  waits ◄── pump: peek, place, pop, take lease ─► lease
//	     └───── expiry, cancellation, displacement, drain ─► Rejection
//
// The pop loop (pump.go) runs under that lock, by whoever changed the state: an arrival, a completion, a
// cancellation, a change of the backends. The poppers are parked goroutines that run it where no stream's goroutine
// does: for the timer, and for the retry after an unexpected error. Nothing polls. The timer stands at the earliest
// deadline or starvation threshold, at most ExpiryCleanupInterval away, and not at all while nobody waits.
//
// # Admission
//
//	bypass   stock < upper bound, something available to the tier, nobody who could go waits in its tier or a
//	         higher one, no starved head that the budget lets go, and an endpoint takes it
//	reject   otherwise, when it is not admissible (below the highest tier, without EnqueueAll), or there is no room
//	enqueue  otherwise
//
// Placement (peek, place, take the lease, pop) is one critical section; endpoints are opaque numbers of the Placer.
//
// # Invariants (checked by checkInvariants in tests)
//
//   - Every request that entered TryEnqueue, Refuse or PassOn has exactly one outcome.
//   - offered = waiting + leases held + ended; a lease is settled exactly once.
//   - Reservations at the Placer = leases held.
//   - Nobody waits who could go: whenever the lock is free, no head that the band, the reservations and the Placer
//     would let through is still queued.
//
// The package knows nothing of Envoy, protobuf, Kubernetes, or endpoint names.
package flowcontrol
