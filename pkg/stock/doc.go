// Package stock is the ledger of the work at the backends, with the hysteresis band that decides when more requests may
// go. It is a pure state machine: no goroutine, lock or clock; the same calls always give the same results.
//
// # The band
//
// Each ready backend contributes a lower bound, a watermark and an upper bound (Config, Backend); the pool's bounds, in
// requests, are their sums. Only this package computes them: a change returns the backend's bounds, and the caller
// tells the placer. Stock is the leases held: work dispatched and not complete. A request may bypass the queue while
// stock < upper bound; waiting requests are released while stock < lower bound. Bounds are decimals in millionths,
// summed and compared exactly: 2 × 1.1 × 25 is 55. So under a backlog the stock stays at the lower bound, rounded up.
//
// "Below" means that some ready backend has room (ADR 0134). A bound has whole requests, for its own backend only, and
// a rest below one request. The rests add up across backends, and a backend holds at most one request on its rest:
//
//	room = Σ max(0, whole − held) + max(0, ceil(Σ rest) − backends that hold a request on their rest)
//
// With whole bounds that is Σ max(0, bound − held). So stock above one backend's reduced bound keeps no other backend
// idle. Neither do leases at unready backends, which do not count until their backend is ready again.
//
// With Config.Unbounded there is no bound in requests, for engines known to queue well themselves: each backend
// contributes a thousand million requests. No request waits for the stock, and reservations have no effect.
//
// Stock is counted in two units: requests, and their tokens in the engines' memory. The band in tokens is off by
// default (TokensConfig). It applies to each backend alone: slots add up across backends, but a request takes all its
// tokens at one backend, and may take more than all backends together may hold. So the ledger returns each backend's
// bounds (Bounds), and the placer counts the tokens there. The ledger has the sum of the tokens. Capacity and
// reservations are in requests.
//
// Work conservation overrides the band: if a backend is ready and nothing is in flight, a release of any size is
// allowed. Without a ready backend no release is.
//
// # Bounds that follow the engines
//
// With Config.Follow the bound of a backend without reported slots is learned from its engine's reports (Learned),
// about one per second:
//
//	bound = held − waiting + 1   if 2 or more have waited inside in two reports in a row, running has not risen above the most
//	                             of the row, and the engine cannot be reading long prompts
//	bound ≤ running              after a preemption, and no growth for 10 s
//	bound × 1.25, then + 1       while requests wait here, the bound is full, none waits inside, and the engine works
//
// rounded up, and at least 1. After the first shrink the last line adds 1 instead, and requires two reports in a row.
// An engine is not reading long prompts if its requests get at least 10 tokens per second and two thirds of their
// fastest pace ever, or if running has not risen for 9 s; otherwise the bound shrinks only by its growth in the last 9
// s. An engine works if each of its running requests has got a token since the bound last grew or, without token
// counts, if one request has ended. So a bound is one more than the running requests plus those on their way, and at
// least one more than the most running during the row of reports. It shrinks with or without waiters here, but grows
// only with waiters. Without reports or without load it does not change. A counter that falls means a restart: the
// bound may then grow by a quarter again. The reasons are in ADR 0143, ADR 0157 and ADR 0159.
//
// # Foreign stock
//
// If several Weirs serve one pool, each learns the others' requests at a backend (SetForeign). This foreign stock
// counts against the bounds and the capacity, and a pool with foreign stock is not idle. It belongs to no lease or
// tier, uses up no reservation, and leaves with the backend. The placer learns its counted part, for its lanes and its
// pick.
//
// # Leases
//
// A lease is taken with the tokens estimated at dispatch, adjusted to each better estimate, and settled exactly once
// with its latest tokens.
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
// but never less than 0: unused reservations of higher tiers are withheld, a tier's own and lower tiers' are not. room
// is the room below the upper bounds, and inflight the leases at ready backends. Without a shrink, room is capacity −
// foreign − Σ inflight. Leases survive a shrinking capacity. (After SMG's priority scheduler; our capacity is 0 without
// a ready backend.)
//
// # Invariants
//
//   - Stock = Σ inflight of the tiers = leases taken − leases settled, and never negative.
//   - Tokens = Σ of the current tokens of the leases held.
//   - A lease is settled exactly once; Settle reports whether this call settled it.
//   - Stock changes only when a lease is taken or settled, tokens also when a lease is adjusted. (In the seed an expiry
//     changes stock, too; here an expired request holds no lease.)
//   - Changing backends one by one gives the same bounds as setting them all at once.
//
// The package knows nothing of flows, fairness, or why a lease exists.
package stock
