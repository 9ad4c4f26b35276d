// Package scheduling chooses the model server for a request: filter, compare, pick, reserve.
//
// It owns the values for endpoints ([Endpoint], [Snapshot]), their engines' reports ([Signals]), a request's needs
// ([Ask], [Subset]) and its holdings ([Reservation]), and Weir's own count of the requests in flight at each endpoint
// ([Board]).
//
// # Two phases
//
// [Scheduler.Prepare] does all work that depends only on the request and a snapshot, before any lock: it normalises the
// subset, applies the filters and names the lane; [Query.Rate] adds the ratings of its prompt. [Board.Place] runs under
// the caller's lock and only compares live numbers: it picks the best of the prepared candidates and counts the request
// there in one step, so the second of two simultaneous picks sees the first. Place filters a [Query] again if the
// board's snapshot has changed since Prepare, as after a wait in the queue; its ratings are by endpoint ID and hold on
// any snapshot.
//
// Queries ([Board.HasRoom], [Board.HasReady], [Board.CanServe], [Board.CanTakeOver]) change nothing that affects a
// pick, and draw no random number.
//
// # The lane and its band
//
// The name of a lane is a function of the request and the snapshot. It has the canonical, sorted subset and, when some
// endpoint lists models, the first of the models with the same endpoints as the request's model; unlisted models share
// one lane. "" is the whole pool. On one snapshot equal names mean equal sets of endpoints. Without a subset, models
// with equal sets share one name: a base model and its adapters on the same engines are one lane. Subsets with
// different spellings are separate lanes, even if they name the same endpoints.
//
// A request's other needs ([Needs]) are part of its lane if some endpoint of the model does not meet them: "model=a
// needs=image". Without such endpoints there are no such lanes. Different needs are separate lanes even if the same
// endpoints meet them. A snapshot in which an endpoint lacks something may regroup any lane, if models get other lanes
// or their endpoints lack other needs.
//
// A snapshot that changes which models have equal sets of endpoints regroups lanes: they split, merge, or get another
// name ([Regrouping]). [Snapshot.Next] compares two snapshots before the lock, in O(models). Adding or removing an
// endpoint of the same models, or a change of readiness, regroups nothing.
//
// In a lane that is not the whole pool, Place refuses while there is no room, over the lane's ready endpoints:
//
//	room    = Σ max(0, whole(e) − held(e)) + max(0, Σ rest(e) − endpoints with held(e) > whole(e) and a rest)
//	held(e) = inFlight(e) + foreign(e),  whole(e) + rest(e) = bound(e),  rest(e) < 1 request
//
// where bound is the endpoint's lower or upper bound in millionths of a request ([Board.SetBounds]), inFlight counts
// all its leases, of any lane, and foreign counts the requests of other Weirs there ([Board.SetForeign]). A lane with a
// ready endpoint and no request held always has room. The band of the whole pool belongs to the stock ledger and is not
// checked here. In every lane an endpoint that holds its upper bound, rounded up, gets no more requests. Its
// MaxInFlight also limits passed-on requests.
//
// An endpoint with a bound in tokens ([Board.SetTokenBounds]) is full, in every lane, while
//
//	tokens(e) >= upper(e)
//
// with the tokens of Weir's own requests there ([Board.AddTokens]) and of other Weirs, so it exceeds the bound by less
// than the tokens of its last request, and an empty endpoint takes a request of any size. The pool is below a bound in
// tokens while a ready endpoint is below its own ([Board.BelowTokens]).
//
// # The comparison
//
// A request goes to the permitted endpoint with the least cost, in tokens of delay:
//
//	cost(e) = 2 × prompts(e) + u(e) × load(e)            u(e) = L − cached(e)
//	load(e) = (1 + held(e)) × 64 / bound(e)
//
// where prompts(e) are the tokens of earlier prompts that e has yet to read, L is the length of the request's prompt,
// cached(e) the part of it expected in e's cache ([Ratings]), and bound the endpoint's upper bound, or 64 without one
// that counts. The request waits for the prompts before its own, and its own prompt delays the requests running there.
// prompts(e) includes only prompts whose first tokens will be seen (unread.go); otherwise it is 0. Where tokens are
// bounded, load(e) is 64 × tokens(e) / bound if that is more: the load counts in the unit in which the endpoint is
// fuller. Costs are integers in 65,536ths of a token, for prompts up to 2^22 tokens.
//
// For an unknown prompt u is 1,000 at every endpoint. For a known prompt u is the same at all endpoints without a
// rating. Without prompts to read, the loads alone decide the order of such endpoints. The board keeps each endpoint's
// standing,
//
//	standing(e) = MostStanding × b / (b + (held(e) + 1) requests)
//
// and updates it when the count or the bound changes; a pick only compares. With equal bounds this is exactly "fewest
// held first"; with unequal bounds an endpoint with room is preferred to one without. Rounding never inverts an order;
// at most it ties loads closer than one part in 2^40. So a pick compares the best endpoint by standing, at u = L −
// floor, with each endpoint that has more cached than the floor, at its own u. Of equal costs the endpoint with more
// cached wins. While prompts are being read, the pick searches all endpoints by cost (cheapest.go).
//
// If no endpoint with more than the floor is better, the pick takes the first of Ratings.Near that costs at most a
// quarter more than the best. Independent replicas rank alike, so prompts with the same beginning meet the same engine.
//
// An engine without the request's LoRA adapter ([Ask]) has to load it (adapters.go): loading adds AdapterTokens to
// u(e), and up to twice as many if another adapter has to leave, or is in use.
//
// With MindRouter's points ([Points]) the endpoint with the highest total is picked; the standing is then the part of
// the total that does not depend on the request.
//
// The comparison is an interface (comparison.go) that sees one endpoint at a time. With policy none all endpoints are
// equal.
//
// Ties go to the next endpoint in ring order after the last pick (rotate), to the lowest ID (first), or to a draw from
// the caller's random source (random). The ring order is by EndpointID.
//
// # Prefill engines
//
// An endpoint's [Work] is to answer requests, to read prompts, or both. Where prefill engines read prompts for decode
// engines, a long prompt gets a slot at one engine of each kind, or at none (prefill.go).
//
// # What it costs
//
// With n endpoints, a change of one and a pick among all are O(log n): the totals are in a binary tree (tournament.go)
// that finds the first of the best in ring order. Lanes of up to 64 ready endpoints are searched one by one. A larger
// lane has its own tree and stock, which catch up with the board when the lane is next used: O(log n) for each change
// since, or O(n) if there are many. Until then, changes in other lanes cost nothing. An [EndpointSet] has the endpoints
// that a flow may no longer use; the rest of a lane is then searched in blocks of 64, skipping blocks with nothing
// better. A prompt cached at m endpoints, at most MaxAbove, adds O(m) to a pick. The trees also have the endpoints that
// are full by tokens, after all others, so a pick with AnyReady costs the same.
//
// # Invariants
//
//   - the sum of a board's counts is the number of reservations not released; no count is negative
//   - a departed endpoint's count is kept until it is 0, and restored if the endpoint returns
//   - other Weirs' requests at an endpoint count while it stays ready, and nothing here releases them
//   - the choice and every fallback are ready, inside the lane, and below their MaxInFlight
//   - the same calls give the same choices, always
//
// # What it must never know
//
// Queues, flows, fairness and tiers; Kubernetes, files, and the sources of readiness and metrics; HTTP and Envoy; the
// clock. It has no goroutine, channel, lock, context, logger or metric, and imports the standard library only.
package scheduling
