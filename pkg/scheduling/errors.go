package scheduling

import "errors"

// Errors of Scheduler.Prepare. Each means that no endpoint known now can ever serve the request. That none is ready is
// not an error: the request waits.
var (
	// ErrSubsetEmpty means that the request has a subset that names nothing.
	ErrSubsetEmpty = errors.New("the endpoint subset is empty")
	// ErrSubsetForeign means that none of the subset's entries is a member of the pool.
	ErrSubsetForeign = errors.New("the endpoint subset names no member of the pool")
	// ErrModelUnknown means that none of the endpoints that the request may use serves its model.
	ErrModelUnknown = errors.New("no endpoint serves the model")
)
