package scrape

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// Reason is the reason why a page could not be read. It labels the failures in metrics.
type Reason string

// The reasons.
const (
	Unreachable   Reason = "unreachable"     // no connection, or it broke
	Slow          Reason = "slow"            // not complete within Config.Timeout
	BadStatus     Reason = "status"          // an HTTP status other than 200
	HTML          Reason = "html"            // an HTML page
	TooLarge      Reason = "too-large"       // more than Config.MostBytes, or too many series
	BadValue      Reason = "bad-value"       // a known metric has no valid number
	NoKnownMetric Reason = "no-known-metric" // no known engine
)

// Reasons lists all of them.
var Reasons = []Reason{Unreachable, Slow, BadStatus, HTML, TooLarge, BadValue, NoKnownMetric}

// failure is the error of a page that cannot be read.
type failure struct {
	reason Reason
	text   string
}

// Error implements error.
func (f *failure) Error() string { return f.text }

func tooLarge(most int64) error {
	return &failure{reason: TooLarge, text: fmt.Sprintf("the page has more than %d bytes", most)}
}

// reasonOf returns the reason of an error.
func reasonOf(err error) Reason {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.reason
	}
	if timeout, ok := errors.AsType[net.Error](err); errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout() {
		return Slow
	}
	return Unreachable
}
