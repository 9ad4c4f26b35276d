package dispatch

import (
	"errors"
	"time"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Outcome is how a request ended. Every request ends in exactly one. Its string is the reason in x-weir-reason, in
// requests_total and in the log; it never changes.
type Outcome uint8

// The outcomes. Each one's status on the wire is configurable, in a table of extproc.
const (
	OutcomeDispatched       Outcome = iota // sent to a model server; the status is the model server's
	OutcomeFlowFull                        // the flow is at its capacity in the queue
	OutcomeQueueFull                       // the queue cannot take another flow, or is full
	OutcomeShed                            // not admissible under load
	OutcomeDisplaced                       // removed from the queue in favour of a more entitled request
	OutcomeTTLExpired                      // waited longer than its TTL
	OutcomePreempted                       // cancelled in flight for a higher tier, before its first byte
	OutcomeClientCancelled                 // the client disconnected before dispatch
	OutcomeDeadlineExceeded                // the client's own deadline passed before dispatch
	OutcomeNoEndpoint                      // no model server can ever take it
	OutcomeDraining                        // this process is shutting down
	OutcomeBadRequest                      // malformed
	OutcomeTooLarge                        // the body or the headers are larger than the limit
	OutcomeBodyTimeout                     // the body was not complete in time
	OutcomeNoMemory                        // no memory for another body
	OutcomeInternal                        // a failure of Weir
	OutcomeUnknownModel                    // all model servers list their models, and none lists this one
	OutcomeQuotaExceeded                   // its tenant's quota has no room for it
	OutcomeUnsupported                     // model servers serve its model, but none meets its other needs

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
	OutcomeUnknownModel:     "unknown-model",
	OutcomeQuotaExceeded:    "quota-exceeded",
	OutcomeUnsupported:      "unsupported",
}

// String returns the reason: lower-case words joined by hyphens.
func (o Outcome) String() string {
	if int(o) < len(reasons) {
		return reasons[o]
	}
	return "unknown"
}

// Refusal describes a request that ended before its arrival.
type Refusal struct {
	// ID is its name in logs. Flow is its flow's key, and Model its model, if known.
	ID, Flow, Model string
	Outcome         Outcome
	RetryAfter      time.Duration // 0: none is sent
}

// outcomeOf returns the outcome of an error of the queue.
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
