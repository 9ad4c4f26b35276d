// Package scheduling chooses the model server for a request: filter, compare, pick, reserve.
//
// It owns the values for the endpoints ([Endpoint], [Snapshot]), for the reports of their engines ([Signals]), for the
// demands of a request ([Ask], [Subset]) and its holdings ([Reservation]), and Weir's own count of the requests in
// flight at each endpoint ([Board]).
//
// # Two phases
//
// [Scheduler.Prepare] does everything that depends only on the request and on a snapshot, before any lock: it
// normalises the subset, applies the filters and names the lane; [Query.Rate] adds the ratings of its prompt.
// [Board.Place] runs under the caller's lock and only compares live numbers: it picks the best of the prepared
// candidates and counts the request there, in one step, so that of two simultaneous picks the second sees the first. A
// [Query] that was prepared on another snapshot than the board's (because it waited in a queue) is filtered again
// automatically; its ratings are by endpoint ID and hold on any snapshot.
//
// Queries ([Board.HasRoom], [Board.HasReady], [Board.CanServe], [Board.CanTakeOver]) change nothing that a pick depends
// on, and draw no random number.
//
// # The lane and its band
//
// The name of a lane is a function of the request and the snapshot: the canonical, sorted subset and, when some endpoint
// lists models, the first of the models that the same endpoints serve as the request's; models that no endpoint lists have
// one lane together. "" is the whole pool. On any one snapshot equal names mean equal sets, and models without a subset that
// are served by equal sets have one name: a base model and its adapters on the same engines are one lane. Subsets that are
// written differently are lanes of their own, even if they name the same endpoints.
//
// The needs of a request besides its model ([Needs]) are part of its lane as well, as far as some endpoint of the model does
// not meet them: "model=a needs=image". Where no endpoint lacks anything there are no such lanes. Different needs that the same
// endpoints meet are lanes of their own. A snapshot in which an endpoint lacks something, and models get other lanes or are
// served by endpoints that lack other needs, may regroup any lane.
//
// A snapshot in which models are served by other sets than before, or no more by equal ones, regroups them: lanes split,
// merge, or get another name ([Regrouping]). [Snapshot.Next] compares the two before the lock, in O(models). One more or one
// less endpoint of the same models, and readiness, regroup nothing.
//
// In a lane that is not the whole pool, Place refuses while there is no room, over the lane's ready endpoints:
//
//	room    = Σ max(0, whole(e) − held(e)) + max(0, Σ rest(e) − endpoints with held(e) > whole(e) and a rest)
//	held(e) = inFlight(e) + foreign(e),  whole(e) + rest(e) = bound(e),  rest(e) < 1 request
//
// with bound the endpoint's lower or upper bound in millionths of a request, which [Board.SetBounds] sets; inFlight are
// all leases there, whatever their lane, and foreign are the requests of others there ([Board.SetForeign]). A lane with
// a ready endpoint and nothing held there always has room. The band of the whole pool belongs to the stock ledger and
// is not checked here. In every lane an endpoint that holds its own upper bound, rounded up, gets no more; its
// MaxInFlight is a limit also of requests that are passed on.
//
// Where the tokens at an endpoint are bounded ([Board.SetTokenBounds]), it is full, in every lane, while
//
//	tokens(e) >= upper(e)      of Weir's own requests there ([Board.AddTokens]) and of others'
//
// so it exceeds that by less than the tokens of the last request that went there, and one without any takes a request of
// any size. The pool is below a bound in tokens while a ready endpoint is below its own ([Board.BelowTokens]).
//
// # The comparison
//
// A request goes to the endpoint with the least cost, in tokens of delay, of those that it may use:
//
//	cost(e) = 2 × prompts(e) + u(e) × load(e)            u(e) = L − cached(e)
//	load(e) = (1 + held(e)) × 64 / bound(e)
//
// with prompts(e) the tokens that e has to read before, L the tokens of the request's prompt, cached(e) those of them
// that are expected in the cache of e ([Ratings]), and bound the endpoint's upper bound; 64, where it has none that
// counts. The request waits for the prompts before its own, and its own delays those that run there. Only prompts
// before it count whose first tokens will be seen (unread.go); without any the term is 0. Where tokens are bounded,
// load(e) is 64 × tokens(e) / bound if that is more: a load counts in the unit in which the endpoint is fuller. Costs
// are integers in 65,536ths of a token, of prompts up to 2^22.
//
// For an unknown prompt u is 1,000 at every endpoint; for any other it is the same at all endpoints without a rating.
// Without prompts to read, the loads alone decide the order of such endpoints. The board keeps the standing of each,
//
//	standing(e) = MostStanding × b / (b + (held(e) + 1) requests)
//
// and updates it when its count or its bound changes; a pick only compares. With equal bounds this is exactly "fewest held
// first"; with unequal ones an endpoint with room is preferred to one without. Rounding never inverts an order; at most it
// makes a tie, between loads closer than one part in 2^40. So a pick compares the best of all by standing, at u = L − floor,
// with the endpoints that have more than the floor, each at its own u. Of equal costs the one with more cached is taken. While
// prompts are being read, the best of all is searched by cost (cheapest.go).
//
// If no endpoint with more than the floor is better, the first of Ratings.Near is taken that costs at most a quarter more
// than the best. Replicas that do not know of each other rank alike, so prompts that begin alike meet the same engine.
//
// An engine that is not expected to have the LoRA adapter of a request ([Ask]) has to load it (adapters.go): loading
// adds AdapterTokens to u(e), and up to twice as many where another adapter has to leave, or is in use.
//
// By MindRouter's points ([Points]) the highest total goes first instead; the standing is then the part of the total
// that does not depend on the request.
//
// The comparison is an interface (comparison.go). It looks at one endpoint at a time and never at the others. With policy none
// all endpoints are alike.
//
// Ties go to the next endpoint in ring order after the last one picked (rotate), to the lowest ID (first), or to one
// drawn from the caller's random source (random). The ring order is that of EndpointID.
//
// # Prefill engines
//
// An endpoint's [Work] is to answer requests, to read prompts, or both. Where prefill engines read prompts for decode
// engines, a long prompt gets a place at one engine of each kind, or at none (prefill.go).
//
// # What it costs
//
// With n endpoints, a change of one and a pick among all are O(log n): the totals are in a binary tree (tournament.go)
// that finds the first of the best in ring order. Lanes of up to 64 ready endpoints are searched one by one. A larger
// lane has a tree and a stock of its own, which catch up with the board's changes when the lane is next used: O(log n)
// for each change since, or O(n) if there are many. Until then, changes in other lanes cost nothing. The endpoints that
// a flow may not use any more are an [EndpointSet]; the rest of a lane is then searched in blocks of 64, skipping those
// that have nothing better. Of a prompt that m endpoints have cached, at most MaxAbove, a pick costs O(m) more. Endpoints
// that are full by tokens are in the trees as well, after all others, so a pick with AnyReady costs the same.
//
// # Invariants
//
//   - the sum of a board's counts is the number of reservations not released; no count is negative
//   - an endpoint that leaves keeps its count until that is 0, and gets it back when it returns
//   - the requests of others at an endpoint count while it stays ready, and nothing here releases them
//   - the choice and every fallback are ready, inside the lane, and below their MaxInFlight
//   - the same calls give the same choices, always
//
// # What it must never know
//
// Queues, flows, fairness and tiers; Kubernetes, files, and the sources of readiness and metrics; HTTP and Envoy; the
// clock. It has no goroutine, channel, lock, context, logger or metric, and imports the standard library only.
package scheduling
