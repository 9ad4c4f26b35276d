// Package stock is the ledger of what is at the backends now, and the hysteresis band that says when more may go. It
// is a pure state machine: no goroutine, lock or clock; the same calls always give the same results.
//
// # The band
//
// Each ready backend contributes a lower bound, a watermark and an upper bound (Config, Backend); the pool's are their
// sums. Stock is the leases held: work that was dispatched and is not complete. A request may bypass the queue while
// stock < upper bound; waiting requests are released while stock < lower bound. Bounds are decimals in millionths, summed
// and compared exactly: 2 × 1.1 × 25 is 55. So under a backlog the stock stands at the lower bound rounded up.
//
// Stock has two units, counted side by side: requests, and the cost that they stand for (tokens in a token profile). Each
// has a band; that of cost is off by default (CostConfig). With both on, stock is below a bound when it is below it in
// both units. Capacity and reservations are in requests.
//
// Work conservation overrides the band: with a ready backend and no request there a release is always allowed, whatever
// its cost. With no ready backend nothing is.
//
// # Foreign stock
//
// Where several Weirs serve one pool, each is told what the others have at a backend (SetForeign). That counts as stock
// against the bounds and the capacity, and keeps the pool from being idle. It is nobody's lease, and it goes with the
// backend. It has no tier: it uses up no reservation.
//
// # Leases
//
// A lease is taken with the cost that is known at dispatch, adjusted as often as that turns out to be another, and
// settled exactly once, with what it then stands for.
//
// # Reservations
//
// Capacity is the upper bound rounded up: the most leases that "stock < upper bound" admits. A tier's baseline
// (floor, perSlot) becomes
//
//	reserved = min(capacity, max(floor, ceil(perSlot·capacity)))
//
// filled from the highest tier down with what remains when the sum exceeds the capacity, and computed anew at every
// change of the capacity. What a tier may still take is
//
//	available(t) = capacity − foreign − Σ inflight − Σ_{higher} max(0, reserved − inflight)
//
// never below 0: unused reservations of higher tiers are held back, a tier's own and lower ones never count. A shrink
// takes nothing away from anybody. (After SMG's priority scheduler; our capacity is 0 without a ready backend.)
//
// # Invariants
//
//   - Stock = Σ inflight of the tiers = leases taken − leases settled, and never negative.
//   - Cost = Σ over the leases held of what each stands for now, and never negative.
//   - A lease is settled exactly once; Settle reports whether this call did it.
//   - Stock changes only when a lease is taken or settled (the seed's third event, an expiry, holds no lease here), cost
//     also when one is adjusted.
//   - Backends changed one by one come to the same bounds as all of them set at once.
//
// The package knows nothing of flows, fairness, or why a lease exists.
package stock
