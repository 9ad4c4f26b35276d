package loadgen

import (
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// The backoff of the OpenAI and Anthropic clients if the server gives no time: half a second, doubled with each retry
// up to 8 s, minus a random part of up to a quarter.
const (
	backoffBase   = 500 * time.Millisecond
	backoffMax    = 8 * time.Second
	backoffJitter = 0.25
)

// Retry defines retries after a rejection, like the OpenAI and Anthropic clients: 408, 409, 429 and 5xx are sent again,
// unless x-should-retry says otherwise, after exactly retry-after-ms, else retry-after, else the clients' backoff. A
// broken connection is retried too.
type Retry struct {
	// Max is the largest number of retries of one request; 0 sends each request once. The real clients' default is 2.
	Max int
	// Seed determines the backoff's jitter.
	Seed uint64
}

// next reports whether the request is sent again after the attempts so far, and returns the wait before it.
func (p Retry) next(r *Result, index int) (wait time.Duration, again bool) {
	if r.Attempts > p.Max || !retryable(r) {
		return 0, false
	}
	if wait, ok := delay(r.RetryAfterMS, time.Millisecond); ok {
		return wait, true
	}
	if wait, ok := delay(r.RetryAfter, time.Second); ok {
		return wait, true
	}
	backoff := min(backoffBase<<min(r.Attempts-1, 8), backoffMax)
	random := rand.New(rand.NewPCG(p.Seed, uint64(index)<<8|uint64(r.Attempts)))
	return backoff - time.Duration(backoffJitter*random.Float64()*float64(backoff)), true
}

func retryable(r *Result) bool {
	if r.Err != nil {
		return r.Fault() == "broken" && r.Status == 0
	}
	switch r.ShouldRetry {
	case "true":
		return !r.OK()
	case "false":
		return false
	}
	switch r.Status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return r.Status >= 500
}

// delay parses a header that is a number of units, 0 or more; the date form of retry-after is not supported.
func delay(header string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(header, 64)
	if err != nil || !(n >= 0) || n > math.MaxInt64/float64(2*unit) {
		return 0, false
	}
	return time.Duration(n * float64(unit)), true
}
