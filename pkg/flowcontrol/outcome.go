package flowcontrol

import (
	"context"
	"errors"
	"time"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// Outcome is how a request ended; see dispatch.Outcome.
type Outcome = dispatch.Outcome

// The outcomes.
const (
	OutcomeDispatched       = dispatch.OutcomeDispatched
	OutcomeFlowFull         = dispatch.OutcomeFlowFull
	OutcomeQueueFull        = dispatch.OutcomeQueueFull
	OutcomeShed             = dispatch.OutcomeShed
	OutcomeDisplaced        = dispatch.OutcomeDisplaced
	OutcomeTTLExpired       = dispatch.OutcomeTTLExpired
	OutcomePreempted        = dispatch.OutcomePreempted
	OutcomeClientCancelled  = dispatch.OutcomeClientCancelled
	OutcomeDeadlineExceeded = dispatch.OutcomeDeadlineExceeded
	OutcomeNoEndpoint       = dispatch.OutcomeNoEndpoint
	OutcomeDraining         = dispatch.OutcomeDraining
	OutcomeBadRequest       = dispatch.OutcomeBadRequest
	OutcomeTooLarge         = dispatch.OutcomeTooLarge
	OutcomeBodyTimeout      = dispatch.OutcomeBodyTimeout
	OutcomeNoMemory         = dispatch.OutcomeNoMemory
	OutcomeInternal         = dispatch.OutcomeInternal
	OutcomeUnknownModel     = dispatch.OutcomeUnknownModel
	OutcomeQuotaExceeded    = dispatch.OutcomeQuotaExceeded
	OutcomeUnsupported      = dispatch.OutcomeUnsupported

	// NumOutcomes is the number of outcomes, for tables indexed by Outcome.
	NumOutcomes = dispatch.NumOutcomes
)

// NoRoom are the outcomes of requests rejected for want of room, which the chart's alert WeirRejecting counts.
var NoRoom = []Outcome{OutcomeQueueFull, OutcomeFlowFull, OutcomeShed, OutcomeDisplaced, OutcomeTTLExpired, OutcomeNoEndpoint}

// Sentinels of the outcomes. The sentinels of the queue's limits are fairqueue's; context.Canceled means that the
// client disconnected, context.DeadlineExceeded that its deadline has passed.
var (
	ErrShed       = errors.New("flowcontrol: not admissible under load")
	ErrDisplaced  = errors.New("flowcontrol: displaced from the queue by a more entitled request")
	ErrExpiredTTL = errors.New("flowcontrol: waited longer than its TTL")
	ErrPreempted  = errors.New("flowcontrol: preempted in favour of a higher tier")
	ErrNoEndpoint = errors.New("flowcontrol: no endpoint can take the request")
	ErrDraining   = errors.New("flowcontrol: shutting down")
	// ErrQuotaExceeded means that the tenant's quota has no room for the request.
	ErrQuotaExceeded = errors.New("flowcontrol: the tenant's quota is used up")
	// extproc decides the following before it asks the controller; they are counted here.
	ErrBadRequest = errors.New("flowcontrol: malformed request")
	ErrTooLarge   = errors.New("flowcontrol: request too large")
	// ErrBodyTimeout means that the request's body was not complete in time.
	ErrBodyTimeout = errors.New("flowcontrol: the body was not complete in time")
	// ErrNoMemory means that the bodies held use up their memory.
	ErrNoMemory = errors.New("flowcontrol: no memory for another body")
	// ErrUnknownModel means that all known endpoints list models, and none, ready or not, lists this one.
	ErrUnknownModel = errors.New("flowcontrol: no endpoint serves the model")
	// ErrUnsupported means that endpoints serve the model, but none, ready or not, meets the request's other needs.
	ErrUnsupported = errors.New("flowcontrol: no endpoint meets the needs of the request")
	// errInternal is the sentinel of a failure of unknown cause.
	errInternal = errors.New("flowcontrol: internal")
)

// sentinels has the sentinel of each outcome; nil if the request was served.
var sentinels = [NumOutcomes]error{
	OutcomeDispatched:       nil,
	OutcomeFlowFull:         fairqueue.ErrInsufficientFlowCapacity,
	OutcomeQueueFull:        fairqueue.ErrTooManyFlows,
	OutcomeShed:             ErrShed,
	OutcomeDisplaced:        ErrDisplaced,
	OutcomeTTLExpired:       ErrExpiredTTL,
	OutcomePreempted:        ErrPreempted,
	OutcomeClientCancelled:  context.Canceled,
	OutcomeDeadlineExceeded: context.DeadlineExceeded,
	OutcomeNoEndpoint:       ErrNoEndpoint,
	OutcomeDraining:         ErrDraining,
	OutcomeBadRequest:       ErrBadRequest,
	OutcomeTooLarge:         ErrTooLarge,
	OutcomeBodyTimeout:      ErrBodyTimeout,
	OutcomeNoMemory:         ErrNoMemory,
	OutcomeInternal:         errInternal,
	OutcomeUnknownModel:     ErrUnknownModel,
	OutcomeQuotaExceeded:    ErrQuotaExceeded,
	OutcomeUnsupported:      ErrUnsupported,
}

// OutcomeOf maps an error of TryEnqueue, or nil, to its outcome; an unknown error is OutcomeInternal.
func OutcomeOf(err error) Outcome {
	for o, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			return Outcome(o)
		}
	}
	return OutcomeInternal
}

// Rejection is the error of TryEnqueue and Refuse: the sentinel, and the answer to the client.
type Rejection struct {
	// Err is the sentinel; errors.Is finds it, and errors.As a *fairqueue.LimitError of a class.
	Err error
	// Outcome is OutcomeOf(Err).
	Outcome Outcome
	// RetryAfter is the time until the client should retry, already spread over rejections; 0 means that none is sent.
	RetryAfter time.Duration
	// Quota is the rest of the tenant's quota; nil if no quota has counted the request.
	Quota *QuotaStanding
	// Limit is the limit that rejected the request; nil: none.
	Limit *Limit
	// Facts are the facts of the decision; nil without Request.Explain, or if the request did not reach the controller.
	Facts *Facts
}

// Limit is the limit by which a request was rejected; see dispatch.Limit.
type Limit = dispatch.Limit

// LimitedError is the error of a request that meets a limit before it is offered.
type LimitedError struct {
	// Name and Value are those of the limit, as in Limit.
	Name  string
	Value int64
	Err   error // wraps a sentinel
}

// Error implements error.
func (e *LimitedError) Error() string { return e.Err.Error() }

// Unwrap returns the error without the limit.
func (e *LimitedError) Unwrap() error { return e.Err }

// QuotaStanding is the rest of a tenant's quota; see quota.Standing.
type QuotaStanding = dispatch.QuotaStanding

// Error implements error.
func (r *Rejection) Error() string { return r.Err.Error() }

// Unwrap returns the sentinel.
func (r *Rejection) Unwrap() error { return r.Err }

// rejectionOf returns the Rejection of a request that has ended.
func rejectionOf(w *dispatch.Waiter) *Rejection {
	r := &Rejection{Err: sentinels[w.Outcome()], Outcome: w.Outcome(), RetryAfter: w.RetryAfter()}
	if err := w.Failure(); err != nil {
		r.Err = err
	}
	if s, ok := w.Quota(); ok {
		r.Quota = &s
	}
	r.Facts, r.Limit = w.Facts(), w.Limit()
	return r
}
