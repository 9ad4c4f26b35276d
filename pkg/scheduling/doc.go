// Package scheduling chooses the model server for a request: filter, score, pick, reserve.
//
// It owns the values that say which endpoints exist ([Endpoint], [Snapshot]), what their engines report ([Signals]), what
// a request asks of them ([Ask], [Subset]) and what it then holds ([Reservation]), and Weir's own count of the requests
// in flight at each ([Board]).
//
// # In two halves
//
// [Scheduler.Prepare] does everything that depends on the request and on a snapshot alone, before any lock: it
// normalises the subset, applies the filters, names the lane, and asks the scorers that depend on the request.
// [Board.Place] runs under the caller's lock and compares live numbers only: it picks the best of the prepared
// candidates and counts the request there, in one step, so that of two simultaneous picks the second sees the first. A
// [Query] that was prepared on another snapshot than the board's (it waited in a queue meanwhile) is filtered again by
// itself; its scores are by endpoint ID and hold on any snapshot.
//
// Asking ([Board.HasRoom], [Board.HasReady], [Board.CanServe], [Board.CanTakeOver]) changes nothing that a pick depends
// on, and draws no random number.
//
// # The lane and its band
//
// The name of a lane is a function of the request: the canonical, sorted subset and, when some endpoint lists models,
// the model. "" is the whole pool. On any one snapshot equal names mean equal sets. (The one exception heals itself:
// requests that were prepared while no endpoint listed models keep the lane "", also when models appear later; they
// are then filtered by their model nonetheless.)
//
// In a lane that is not the whole pool, Place refuses while
//
//	Σ inFlight(e) × 1,000,000  >=  Σ bound(e)      both over the lane's ready endpoints
//
// with bound the endpoint's lower or upper bound in millionths of a request; the counts are those of all leases
// there, whatever their lane. A lane without a request in flight and with a ready endpoint can always be placed. The
// band of the whole pool is the stock ledger's business and is not looked at here. An endpoint's MaxInFlight is hard
// and holds in every lane.
//
// # The score
//
//	total(e) = Σ weight(s) × score(s, e)           over the configured scorers
//
// in integers: a [Score] lies in [0, ScoreOne], and no float decides an order. A scorer looks at one endpoint at a
// time and never at the others, so the board keeps the total of every endpoint and renews it when its count, its bound
// or its signals change; a pick only compares. A scorer that depends on the request (prefix, session) names the
// endpoints that it prefers in Prepare, and a pick adds its part to those. A scorer may remember what it is told of
// placements and releases; each scheduler makes its own.
//
// least-stock is projected load, the load after this pick relative to the endpoint's upper bound b:
//
//	score(e) = ScoreOne × b / (b + (inFlight(e) + 1) requests)
//
// With equal bounds this is exactly "fewest in flight first"; with unequal ones an endpoint with room is preferred to
// one without. Rounding never inverts an order: it makes a tie at most (between loads closer than one part in 2^40).
//
// Ties go to the next endpoint in ring order after the last one picked (rotate), to the lowest ID (first), or to a
// random one out of the caller's source (random). The ring order is that of EndpointID.
//
// # What it costs
//
// With n endpoints, a change of one and a pick among all are O(log n): the totals lie in a binary tree of which each
// node has the better child's (tournament.go), and it is asked for the first of the best in ring order. A lane of up to
// 64 ready endpoints is looked at one by one. A larger one has a tree and a stock of its own, which follow the board's
// changes when the lane is asked the next time: O(log n) for each change since, or O(n) when there are many; what
// happens in other lanes costs nothing until then. Endpoints that a flow may not use more of are an [EndpointSet]; what
// is left of a lane without them is looked at in blocks of 64, without those blocks that have none better.
// A request that some scorer prefers m endpoints for costs O(m) more.
//
// # Invariants
//
//   - the counts of a board sum up to the reservations that are not released; none is negative
//   - an endpoint that leaves keeps its count until that is 0, and has it back when it returns
//   - the choice, and every fallback, is ready and inside the lane, and below its MaxInFlight
//   - the same calls give the same choices, always
//
// # What it must never know
//
// Queues, flows, fairness and tiers; Kubernetes, files and how readiness or metrics arrived; HTTP and Envoy; the
// clock. It has no goroutine, channel, lock, context, logger or metric, and imports the standard library only.
package scheduling
