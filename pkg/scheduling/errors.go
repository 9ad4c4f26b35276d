package scheduling

import "errors"

// Errors of Scheduler.Prepare. Each means that no endpoint known now can ever serve the request. It is not an error if
// none is ready: the request waits.
var (
	// ErrSubsetEmpty means that the request's subset names no endpoint.
	ErrSubsetEmpty = errors.New("the endpoint subset is empty")
	// ErrSubsetForeign means that none of the subset's entries is a member of the pool.
	ErrSubsetForeign = errors.New("the endpoint subset names no member of the pool")
	// ErrModelElsewhere means that the subset has members, but none of them serves the model; other endpoints may.
	ErrModelElsewhere = errors.New("no endpoint of the subset serves the model")
	// ErrModelDeparted means that all endpoints of the pool list models, and an endpoint has listed this one before,
	// but none does now (Snapshot.HasListed).
	ErrModelDeparted = errors.New("no endpoint serves the model any more")
	// ErrModelUnknown means that all endpoints of the pool list models, and none, ready or not, lists or has listed this one.
	ErrModelUnknown = errors.New("no endpoint serves the model")
	// ErrNeedsUnmet means that members serve the model, but none of them, ready or not, meets the request's other
	// needs. It is wrapped in an UnmetError.
	ErrNeedsUnmet = errors.New("no endpoint meets the needs of the request")
)
