// Package dispatch makes every decision over the fair queue, the stock and the placement together: it lets a request go
// at once, wait or be rejected, releases the next one, and preempts one. It is a pure state machine: events go in,
// verdicts come out, with the time of the next event that it needs. It has no goroutine, lock, context, log, metric,
// clock or random source of its own, so the same events always lead to the same verdicts: a replay of a recording from
// production, the explorer, a simulation and production itself run the same code.
//
// # Where to begin
//
// The stories in testdata/*.txt are lives of small pools: the configuration as in a user's file, events in, verdicts out,
// and why each verdict is right. Begin with uncontended.txt, flood.txt, starved.txt, preemption.txt and reload.txt.
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
// A request's real cost may be known while it is in flight (Raise, TrueUp) or at its end (Complete): the charges of its
// class and of the flows on its path are corrected, and while it is in flight its stock as well.
//
// A request has two numbers. Its cost is the charge of the queue, which its tenant pays. Its tokens are its part of the
// stock, in the engines' memory: the band, the caps and the order of victims count these (ADR 0076). Where they are
// bounded, the Placer is told the tokens of each lease at its endpoints, in the event in which that changes.
//
// A [Waiter] is a request; its [Lease] exists from the grant on. Both are in one structure of the caller's, so a request
// costs one allocation.
//
// # Events and verdicts
//
// Each event is a method; if time matters to it, it takes now. The result for the request that the event is about is read
// from that request when the method returns; results for others are in Verdicts until the next event. Next returns when
// Advance is due even if no other event happens. The machine does not assume that the client of a waiter that may preempt
// is still there: Preemptor names the waiter, and the caller answers with Preempt if the client is there, or with
// PreemptorGone. So everything that the machine knows of the outside arrives as an event.
//
// # Admission
//
//	bypass   stock < upper bound, something available to the tier, no waiter that could go in its tier or a
//	         higher one, no starved head that the budget lets go, and an endpoint takes it
//	reject   otherwise, when it is not admissible (below the highest tier, without EnqueueAll), or there is no room
//	enqueue  otherwise
//
// A class may have limits: an arrival joins it only while its waiting requests, by backend, are below them
// (fairqueue.ClassLimits). And while the endpoints of a lane are too busy reading prompts for a class, the lane is
// blocked in that class (busy.go): its arrivals wait, its waiters hold no other request up, and it earns nothing.
//
// # Failures
//
// The machine does not recover from panics: its caller does, and reports them with Failed. Before each call of the Placer
// the machine notes for which request it asks (asking), and work that a panic may interrupt is kept as pending until it
// is done (pending.go). So after Failed it continues where it was, and only a request for which the Placer panics twice
// in a row ends as OutcomeInternal.
//
// # Invariants (checkInvariants in tests; the explorer checks them in every state that it reaches)
//
//   - Every request that arrived has exactly one outcome.
//   - arrived = waiting + leases held + ended; a lease is settled exactly once.
//   - Reservations at the Placer = leases held.
//   - Between two events no request waits that could go: no head that the band, the reservations and the Placer permit is
//     queued, except for a ReleaseSpacing, or while its lane is blocked in its class.
//   - If a waiter has nothing available to it, and the end of some victim would let it go, a request is preempted.
//   - An event does no work for waiters, lanes or flows that it does not concern. Configure, and SetBackends with many
//     changes at once, look at each once.
//
// # Questions of an event
//
// A lane is a set of endpoints: all models that the same endpoints serve are one ([Placer]). While requests wait in n
// lanes that have the endpoint of a lease, its end makes one call of Placer.Place for the request that gets the place.
// For each of the n lanes that has no further room it makes one call of Place, one or two of HasRoom, and one of
// HasReady: no more than five calls in all where the lanes of the endpoint are one, however many models it serves
// (TestAdaptersOfOneModelAreOneLane). Several lanes have an endpoint in common where models are served by sets that
// overlap, and where requests have subsets (TestOverlappingLanesAreAskedEach). A reload, or a change of many endpoints,
// asks for each lane in which requests wait. The first waiter of a lane lists its endpoints; that of another model in a
// known lane does not.
//
// When the endpoints serve other models, waiters may belong to other lanes: they are moved in the event in which the
// endpoints change (regroup.go). That looks at each lane once, at each waiter of the lanes that do not go on as they
// were, and at each flow that the queue knows. Later corrections of a request in flight count in the lane that it has
// then.
//
// The package knows nothing of Envoy, protobuf, Kubernetes, or the names of endpoints.
package dispatch
