package simulate

import "time"

// Request is one arrival of a workload.
type Request struct {
	// At is the time of arrival since the start. A source returns requests in order of arrival.
	At time.Duration
	// Flow is the key of the flow. Tier is the name of the tier; empty: the configuration's default.
	Flow, Tier string
	// Class is the name of its policy class; empty: the first.
	Class string
	// Tenant is the identity for the configuration's policies and quotas; empty: the flow's. Role is the tenant's role,
	// as found by flows.role. User is its user, if tenants have users.
	Tenant, Role, User string
	// Prompt and Output are the tokens of the prompt and of the answer, at least 1 each. Only the engine knows Output.
	Prompt, Output int
	// MaxOutput is the request's limit of its answer, in tokens; 0: none.
	MaxOutput int
	// Blocks are the hashes of the prompt's blocks, in order, as in an engine's job.
	Blocks []uint64

	loop *sender // sends another one when this one has ended; nil: none
}

// Source is a source of requests.
type Source interface {
	// Next returns the next request, or io.EOF after the last one.
	Next() (Request, error)
	// Fraction returns the rough part of the requests already returned, 0 to 1.
	Fraction() float64
}
