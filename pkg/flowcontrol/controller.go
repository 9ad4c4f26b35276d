package flowcontrol

import (
	"context"
	"time"
)

// Rejection is the error of TryEnqueue and Refuse: the sentinel with what the client should be told.
type Rejection struct {
	// Err is the sentinel; errors.Is sees through.
	Err error
	// Outcome is OutcomeOf(Err).
	Outcome Outcome
	// RetryAfter is when the client should come back, already spread (each rejection has a moment of its own);
	// 0: say nothing.
	RetryAfter time.Duration
}

// Error implements error.
func (r *Rejection) Error() string { return r.Err.Error() }

// Unwrap gives the sentinel.
func (r *Rejection) Unwrap() error { return r.Err }

// RequestQueueController decides bypass, queue or reject, and releases the waiters.
type RequestQueueController struct{}

// TryEnqueue admits r: it returns at once with a lease (bypass) or a Rejection, or blocks the caller until r is
// granted, rejected, displaced, expired or ctx is over. A returned error is always a *Rejection.
func (c *RequestQueueController) TryEnqueue(ctx context.Context, r *Request) (*Lease, error) {
	return nil, nil
}

// Refuse counts a request that ends before TryEnqueue (malformed, too large, no endpoint) and returns its Rejection.
// err wraps one of the sentinels.
func (c *RequestQueueController) Refuse(model, targetModel string, err error) *Rejection { return nil }

// PassOn counts and places a request that is passed on without queueing (header-only, GETs, unknown paths). Its
// lease counts as stock like any other.
func (c *RequestQueueController) PassOn(r *Request) (*Lease, error) { return nil, nil }
