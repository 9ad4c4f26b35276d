package extproc

import (
	"time"

	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/usage"
)

// Tail takes ended requests for readers of the tail.
type Tail interface {
	// Wanted reports whether there is a reader. It is called at the beginning and at the end of a request.
	Wanted() bool
	// Ended passes an ended request, if there is a reader. It must not block or keep anything of e.
	Ended(e *Ended)
}

// Ended is an ended request with the fields of its line in the log.
type Ended struct {
	At time.Time
	// ID is its x-request-id; empty if it was not needed at its beginning.
	ID, Flow, Tier, Model, TargetModel string
	Wait                               time.Duration
	Bypass                             bool
	// Endpoint is the picked endpoint, and Served the serving one if it differs.
	Endpoint, Served string
	Outcome          flowcontrol.Outcome
	// Status is the client's status, 0 if it was not seen. After is the time from the arrival to the end of the answer.
	Status int
	After  time.Duration
	// Err is the reason for its rejection; nil if it was not rejected.
	Err        error
	RetryAfter time.Duration
	// Usage is the usage reported in its answer; Known is false if there was none.
	Usage usage.Tokens
	Known bool
}
