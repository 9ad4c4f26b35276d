package scheduling

import "errors"

// Errors of Scheduler.Prepare. Each means that no endpoint known now can ever serve the request. That none is ready is
// not an error: the request waits.
var (
	// ErrSubsetEmpty means that the request has a subset that names nothing.
	ErrSubsetEmpty = errors.New("the endpoint subset is empty")
	// ErrSubsetForeign means that none of the subset's entries is a member of the pool.
	ErrSubsetForeign = errors.New("the endpoint subset names no member of the pool")
	// ErrModelElsewhere means that members of the subset exist, none of which serves the model, though others may.
	ErrModelElsewhere = errors.New("no endpoint of the subset serves the model")
	// ErrModelDeparted means that all endpoints of the pool list models, and none lists this one now, but one has before
	// (Snapshot.HasListed).
	ErrModelDeparted = errors.New("no endpoint serves the model any more")
	// ErrModelUnknown means that all endpoints of the pool list models, and none, ready or not, lists or has listed this one.
	ErrModelUnknown = errors.New("no endpoint serves the model")
	// ErrNeedsUnmet means that members serve the model, and none of them, ready or not, meets the request's other
	// needs. It comes as an UnmetError.
	ErrNeedsUnmet = errors.New("no endpoint meets the needs of the request")
)
