package simulate

import "time"

// Request is one arrival of a workload.
type Request struct {
	// At is the time of the arrival since the start. A source returns requests in the order of their arrival.
	At time.Duration
	// Flow is the key of the flow. Tier is the name of the tier; empty: the configuration's default.
	Flow, Tier string
	// Class is the name of its policy class; empty: the first.
	Class string
	// Tenant is the identity that the configuration's policies and quotas know; empty: that of the flow. Role is the tenant's
	// role, as the sources of roles would find it. User is its user, where flows have users under them.
	Tenant, Role, User string
	// Prompt and Output are the tokens of the prompt and of the answer, at least 1 each. Output is known to the engine
	// alone.
	Prompt, Output int
	// MaxOutput is the limit of the answer that the request states, in tokens; 0: none.
	MaxOutput int
	// Blocks are the hashes of the blocks of the prompt, in order, as those of an engine's job.
	Blocks []uint64

	loop *sender // that sends another one when this one has ended; nil: none
}

// Source is where requests come from.
type Source interface {
	// Next returns the next request, or io.EOF after the last one.
	Next() (Request, error)
	// Fraction returns the part of the requests that was returned already, roughly, from 0 to 1.
	Fraction() float64
}
