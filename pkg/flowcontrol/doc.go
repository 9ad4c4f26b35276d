// Package flowcontrol is the RequestQueueController: the one lock around the decisions (package dispatch), the goroutines
// that wait for them, the poppers, the timer and the metrics.
//
// # Waiting and waking
//
// A request's own goroutine (its stream's) calls TryEnqueue and waits inside it. dispatch.Machine decides everything under
// one mutex, so that a grant, a cancellation, an expiry, a preemption and a settlement of the same request have one
// order: a caller that gives up asks for the verdict under the lock, and if there was a grant first, it returns the
// grant. Every event has the same form (event.go): acquire the lock, call the machine, and at the end answer its question
// about a preemptor's client, read its verdicts, set the timer, release the lock and wake the goroutines that have a
// verdict.
//
// The machine decides within the event that changed the state, in the goroutine of that event: an arrival's, a
// completion's, a cancellation's. The poppers are parked goroutines for work that belongs to no request: the timer, and
// logging failures. Nothing polls, and there is no timer while no request waits.
//
// # Panics
//
// A panic in a decision is recovered here and reported to the machine, which ends the one request that it was asking the
// Placer for, if there was one, and continues.
//
// # Invariants
//
//   - Every request that entered TryEnqueue, Refuse or PassOn has exactly one outcome and is counted once.
//   - The timer is set exactly while a request waits, and never later than the next thing that is due.
//   - Nothing slow happens under the lock: no I/O, no logging, no look-up of metric labels.
//
// No rule of a decision is here, and the package knows nothing of Envoy, protobuf, Kubernetes, or endpoint names.
package flowcontrol
