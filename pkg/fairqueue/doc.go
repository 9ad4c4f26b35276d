// Package fairqueue is the fair request queue: which waiting request goes next, which one must leave when there is
// no room, and when the next one is due to expire. It is a pure state machine: no goroutine, lock, clock, log or
// random source. Time enters as an argument, queries say when to ask again, and the same calls always give the same
// results.
//
// # Structure
//
//	FairRequestQueue
//	  tier              strict priority level, highest first, or a weighted share (tier.go, starvation.go)
//	    class           shares its tier with the others (classes.go, turn.go); one, unless Config.Classes names some
//	      flow          one fair share of its class (flow.go), or of the flow that it is under
//	        flowLane    the flow's requests in one lane (lane.go)
//	          line      in their order, and beside that by arrival (line.go)
//	            Request
//
// Tenant and user are flows, one under the other; a request names its path of them (Path). Classes and flows are all
// sharers: a discipline (discipline.go) shares a level, which is the classes of a tier, the flows of a class, or those
// under a flow. It knows a level by its level and a sharer by its share; so wfq.go serves at each of them. Classes share
// by deficit round robin (drr.go).
//
// A lane is a set of backends that a request may use. Requests of different lanes do not block each other, so lanes are
// outermost within a class: it keeps a heap of flowLanes per lane, under each flowLane one of those under it, and a heap
// of the lanes that can go (class.go). Of the seed's "min-heap per flow" that is what remains, since a flow's own order is
// its arrival order, unless an order says otherwise.
//
// # Formula
//
// Discipline wfq is the seed's weighted fair queueing (after Demers, Keshav, Shenker 1989; self-clocked as in
// Golestani 1994):
//
//	virFinishTime(r) = max(virtualTime, flow.lastVirFinishTime) + cost(r)/weight(flow)
//
// and a pop moves virtualTime to max(virtualTime, the popped finish tag). The least tag goes first. Ties are frequent:
// with equal weights and costs a flow that begins to wait has the tag of whoever is next. They go by arrival, or, with
// NewcomerFirst, to a flow that has not been served since it began to wait. The seed does not say.
//
// Tags are deferred: only the head of a flow has one, computed from the flow's start, which is the maximum in the
// formula at the moment when the flow becomes backlogged or its previous request is popped. For sequences of push and
// pop with fixed weights and one lane this is the order of tags given at arrival (TestWFQEqualsSeedFormula), because
// in a backlogged flow the previous tag is never behind virtual time. Where requests are cancelled or weights change
// nothing has to be tagged anew: a cancelled request takes its increment with it. A released one that comes back takes
// its increment from its flow's start, which then lies behind virtual time by as much, and stays so until it is used.
//
// # Bound
//
// For two flows f, g that are backlogged throughout an interval, with weights w and largest costs l,
// |W_f/w_f − W_g/w_g| <= l_f/w_f + l_g/w_g, W being the cost popped: each flow's next finish tag is at most one
// increment ahead of virtual time and never behind it. Flows of equal weight and cost 1 differ by at most one. However
// ties are broken, this holds.
//
// # Cost of operations
//
// Push, Peek, Pop, Remove, displacement and each expired request are O(log n) in flows and requests, times the number
// of levels, of lanes in which the request's own flow waits (with discipline none, of which one flow has all lanes, no lane but
// the request's own is touched) and the number of tiers. Nothing walks all flows or all requests,
// and of a flow without waiting requests nothing is known but its key: its last tag is never ahead of virtual time, so
// forgetting it changes nothing. The keys of the last keptFlows of a class keep their places in the map (flowtable.go),
// and those of the last keptUnder under each flow that has waiters.
// Memory for the next flows and lanes is kept within keptFlows and keptLanes.
//
// # Invariants (invariants_test.go checks them after every step of every test and fuzz run)
//
//   - Totals are sums: queued = Σ tiers = Σ flows = Σ flowLanes; each queued request is among the deadlines
//     once, in their list or their heap.
//   - A flowLane is in its lane's heap exactly when it has requests and is not parked; a lane is in its class's heap
//     exactly when it has such a flowLane and is not blocked.
//   - Virtual time never goes back. No head's start is ahead of virtual time, and none so far behind that the order could
//     turn round (wfqrebase.go).
//   - Reserved mode: Σ flowCapacity of the tracked flows <= totalCapacity, unless a reload or requeue made it so; with
//     weighted tiers, in each tier Σ min(flowCapacity, its share) <= its share of totalCapacity, which is at least 1.
//
// The package knows nothing of endpoints, stock, HTTP or the wall clock.
package fairqueue
