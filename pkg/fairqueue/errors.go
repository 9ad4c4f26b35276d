package fairqueue

import "errors"

// Errors of Push: the queue does not take the request, and nothing has changed.
var (
	// ErrTooManyFlows: the request's flow is not tracked and its flowCapacity does not fit into totalCapacity beside
	// those of the tracked flows; in shared mode, the queue is full and nobody can be displaced for the arrival.
	ErrTooManyFlows = errors.New("fairqueue: too many flows: the queue's total capacity is taken")
	// ErrInsufficientFlowCapacity: the flow has flowCapacity requests waiting already.
	ErrInsufficientFlowCapacity = errors.New("fairqueue: insufficient flow capacity: the flow's queue is full")
)
