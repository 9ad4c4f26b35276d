// Package fairqueue is the fair request queue. It chooses the next waiting request, the request to displace when the
// queue is full, and the requests that have expired. It is a pure state machine without goroutine, lock, clock, log or
// random source. Time is an argument, queries return the time of the next call, and the same calls always give the same
// results.
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
// Flows can be nested: a tenant's users are flows under the tenant's flow. A request names its flows with Flow and
// Path. A nested flow has its own weight, capacity and cap beside its parent's (levels.go, parkingunder.go). Classes
// and flows are sharers. A level is the classes of a ring, the flows of a class, or the flows under a flow; a
// discipline (discipline.go) divides it among its sharers. A discipline sees only level and share, so wfq (wfq.go)
// works on every level of flows. Classes share by deficit round robin (drr.go).
//
// A lane is a set of backends that a request may use. Requests in different lanes must not block each other, so a class
// keeps a heap of flowLanes for each lane, and a heap of the open lanes (class.go). The seed has a heap of requests per
// flow; here a flow's requests need a heap only if their order is not that of arrival.
//
// # Formula
//
// Discipline wfq is the seed's weighted fair queueing (after Demers, Keshav, Shenker 1989; self-clocked as in
// Golestani 1994):
//
//	virFinishTime(r) = max(virtualTime, flow.lastVirFinishTime) + cost(r)/weight(flow)
//
// The least tag goes first, and a pop sets virtualTime to max(virtualTime, the popped finish tag). Ties are frequent:
// with equal weights and costs, a newly backlogged flow has the same tag as the next head. The seed does not define the
// order of ties. Here the earlier arrival goes first or, with NewcomerFirst, a flow not yet served since it became
// backlogged.
//
// Virtual time and a flow's start belong to a lane (standing.go), because lanes advance at different speeds. A lane
// without waiters has the furthest virtual time of its level. A request's charge moves its flow's start in the
// request's own lane, and in the lanes named by Request.CountAlsoIn, where the flow competes for the same backends. So
// the rest of this comment holds for the flows of one lane, independent of other lanes. When lanes' names change their
// sets of backends, requests move between lanes (regroup.go); flows that move together keep the differences between
// their starts.
//
// Tags are deferred: only the head of a flow has a tag, computed from the flow's start. The start is the formula's
// maximum, taken when the flow becomes backlogged or its previous request is popped. For pushes and pops with fixed
// weights in one lane, deferred tags give the same order as tags computed at arrival (TestWFQEqualsSeedFormula),
// because the previous tag of a backlogged flow is never behind virtual time. A cancelled request or a changed weight
// requires no other tag to be recomputed. Requeueing a released request subtracts its increment from its flow's start;
// the start may then be behind virtual time until the flow has used the refund.
//
// Costs may be estimates. When a request's actual cost becomes known, or exceeds the estimate in flight, the flow's
// start and its heads' tags move by (actual − charged)/weight, at the weight of the pop. Each start has a floor, below
// which no refund lowers it: virtual time when the flow last began to wait, or at its last pop after other flows passed
// it while it could not go. So, as with exact costs, neither idle time nor a cap earns credit. Usage above the charge
// may put a start ahead of virtual time, by up to largestLead. This debt remains when the flow leaves and returns,
// until virtual time has passed it. If such a flow is alone, virtual time follows its tags; a request taken out of turn
// (Claim) moves virtual time by its own increment only, so that the debt remains. A request that does not wait leaves
// no tag, as in the seed, and its usage leaves none either.
//
// A head waits as its estimate says; refunds come later. So a flow that sends one request at a time is served by its
// estimates. For such flows use vtc, which orders heads without their own cost.
//
// Disciplines vtc and fairshare have formulas and bounds of their own (vtc.go, fairshare.go).
//
// # Bound
//
// Let flows f and g be backlogged in one lane throughout an interval, with weights w and largest costs l. Let W be the
// cost popped from each in that lane, plus any cost from other lanes that counts there. With wfq,
//
//	|W_f/w_f − W_g/w_g| <= l_f/w_f + l_g/w_g,
//
// because each flow's next finish tag is never behind virtual time, and at most one increment ahead of it. (Each
// request counted from another lane adds at most one increment.) For flows of equal weight and cost 1 the difference is
// at most one request. The bound holds for every tie-break.
//
// The bound requires that a flow's requests go in order of arrival, or cost the same. If a cheaper request overtakes a
// dearer one of its own flow (by WSPT, priority, or a sibling nested flow), its tag may be behind virtual time. The
// flow's start then moves up to virtual time, and the flow loses the time that it waited for the dearer request. With
// vtc it does not.
//
// Corrections add an error E. Let f and g be backlogged in one lane, able to go, with fixed weights. Let l be a flow's
// largest charge divided by its weight. At each moment, add up |actual − charged|/weight over both flows' requests in
// flight; E is the largest sum until the end of the interval. Let S be a flow's start. Over the interval, S_f and S_g
// move by amounts that differ by at most l_f + l_g + 2E, as do the counters of vtc. The proof has three steps:
//
//   - After f has gone once: when f goes, its tag is at most g's, so S_f − S_g <= l_g. Until f goes again, only
//     corrections of the requests then in flight raise the difference, by at most E: a refund of a later pop of g
//     returns at most that pop's charge. No start moves up to virtual time meanwhile, because virtual time is never
//     later than the tags of flows that can go, except for tags that corrections have put behind it.
//   - Before f has gone: f began either at virtual time or at its own earlier start. Virtual time was then at most g's
//     tag, so at most l_g after S_g plus the refunds to g since. The earlier start was, at f's last pop, at most g's
//     tag or, if g came later, at most g's floor.
//   - Therefore −l_f − E <= S_f − S_g <= l_g + E at all times.
//
// The difference in service attained is at most this bound plus the requests in flight. TestBoundOfTrueUps asserts it
// over random workloads, and TestAdversaryOfEstimates with a workload built to break it.
//
// # Cost of operations
//
// Push, Peek, Pop, Remove, displacement and the expiry of one request are O(log n) in flows and requests, times the
// number of tiers, of levels, and of lanes with waiters of the request's flow. (With discipline none, one flow has all
// lanes, but only the request's own lane is touched.) With fairshare a Peek also visits up to reviewedLanes lanes of
// the flow above the threshold. No operation visits all flows or all requests, except Regroup, Reconfigure and Drain.
//
// A flow without waiting requests keeps only its start, and with it its debt. It is known while its requests are in
// flight, and afterwards while it is among the last keptFlows of its class, or the last keptUnder under an active flow
// (flowtable.go). A forgotten flow owes nothing. So memory is bounded by the flows that wait or are in flight, plus
// keptFlows and keptUnder, however many identities clients send. keptFlows and keptLanes also bound the structures kept
// for reuse.
//
// # Invariants (invariants_test.go checks them after every step of every test and fuzz run)
//
//   - Totals are sums: queued = Σ tiers = Σ flows = Σ flowLanes. Each queued request has exactly one entry among the
//     deadlines, in their list or their heap.
//   - A flowLane is in the heap of its branch if and only if it has requests and is not parked. It is parked if and
//     only if its flow is at its cap, or all flows under it are parked. A lane is in its class's heap of open lanes if
//     and only if the lane is open and has a flowLane that is not parked.
//   - Each class is in the ring of its name, and each ring in its tier. A class's count against its limits is the sum
//     over its waiting requests.
//   - Virtual time never goes back; with vtc, neither does that of a lane with waiters. No start is before its floor.
//     No start is so far from virtual time that comparing tags would overflow (wfqrebase.go).
//   - In reserved mode Σ flowCapacity of the tracked flows <= totalCapacity, except after a reload or a requeue. With
//     weighted tiers, Σ min(flowCapacity, the tier's share) <= the tier's share of totalCapacity, which is at least 1.
//
// The package knows nothing of endpoints, stock, HTTP or the wall clock.
package fairqueue
