// Package dispatch decides: over the fair queue, the stock and the placement together, it says who goes at once, who
// waits, who is turned away, who is released next and whose place is taken. It is a pure state machine: events go in,
// verdicts come out, with the time when it wants to be asked again. It has no goroutine, lock, context, log, metric,
// clock or random source of its own, so the same events always lead to the same verdicts: a replay of what production
// recorded, the explorer, a simulation and production itself run this code.
//
// # A request's way
//
//	Arrive ── bypass ───────────────────────────────► lease
//	   │ └─── reject ──────────────────────────────► rejected
//	   ▼ push
//	waits ◄── run: peek, place, take the lease, pop ─► lease (granted)
//	   └───── expiry, Cancel, displacement, Drain ──► rejected
//
//	granted ── Told ─► sent ── FirstByte ─► streaming ── Complete ─► ended
//	   ▲                 │ preempted: rejected
//	   └─ preempted: waits again
//
// A [Waiter] is a request; its [Lease] is there from the grant on. Both lie in one structure of the caller's, so a request
// costs one allocation.
//
// # Events and verdicts
//
// Each event is a method; where time has a say it takes now. What becomes of the request that the event is about is read from it when the
// method returns; what becomes of others is in Verdicts until the next event. Next is when Advance is due, though nothing
// happens. A waiter that may preempt is not believed to be there still: Preemptor names it, and the caller answers with
// Preempt if its client is there, or with PreemptorGone. So everything that the machine knows of the outside is an event.
//
// # Admission
//
//	bypass   stock < upper bound, something available to the tier, nobody who could go waits in its tier or a
//	         higher one, no starved head that the budget lets go, and an endpoint takes it
//	reject   otherwise, when it is not admissible (below the highest tier, without EnqueueAll), or there is no room
//	enqueue  otherwise
//
// # Failures
//
// The machine does not recover from panics: its caller does, and tells it with Failed. Before each question to the Placer
// the machine notes for whom it asks (asking), and everything that a panic can interrupt is kept as pending work
// (pending.go) until it is done. So after Failed it goes on where it was, and a request for which the Placer panics
// twice in a row ends as OutcomeInternal, alone.
//
// # Invariants (checkInvariants in tests; the explorer checks them in every state that it reaches)
//
//   - Every request that arrived has exactly one outcome.
//   - arrived = waiting + leases held + ended; a lease is settled exactly once.
//   - Reservations at the Placer = leases held.
//   - Between two events nobody waits who could go: no head that the band, the reservations and the Placer would let
//     through is still queued, but for the time of a ReleaseSpacing.
//   - Nothing is done per waiter, lane or flow that an event does not concern; SetBackends and Configure look at each once.
//
// The package knows nothing of Envoy, protobuf, Kubernetes, or the names of endpoints.
package dispatch
