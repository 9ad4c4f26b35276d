// Package stock is the ledger of the work at the backends, and the hysteresis band that decides when more may go. It is
// a pure state machine: no goroutine, lock or clock; the same calls always give the same results.
//
// # The band
//
// Each ready backend contributes a lower bound, a watermark and an upper bound (Config, Backend); the pool's, in requests,
// are their sums. Nothing else computes them: a change returns the backend's part, and its caller tells the placer.
// Stock is the leases held: work that was dispatched and is not complete. A request may bypass the queue while stock <
// upper bound; waiting requests are released while stock < lower bound. Bounds are decimals in millionths, summed and
// compared exactly: 2 × 1.1 × 25 is 55. So under a backlog the stock stands at the lower bound rounded up.
//
// "Below" means that there is room at some ready backend (ADR 0134). A bound has whole requests, which are for its backend
// alone, and a rest below one; the rests add up, and a backend holds at most one request on its rest:
//
//	room = Σ max(0, whole − held) + max(0, ceil(Σ rest) − backends that hold a request on their rest)
//
// With whole bounds that is Σ max(0, bound − held). So stock above the bound of a backend that has shrunk keeps no other
// one idle, nor do leases at backends that are not ready, which count for nothing until these are ready again.
//
// With Config.Unbounded there is no bound in requests, for engines that are known to queue well themselves: each backend
// contributes a thousand million requests. Nothing waits for the stock, and reservations hold back nothing that is missed.
//
// Stock is counted in two units: requests, and the tokens that they take of the engines' memory. The band in tokens is
// off by default (TokensConfig), and each backend's own: slots add up, but one request may take more tokens than all
// backends together may hold, and takes them at one backend. So the ledger returns each backend's bounds (Bounds), and
// the placer counts the tokens there. The ledger has their sum. Capacity and reservations are in requests.
//
// Work conservation overrides the band: if a backend is ready and nothing is in flight, a release is always allowed,
// however large. Without a ready backend none is.
//
// # Bounds that follow the engines
//
// With Config.Follow the bound of a backend that reports no slots is learned from its engine's reports (Learned), one of
// which comes about every second:
//
//	bound = held − waiting + 1   if 2 or more have waited inside in two reports in a row, running has not risen above the most
//	                             of the row, and the engine cannot be reading long prompts
//	bound ≤ running              after a preemption, and no growth for 10 s
//	bound × 1.25, then + 1       while requests wait here, the bound is full, none waits inside, and the engine works
//
// rounded up, and at least 1. From the first shrink on the last line has + 1, and takes two reports in a row. An engine is
// not reading long prompts if its requests get their tokens at two thirds of the fastest pace that they ever had, and at
// 10 per second, or if running has not risen for 9 s; otherwise only what the bound has grown by in the last 9 s is taken
// back. An engine works if
// each request that it runs has got a token since the bound last grew or, where its tokens are not known, if one has ended. So
// a bound is the running requests and those on their way, and one more, and at least the most running of the row + 1; it shrinks
// with or without waiters here, and grows only with some; and in silence, or hours without load, it stays. A counter that falls is
// a restart: from then on the bound may grow by a quarter again. The reasons are in ADR 0143, ADR 0157
// and ADR 0159.
//
// # Foreign stock
//
// If several Weirs serve one pool, each learns the others' requests at a backend (SetForeign). This foreign stock
// counts against the bounds and the capacity, and a pool with foreign stock is not idle. It belongs to no lease or
// tier, so it uses up no reservation, and it goes with the backend. The placer is told the counted part of it, for its
// lanes and its pick.
//
// # Leases
//
// A lease is taken with the tokens estimated at dispatch, adjusted whenever a better estimate is known, and settled exactly
// once, with its latest tokens.
//
// # Reservations
//
// Capacity is the upper bound rounded up: the most leases that "stock < upper bound" permits. A tier's baseline
// (floor, perSlot) becomes
//
//	reserved = min(capacity, max(floor, ceil(perSlot·capacity)))
//
// clamped from the highest tier down to what remains if the sum exceeds the capacity, and recomputed whenever the
// capacity changes. A tier may still take
//
//	available(t) = room − Σ_{higher} max(0, reserved − inflight)
//
// but never less than 0: unused reservations of higher tiers are withheld, a tier's own and lower ones are not; room is that
// below the upper bounds, and inflight are the leases at ready backends. Without a shrink, room is capacity − foreign − Σ
// inflight. Leases
// survive a shrinking capacity. (After SMG's priority scheduler; our capacity is 0 without a ready backend.)
//
// # Invariants
//
//   - Stock = Σ inflight of the tiers = leases taken − leases settled, and never negative.
//   - Tokens = Σ of the current tokens of the leases held.
//   - A lease is settled exactly once; Settle reports whether this call did it.
//   - Stock changes only when a lease is taken or settled (the seed's third event, an expiry, holds no lease here),
//     tokens also when one is adjusted.
//   - Changing backends one by one gives the same bounds as setting them all at once.
//
// The package knows nothing of flows, fairness, or why a lease exists.
package stock
