// Package fairqueue is the fair request queue. It decides which waiting request goes next, which one is displaced when the
// queue is full, and which ones have expired. It is a pure state machine without goroutine, lock, clock, log or random
// source. Time is an argument, queries return when to ask again, and the same calls always give the same results.
//
// # Structure
//
//	FairRequestQueue
//	  tier              a strict priority level, highest first, or a weighted share (tier.go, starvation.go)
//	    class           shares its tier with other classes (classes.go, turn.go); a single one without Config.Classes
//	      flow          one fair share of its class, or of the flow that it is under (flow.go)
//	        flowLane    the flow's requests in one lane (lane.go)
//	          line      these requests in their order, and by arrival (line.go)
//	            Request
//
// Flows can be nested: a tenant's users are flows under the tenant's flow. A request names its flows with Flow and Path.
// Classes and flows are sharers. A discipline (discipline.go) divides a level among its sharers; a level is the classes
// of a tier, the flows of a class, or the flows under a flow. A discipline sees only level and share, so wfq (wfq.go)
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
// Tags are deferred: only the head of a flow has one. It is computed from the flow's start, which is the maximum in the
// formula at the time when the flow becomes backlogged or its previous request is popped. For sequences of push and pop
// with fixed weights and one lane, this gives the same order as tags computed at arrival (TestWFQEqualsSeedFormula),
// because the previous tag of a backlogged flow is never behind virtual time. When a request is cancelled or a weight
// changes, no other tag must be recomputed. When a released request is requeued, its increment is subtracted from its
// flow's start, which may then be behind virtual time until the flow has used the refund.
//
// Discipline vtc has a formula and a bound of its own (vtc.go).
//
// # Bound
//
// With wfq, let flows f and g be backlogged throughout an interval, with weights w and largest costs l, and let W be
// the cost popped from each. Then |W_f/w_f − W_g/w_g| <= l_f/w_f + l_g/w_g, because each flow's next finish tag is at
// most one increment ahead of virtual time and never behind it. For flows of equal weight and cost 1 the difference is
// at most one request. This holds for every tie-break.
//
// # Cost of operations
//
// Push, Peek, Pop, Remove, displacement and the expiry of one request are O(log n) in flows and requests, times the
// number of tiers, of levels, and of lanes in which the request's own flow waits. (With discipline none, one flow has
// all lanes, but only the request's own lane is touched.) No operation visits all flows or all requests. With wfq, of a
// flow without waiting requests only the key is kept, because its last tag is never ahead of virtual time and so has no
// effect: each class keeps the last keptFlows map entries, and each flow with waiters the last keptUnder of the flows
// under it (flowtable.go). The structures kept for reuse are bounded by keptFlows and keptLanes.
//
// # Invariants (invariants_test.go checks them after every step of every test and fuzz run)
//
//   - Totals are sums: queued = Σ tiers = Σ flows = Σ flowLanes. Each queued request is among the deadlines exactly once,
//     in their list or their heap.
//   - A flowLane is in its lane's heap if and only if it has requests and is not parked. A lane is in its class's heap of
//     open lanes if and only if it has such a flowLane and is open.
//   - Virtual time never goes back, nor that of a lane with waiters (vtc). With wfq no head's start is ahead of virtual time, or so far behind it that the comparison of
//     tags would overflow (wfqrebase.go).
//   - In reserved mode Σ flowCapacity of the tracked flows <= totalCapacity, except after a reload or a requeue. With
//     weighted tiers, Σ min(flowCapacity, the tier's share) <= the tier's share of totalCapacity, which is at least 1.
//
// The package knows nothing of endpoints, stock, HTTP or the wall clock.
package fairqueue
