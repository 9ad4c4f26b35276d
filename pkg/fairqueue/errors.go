package fairqueue

import "errors"

// Errors of Push: the queue has rejected the request, and nothing has changed.
var (
	// ErrTooManyFlows means that the request's flow is not tracked and its flowCapacity does not fit into totalCapacity
	// beside those of the tracked flows; in shared mode, that the queue is full and no request can be displaced for the
	// arrival.
	ErrTooManyFlows = errors.New("fairqueue: too many flows: the queue's total capacity is taken")
	// ErrInsufficientFlowCapacity means that the flow already has flowCapacity requests waiting.
	ErrInsufficientFlowCapacity = errors.New("fairqueue: insufficient flow capacity: the flow's queue is full")
	// ErrInsufficientCapacityUnder means that a nested flow of the request already has as many requests waiting as its
	// capacity. It is an ErrInsufficientFlowCapacity.
	ErrInsufficientCapacityUnder error = underError{}
)

// underError is the error of a nested flow.
type underError struct{}

func (underError) Error() string {
	return ErrInsufficientFlowCapacity.Error() + ", that of one under it"
}

func (underError) Unwrap() error { return ErrInsufficientFlowCapacity }
