package loadgen

import (
	"errors"
	"time"

	"github.com/weir-epp/weir/pkg/usage"
)

// The faults of a request without a complete answer, besides network errors.
var (
	// ErrUnsent means that an open loop's arrival found MaxInFlight requests in flight.
	ErrUnsent = errors.New("loadgen: no room in flight")
	// ErrTimeout means that a request took longer than its workload's Timeout.
	ErrTimeout = errors.New("loadgen: request timed out")
	// ErrCutOff means that a request was still in flight when the run ended.
	ErrCutOff = errors.New("loadgen: cut off by the end of the run")
	// ErrNotStream means that a 2xx answer should have been a stream of server-sent events, but was not, or had no data
	// line.
	ErrNotStream = errors.New("loadgen: answer is not an event stream")
)

// Result is the result of one request. Times are from Start: when an open loop's request was due, or a closed loop's
// was sent. With retries they include all attempts and the waits between them, as the user experiences them; the other
// fields are of the last attempt.
type Result struct {
	// Tenant is the workload's.
	Tenant string
	// Start is the time since the start of the run.
	Start time.Duration
	// Attempts is the number of times it was sent: 0 if never, 1 without a retry.
	Attempts int
	// Status is the HTTP status, 0 without an answer.
	Status int
	// Err is the reason for the lack of a complete answer; nil for a complete one with any status.
	Err error
	// Headers is the time to the response headers; 0 without an answer.
	Headers time.Duration
	// FirstData is the time to the first data line of a stream of server-sent events, or to the first byte of another
	// body: the TTFT where the server shows it. 0 for an empty body or no answer.
	FirstData time.Duration
	// Total is the time to the end of the answer, or to the fault.
	Total time.Duration
	// Bytes is the size of the body.
	Bytes int64
	// Events is the number of data lines of a stream of server-sent events.
	Events int
	// Done reports whether the stream's last data line was [DONE].
	Done bool
	// Usage is the token usage reported by the answer, and UsageKnown whether it reported any. Only with
	// Template.Usage.
	Usage      usage.Tokens
	UsageKnown bool
	// RetryAfterMS, RetryAfter, ShouldRetry and Reason are the response headers retry-after-ms, retry-after,
	// x-should-retry and x-weir-reason, empty where absent.
	RetryAfterMS, RetryAfter, ShouldRetry, Reason string
}

// OK reports whether there was a complete 2xx answer.
func (r *Result) OK() bool { return r.Err == nil && r.Status >= 200 && r.Status < 300 }

// Rejected reports whether there was a complete answer other than 2xx.
func (r *Result) Rejected() bool { return r.Err == nil && !r.OK() }

// TTFT returns the time to the first data, or the total for an empty body.
func (r *Result) TTFT() time.Duration {
	if r.FirstData > 0 {
		return r.FirstData
	}
	return r.Total
}

// Fault returns a word for Err: "unsent", "timeout", "cut off", "not a stream", "broken" for any other, "" for nil.
func (r *Result) Fault() string {
	switch {
	case r.Err == nil:
		return ""
	case errors.Is(r.Err, ErrUnsent):
		return "unsent"
	case errors.Is(r.Err, ErrTimeout):
		return "timeout"
	case errors.Is(r.Err, ErrCutOff):
		return "cut off"
	case errors.Is(r.Err, ErrNotStream):
		return "not a stream"
	default:
		return "broken"
	}
}
