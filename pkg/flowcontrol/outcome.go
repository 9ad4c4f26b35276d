package flowcontrol

import (
	"context"
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

// Sentinels of the outcomes that the controller decides; the queue's own are fairqueue's, a client's going is
// context.Canceled, its deadline context.DeadlineExceeded.
var (
	ErrShed       = errors.New("flowcontrol: not admissible under load")
	ErrDisplaced  = errors.New("flowcontrol: displaced from the queue by a more entitled request")
	ErrExpiredTTL = errors.New("flowcontrol: waited longer than its TTL")
	ErrPreempted  = errors.New("flowcontrol: preempted in favour of a higher tier")
	ErrNoEndpoint = errors.New("flowcontrol: no endpoint can take the request")
	ErrDraining   = errors.New("flowcontrol: shutting down")
	// What follows is decided before the controller is asked (extproc), and counted here.
	ErrBadRequest = errors.New("flowcontrol: malformed request")
	ErrTooLarge   = errors.New("flowcontrol: request too large")
	// ErrBodyTimeout: the request's body did not become whole in time.
	ErrBodyTimeout = errors.New("flowcontrol: the body was not whole in time")
	// ErrNoMemory: the bodies held use up their memory.
	ErrNoMemory = errors.New("flowcontrol: no memory for another body")
)

// errDeadline is the client's own deadline.
var errDeadline = context.DeadlineExceeded

// OutcomeOf maps an error of TryEnqueue, or nil, to its outcome; an error that it does not know is OutcomeInternal.
func OutcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return OutcomeDispatched
	case errors.Is(err, fairqueue.ErrInsufficientFlowCapacity):
		return OutcomeFlowFull
	case errors.Is(err, fairqueue.ErrTooManyFlows):
		return OutcomeQueueFull
	case errors.Is(err, ErrShed):
		return OutcomeShed
	case errors.Is(err, ErrDisplaced):
		return OutcomeDisplaced
	case errors.Is(err, ErrExpiredTTL):
		return OutcomeTTLExpired
	case errors.Is(err, ErrPreempted):
		return OutcomePreempted
	case errors.Is(err, ErrNoEndpoint):
		return OutcomeNoEndpoint
	case errors.Is(err, ErrDraining):
		return OutcomeDraining
	case errors.Is(err, ErrBadRequest):
		return OutcomeBadRequest
	case errors.Is(err, ErrTooLarge):
		return OutcomeTooLarge
	case errors.Is(err, ErrBodyTimeout):
		return OutcomeBodyTimeout
	case errors.Is(err, ErrNoMemory):
		return OutcomeNoMemory
	case errors.Is(err, context.DeadlineExceeded):
		return OutcomeDeadlineExceeded
	case errors.Is(err, context.Canceled):
		return OutcomeClientCancelled
	default:
		return OutcomeInternal
	}
}
