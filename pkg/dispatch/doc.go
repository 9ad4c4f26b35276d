// Package dispatch makes every decision over the fair queue, the stock and the placement together: it bypasses,
// enqueues or rejects arrivals, grants waiting requests, and preempts requests in flight. It is a pure state machine:
// events go in; verdicts come out, with the time at which the machine next needs to run. It has no goroutine, lock,
// context, log, metric, clock or random source of its own, so the same events always lead to the same verdicts.
// Production, the replay of a recording, the explorer and simulations run the same code.
//
// # Where to begin
//
// The stories in testdata/*.txt each follow a small pool: a user's configuration, events in, verdicts out, and the
// reason for each verdict. Begin with uncontended.txt, flood.txt, starved.txt, preemption.txt and reload.txt.
//
// # A request's life
//
//	Arrive ── bypass ───────────────────────────────► lease
//	   │ └─── reject ──────────────────────────────► rejected
//	   ▼ push
//	waits ◄── run: peek, place, take the lease, pop ─► lease (granted)
//	   └───── expiry, Cancel, displacement, Drain ──► rejected
//
//	granted ── Told ─► sent ── FirstByte ─► streaming ── Complete ─► ended
//	   ▲                 │ preempted: rejected
//	   └─ preempted: waits again
//
// A request's real cost becomes known in flight (Raise, TrueUp) or at its end (Complete). Each corrects the charges of
// its class and of the flows on its path; the first two also correct its stock.
//
// A request has two sizes. Its cost is charged in the queue, to its flow. Its tokens are its part of the stock, in the
// engines' memory; the band, the caps and the order of victims use tokens (ADR 0076). Where tokens are bounded, the
// event that changes a lease's tokens also tells the Placer.
//
// A [Waiter] is a request; its [Lease] exists from the grant on. The caller keeps both in one structure, so a request
// costs one allocation.
//
// # Events and verdicts
//
// Each event is a method; it takes now if time matters. When the method returns, the event's own request holds its
// result; Verdicts has the results of other requests until the next event. Next returns the time at which Advance is
// due without other events. A waiter may preempt only while its client is connected: Preemptor names the waiter, and
// the caller answers with Preempt, or with PreemptorGone if the client has left. So all facts from outside arrive as
// events.
//
// # Admission
//
//	bypass   stock < upper bound, something available to the tier, no waiter that could go in its tier or a
//	         higher one, no starved head that the budget lets go, and an endpoint takes it
//	reject   otherwise, when it is not admissible (below the highest tier, without EnqueueAll), or there is no room
//	enqueue  otherwise
//
// A class may have limits per backend on its waiting requests (fairqueue.ClassLimits); beyond them arrivals are
// rejected. While the endpoints of a lane are too busy reading prompts for a class, the lane is blocked in that class
// (busy.go): its arrivals wait, its waiters hold up no other request, and it earns no credit.
//
// # Failures
//
// The caller recovers from panics and reports them with Failed. The machine notes the request of each Placer call
// (asking) and keeps interruptible work as pending until it is done (pending.go). So after Failed it continues where it
// stopped. Only a request whose Placer call panics twice in a row ends as OutcomeInternal.
//
// # Invariants (checkInvariants in tests; the explorer checks them in every state that it reaches)
//
//   - Every request that arrived has exactly one outcome.
//   - arrived = waiting + leases held + ended; a lease is settled exactly once.
//   - Reservations at the Placer = leases held.
//   - Between two events no head waits that the band, the reservations and the Placer permit, except during a
//     ReleaseSpacing or while its lane is blocked in its class.
//   - If a waiter has nothing available and the end of some victim would free its way, a request is preempted.
//   - An event does no work for waiters, lanes or flows that it does not concern. Configure, and SetBackends with many
//     changes at once, visit each of them once.
//
// # Placer calls per event
//
// A lane is a set of endpoints; models with the same endpoints share a lane ([Placer]). Suppose requests wait in n
// lanes with the endpoint of a lease. The end of the lease makes one call of Placer.Place for the request that takes
// the slot. For each of the n lanes without further room it makes one call of Place, one or two of HasRoom, and one of
// HasReady. With one lane that is at most five calls, however many models the endpoint serves
// (TestAdaptersOfOneModelAreOneLane). Lanes share an endpoint where models have overlapping sets of endpoints, or
// requests have subsets (TestOverlappingLanesAreAskedEach). A reload, or a change of many endpoints, makes calls for
// each lane with waiters. The first waiter of a lane lists the lane's endpoints; a waiter for another model in a known
// lane does not.
//
// When the endpoints' models change, the same event moves waiters to their new lanes (regroup.go). It visits each lane
// once, each waiter of a changed lane, and each flow of the queue. Later corrections of a request in flight count in
// its new lane.
//
// The package knows nothing of Envoy, protobuf, Kubernetes, or the names of endpoints.
package dispatch
