// Package stock is the ledger of what is at the backends now, and the hysteresis band that says when more may go. It
// is a pure state machine: no goroutine, lock or clock; the same calls always give the same results.
//
// # The band
//
// Each ready backend contributes a lower bound, a watermark and an upper bound (Config); the pool's are their sums.
// Stock is the number of leases held: work that was dispatched and is not complete. A request may bypass the queue
// while stock < upper bound; waiting requests are released while stock < lower bound. Bounds are decimals in
// millionths of a request and compared exactly: 2 × 1.1 × 25 is 55. So under a backlog the stock stands at the lower
// bound rounded up.
//
// Work conservation overrides the band: with a ready backend and stock 0 a release is always allowed. With no ready
// backend nothing is.
//
// # Reservations
//
// Capacity is the upper bound rounded up: the most unit leases that "stock < upper bound" admits. A tier's baseline
// (floor, perSlot) becomes
//
//	reserved = min(capacity, max(floor, ceil(perSlot·capacity)))
//
// filled from the highest tier down with what remains when the sum exceeds the capacity, and computed anew at every
// change of the capacity. What a tier may still take is
//
//	available(t) = capacity − Σ inflight − Σ_{higher} max(0, reserved − inflight)
//
// never below 0: unused reservations of higher tiers are held back, a tier's own and lower ones never count. A shrink
// takes nothing away from anybody. (After SMG's priority scheduler; our capacity is 0 without a ready backend.)
//
// # Invariants
//
//   - Stock = Σ inflight of the tiers = leases taken − leases settled, and never negative; cost likewise.
//   - A lease is settled exactly once; Settle says whether this call did it.
//   - Stock changes only when a lease is taken or settled (the seed's third event, an expiry, holds no lease here).
//
// The package knows nothing of flows, fairness, or why a lease exists.
package stock
