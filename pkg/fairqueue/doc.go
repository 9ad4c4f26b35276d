// Package fairqueue is the fair request queue. It decides which waiting request goes next, which one is displaced when the
// queue is full, and which ones have expired. It is a pure state machine without goroutine, lock, clock, log or random
// source. Time is an argument, queries return when to ask again, and the same calls always give the same results.
//
// # Structure
//
//	FairRequestQueue
//	  tier              a strict priority level, highest first, or a weighted share (tier.go, starvation.go)
//	    ring            has its turn with other rings; a single one unless classes name others (ring.go)
//	    class           shares its ring with other classes (classes.go, turn.go); a single one without Config.Classes
//	      flow          one fair share of its class, or of the flow that it is under (flow.go)
//	        flowLane    the flow's requests in one lane (lane.go)
//	          line      these requests in their order, and by arrival (line.go)
//	            Request
//
// Flows can be nested: a tenant's users are flows under the tenant's flow. A request names its flows with Flow and Path. A flow
// that is under another one has its weight, its capacity and its cap beside that one's (levels.go, parkingunder.go).
// Classes and flows are sharers. A discipline (discipline.go) divides a level among its sharers; a level is the classes
// of a ring, the flows of a class, or the flows under a flow. A discipline sees only level and share, so wfq (wfq.go)
// works on every level of flows. Classes share by deficit round robin (drr.go).
//
// A lane is a set of backends that a request may use. Requests in different lanes must not block each other, so a class
// keeps a heap of flowLanes for each lane, and a heap of the lanes that can go (class.go). The seed has a heap of
// requests per flow instead; here a flow's requests need one only if their order is not that of arrival.
//
// # Formula
//
// Discipline wfq is the seed's weighted fair queueing (after Demers, Keshav, Shenker 1989; self-clocked as in
// Golestani 1994):
//
//	virFinishTime(r) = max(virtualTime, flow.lastVirFinishTime) + cost(r)/weight(flow)
//
// A pop sets virtualTime to max(virtualTime, the popped finish tag). The least tag goes first. Ties are frequent: with
// equal weights and costs, a flow that becomes backlogged has the same tag as the next head. The seed does not define
// their order. Here it is by arrival or, with NewcomerFirst, in favour of a flow that has not been served since it became
// backlogged.
//
// Virtual time and a flow's start belong to a lane (standing.go): lanes go on at different speeds. A lane without
// waiters is where the furthest of its level is. The charge of a request moves its flow in the lane of the request,
// and in the lanes that Request.CountAlsoIn names, where the flow competes for the same backends. So all that follows
// holds for the flows of one lane, whatever is done in others. When lanes' names come to mean other sets of backends,
// requests move between lanes (regroup.go): flows that go from one lane to another together stand to each other as they
// stood.
//
// Tags are deferred: only the head of a flow has one. It is computed from the flow's start, which is the maximum in the
// formula at the time when the flow becomes backlogged or its previous request is popped. For sequences of push and pop
// with fixed weights and one lane, this gives the same order as tags computed at arrival (TestWFQEqualsSeedFormula),
// because the previous tag of a backlogged flow is never behind virtual time. When a request is cancelled or a weight
// changes, no other tag must be recomputed. When a released request is requeued, its increment is subtracted from its
// flow's start, which may then be behind virtual time until the flow has used the refund.
//
// Costs may be estimates. When the actual cost of a request becomes known, or exceeds the estimate in flight, the flow's
// start moves by (actual − charged)/weight, at the weight of the pop, and its heads' tags with it. Without corrections
// nothing changes. A refund does not lower the start below virtual time at the flow's last return, when it began to wait
// while nothing of it did, or at its last pop that others had passed while it could not go: as with exact costs, neither
// idle time nor a cap banks anything. A start may be ahead of virtual time, by up to largestLead, because more was used
// than charged: it stays so when the flow leaves and comes back, until virtual time has passed it. If such a flow is
// alone, virtual time follows its tags; out of turn (Claim) it moves by the request's own increment only, so that the
// debt stays one. A request that does not wait leaves no tag, as in the seed, and so its usage does not either.
//
// A head waits for as long as its estimate says, whatever is refunded later. So a flow that sends its next request when the
// last one has ended is served by its estimates: use vtc, where a head's own cost does not matter.
//
// Disciplines vtc and fairshare have formulas and bounds of their own (vtc.go, fairshare.go).
//
// # Bound
//
// With wfq, let flows f and g be backlogged in one lane throughout an interval, with weights w and largest costs l, and let
// W be the cost popped from each, there and elsewhere if it counts there. Then |W_f/w_f − W_g/w_g| <= l_f/w_f + l_g/w_g,
// because each flow's next finish tag is at most one increment ahead of virtual time and never behind it. (What counts from
// elsewhere is at most one increment more for each such request.) For flows of equal weight and cost 1 the difference is
// at most one request. This holds for every tie-break.
//
// It is for flows whose requests go by arrival, or cost the same. If a cheaper request overtakes a dearer one of its
// own flow (WSPT, priorities, another flow under the same one), its tag may be behind virtual time, where the flow's
// start then goes: the flow loses its wait for the dearer one. With vtc it does not.
//
// With corrections, let both be in one lane and able to go, with fixed weights, let c be charges over weights at the pop, l
// the largest c of a flow, and E the largest value, until the end of the interval, of the sum of |actual − charged|/weight
// over both flows' requests in flight. Then the starts' movements differ by at most l_f + l_g + 2E, as the counters of vtc:
//
//   - When f goes, its tag is at most g's, so then S_f − S_g <= l_g. Until f goes again, the difference grows only by
//     corrections of requests in flight at that moment, which are E in all: later pops of g can be refunded no
//     further than it was charged. No start is moved to virtual time meanwhile, since that is never later than the tags
//     of those that can go, but for corrections that have put them behind it.
//   - If f has not gone since both wait, it began at virtual time, which was a tag not after g's, so at most l_g after S_g
//     and what was refunded to g since; or at its own start, which at its last pop was not after g's tag either, or, if g
//     came later, not after g's floor.
//   - So S_f − S_g is between −l_f − E and l_g + E all the time.
//
// The service attained differs by that and the requests in flight. TestBoundOfTrueUps asserts it over random workloads,
// and TestAdversaryOfEstimates by one that is built to break it.
//
// # Cost of operations
//
// Push, Peek, Pop, Remove, displacement and the expiry of one request are O(log n) in flows and requests, times the
// number of tiers, of levels, and of lanes in which the request's own flow waits. (With discipline none, one flow has
// all lanes, but only the request's own lane is touched.) With fairshare a Peek also looks at up to reviewedLanes lanes of
// the flow above the threshold. No operation visits all flows or all requests, except Regroup, Reconfigure and Drain.
//
// A flow without waiting requests keeps only its start, by which it may owe: while requests of it are in flight, and
// then for the last keptFlows of a class and the last keptUnder under an active flow (flowtable.go). A forgotten flow
// owes nothing. So any number of identities leaves as many flows known as wait or are in flight, and these. The structures
// kept for reuse are bounded by keptFlows and keptLanes.
//
// # Invariants (invariants_test.go checks them after every step of every test and fuzz run)
//
//   - Totals are sums: queued = Σ tiers = Σ flows = Σ flowLanes. Each queued request is among the deadlines exactly once,
//     in their list or their heap.
//   - A flowLane is in the heap of its branch if and only if it has requests and is not parked. It is parked if and only if its
//     flow is at its cap, or all flows under it are parked. A lane is in its class's heap of open lanes if and only if it has a
//     flowLane that is not parked and is open.
//   - Each class is in the ring of its name, and each ring in its tier. What waits in a class against its limits is the sum over
//     its requests.
//   - Virtual time never goes back, nor that of a lane with waiters (vtc). No start is before its floor, or so far ahead of
//     virtual time or behind it that the comparison of tags would overflow (wfqrebase.go).
//   - In reserved mode Σ flowCapacity of the tracked flows <= totalCapacity, except after a reload or a requeue. With
//     weighted tiers, Σ min(flowCapacity, the tier's share) <= the tier's share of totalCapacity, which is at least 1.
//
// The package knows nothing of endpoints, stock, HTTP or the wall clock.
package fairqueue
