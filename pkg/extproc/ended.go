package extproc

import (
	"time"

	"github.com/weir-epp/weir/pkg/extproc/usage"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// Tail reads the requests that have ended.
type Tail interface {
	// Wanted reports whether anybody reads. It is asked when a request begins and when it has ended.
	Wanted() bool
	// Ended tells of a request that has ended while anybody reads. It must not block, and keeps nothing of e.
	Ended(e *Ended)
}

// Ended is a request that has ended, as its line in the log has it.
type Ended struct {
	At time.Time
	// ID is its x-request-id; empty if nothing asked for it at its beginning.
	ID, Flow, Tier, Model, TargetModel string
	Wait                               time.Duration
	Bypass                             bool
	// Endpoint is the one picked, and Served the one that served, if it is another.
	Endpoint, Served string
	Outcome          flowcontrol.Outcome
	// Status is the status that the client got, 0 if that was not seen. After is the time from its arrival to the end
	// of its answer.
	Status int
	After  time.Duration
	// Err is why it was rejected; nil if it was not.
	Err        error
	RetryAfter time.Duration
	// Usage is the usage that its answer has reported; Known is false if it reported none.
	Usage usage.Tokens
	Known bool
}
