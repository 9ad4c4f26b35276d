package scheduling

import "errors"

// What Scheduler.Prepare finds wrong with a request. All of them mean that no endpoint known now can ever serve it;
// that none is ready is not an error: the request waits.
var (
	// ErrSubsetEmpty: the request carries a subset, and it names nothing.
	ErrSubsetEmpty = errors.New("the endpoint subset is empty")
	// ErrSubsetForeign: none of the subset's entries is a member of the pool.
	ErrSubsetForeign = errors.New("the endpoint subset names no member of the pool")
	// ErrModelUnknown: none of the endpoints that the request may use serves its model.
	ErrModelUnknown = errors.New("no endpoint serves the model")
)
