package dispatch

import (
	"errors"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Outcome is how a request ended. Every request ends in exactly one. Its string is the reason that clients see in
// x-weir-reason, the label of requests_total and the word in the log; it never changes.
type Outcome uint8

// The outcomes. See DESIGN: the status that each one has on the wire is extproc's table, and configurable.
const (
	OutcomeDispatched       Outcome = iota // a model server got it; the status is the model server's
	OutcomeFlowFull                        // the flow is over its share of the queue
	OutcomeQueueFull                       // the queue cannot take another flow, or is full
	OutcomeShed                            // not admissible under load
	OutcomeDisplaced                       // pushed out of the queue by a more entitled request
	OutcomeTTLExpired                      // waited longer than its TTL
	OutcomePreempted                       // in flight, no byte sent yet, cancelled for a higher tier
	OutcomeClientCancelled                 // the client went away before dispatch
	OutcomeDeadlineExceeded                // the client's own deadline passed before dispatch
	OutcomeNoEndpoint                      // no model server can ever take it
	OutcomeDraining                        // this process is shutting down
	OutcomeBadRequest                      // malformed
	OutcomeTooLarge                        // the body or the headers are larger than the limit
	OutcomeBodyTimeout                     // the body was not whole in time
	OutcomeNoMemory                        // no memory for another body
	OutcomeInternal                        // our own failure

	// NumOutcomes is the number of outcomes, for tables indexed by Outcome.
	NumOutcomes = iota
)

var reasons = [NumOutcomes]string{
	OutcomeDispatched:       "dispatched",
	OutcomeFlowFull:         "flow-full",
	OutcomeQueueFull:        "queue-full",
	OutcomeShed:             "shed",
	OutcomeDisplaced:        "displaced",
	OutcomeTTLExpired:       "ttl-expired",
	OutcomePreempted:        "preempted",
	OutcomeClientCancelled:  "client-cancelled",
	OutcomeDeadlineExceeded: "deadline-exceeded",
	OutcomeNoEndpoint:       "no-endpoint",
	OutcomeDraining:         "draining",
	OutcomeBadRequest:       "bad-request",
	OutcomeTooLarge:         "too-large",
	OutcomeBodyTimeout:      "body-timeout",
	OutcomeNoMemory:         "no-memory",
	OutcomeInternal:         "internal",
}

// String is the reason: lower case words joined by hyphens.
func (o Outcome) String() string {
	if int(o) < len(reasons) {
		return reasons[o]
	}
	return "unknown"
}

// outcomeOf is the outcome of an error of the queue.
func outcomeOf(err error) Outcome {
	switch {
	case errors.Is(err, fairqueue.ErrInsufficientFlowCapacity):
		return OutcomeFlowFull
	case errors.Is(err, fairqueue.ErrTooManyFlows):
		return OutcomeQueueFull
	default:
		return OutcomeInternal
	}
}
