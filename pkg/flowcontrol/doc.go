// Package flowcontrol is the RequestQueueController: the one lock around the decisions (package dispatch), the goroutines
// that wait for them, the poppers, the timer and the metrics.
//
// # Waiting and waking
//
// A request's own goroutine (its stream's) calls TryEnqueue and waits inside it. dispatch.Machine decides everything
// under one mutex, so that a grant, a cancellation, an expiry, a preemption and a settlement of the same request have
// one order: a caller that gives up asks for the verdict under the lock and returns a grant that came first. Every
// event has the same form (event.go): acquire the lock, call the machine, answer its question about a preemptor's
// client, read its verdicts, set the timer, release the lock, and wake the goroutines that have a verdict.
//
// The machine decides within the event that changed the state (an arrival, a completion, a cancellation), in that
// event's goroutine. The poppers are parked goroutines for work without a request: the timer, and logging failures.
// Nothing polls, and there is no timer while no request waits.
//
// # Panics
//
// The package recovers from a panic in a decision and reports it to the machine. The machine ends the request of the
// Placer call that panicked, if any, and continues.
//
// # Invariants
//
//   - Every request given to TryEnqueue, Refuse or PassOn has exactly one outcome and is counted once.
//   - The timer is set exactly while a request waits, and never later than the machine's next due time.
//   - Nothing slow happens under the lock: no I/O, no logging, no look-up of metric labels.
//
// The package has no rule of a decision, and knows nothing of Envoy, protobuf, Kubernetes, or endpoint names.
package flowcontrol
