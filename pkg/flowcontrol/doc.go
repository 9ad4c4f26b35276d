// Package flowcontrol is the RequestQueueController: the one lock around the decisions (package dispatch), the goroutines
// that wait for them, the poppers, the timer, the metrics.
//
// # Who waits, and who wakes
//
// A request's own goroutine (its stream's) calls TryEnqueue and waits inside it. Everything is decided by
// dispatch.Machine under one mutex, so that a grant, a cancellation, an expiry, a preemption and a settlement of the same
// request have one order: a caller that gives up asks for the verdict under the lock, and if the grant won, it returns
// the grant. Every event has the same form (event.go): take the lock, tell the machine, and at the end answer its question
// about a preemptor's client, read its verdicts, set the timer, give the lock back and wake whoever has a verdict.
//
// The machine decides within the event that changed the state, in whatever goroutine that is: an arrival's, a
// completion's, a cancellation's. The poppers are parked goroutines for what is nobody's: the timer, and the log of
// failures. Nothing polls. There is no timer while nobody waits.
//
// # Panics
//
// A panic in a decision is recovered here and told to the machine, which ends the one request that it was asking the
// Placer for, if there was one, and goes on.
//
// # Invariants
//
//   - Every request that entered TryEnqueue, Refuse or PassOn has exactly one outcome and is counted once.
//   - The timer stands exactly while somebody waits, and never behind what is due next.
//   - Nothing slow happens under the lock: no I/O, no logging, no look-up of metric labels.
//
// No rule of a decision is here, and the package knows nothing of Envoy, protobuf, Kubernetes, or endpoint names.
package flowcontrol
