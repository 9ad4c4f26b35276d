package loadgen

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// MaxRequests is the largest number of requests of one workload; it bounds a run's memory.
const MaxRequests = 1 << 22

// Template describes a workload's requests, which are POSTs.
type Template struct {
	// Path is the path with its query, beginning with a slash.
	Path string
	// Header is sent with every request and must not change during a run.
	Header http.Header
	// Headers returns the headers of request i besides Header. It may be nil, may return nil, and is called like Body.
	Headers func(i int) http.Header
	// Body returns the body of request i (0, 1, 2, …, in the order of sending); nil means none. It is called by many
	// goroutines at once, and must not change a returned body.
	Body func(i int) []byte
	// Usage reads the usage reported by answers.
	Usage bool
	// Stream means that the answer should be a stream of server-sent events: the Accept header asks for it, and a 2xx
	// answer that is not a stream, or has no data line, is a fault.
	Stream bool
}

// FixedBody returns a [Template] body that is the same for every request.
func FixedBody(body string) func(i int) []byte {
	fixed := []byte(body)
	return func(int) []byte { return fixed }
}

// Workload is the load of one tenant, bounded in requests and in time.
type Workload struct {
	// Tenant labels the results. The header that names the tenant to the server is the template's.
	Tenant string
	// Arrivals is a ClosedLoop, an OpenLoop or a Schedule.
	Arrivals Arrivals
	// Request is the request to send.
	Request Template
	// Requests is the largest number of requests to send, 1 to MaxRequests.
	Requests int
	// Begin is the time from the start of the run to that of the workload, 0 or more.
	Begin time.Duration
	// Duration is the time after Begin in which requests may be sent, above 0.
	Duration time.Duration
	// Timeout bounds one attempt, from its sending to the end of its answer; 0 means the end of the run alone.
	Timeout time.Duration
	// Retry defines the attempts after a rejection.
	Retry Retry
}

// Validate reports every field that is out of its range.
func (w *Workload) Validate() error {
	var errs []error
	fail := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("loadgen: workload %q: %s %s", w.Tenant, field, fmt.Sprintf(format, args...)))
	}
	if w.Tenant == "" {
		fail("tenant", "is empty")
	}
	if w.Requests <= 0 || w.Requests > MaxRequests {
		fail("requests", "must be 1 to %d, not %d: every workload is bounded in count", MaxRequests, w.Requests)
	}
	if w.Duration <= 0 {
		fail("duration", "must be above 0, not %v: every workload is bounded in time", w.Duration)
	}
	if w.Begin < 0 {
		fail("begin", "must not be negative, not %v", w.Begin)
	}
	if w.Timeout < 0 {
		fail("timeout", "must not be negative, not %v", w.Timeout)
	}
	if !strings.HasPrefix(w.Request.Path, "/") {
		fail("request.path", "must begin with a slash, not %q", w.Request.Path)
	}
	if w.Retry.Max < 0 {
		fail("retry.max", "must not be negative, not %d", w.Retry.Max)
	}
	if w.Arrivals == nil {
		fail("arrivals", "is missing")
	} else if err := w.Arrivals.validate(); err != nil {
		fail("arrivals", "%v", err)
	}
	return errors.Join(errs...)
}

// end returns the time from the start of the run to the last moment of sending.
func (w *Workload) end() time.Duration { return w.Begin + w.Duration }

// Plan describes one run.
type Plan struct {
	// Workloads run side by side.
	Workloads []Workload
	// Warmup is the time from the start of the run that summaries exclude, 0 or more and less than the run.
	Warmup time.Duration
	// Drain is the time that requests in flight may continue after the last workload's end; then they are cut off. 0
	// cuts them off at once.
	Drain time.Duration
}

// Validate reports every problem of the plan and of its workloads.
func (p *Plan) Validate() error {
	var errs []error
	if len(p.Workloads) == 0 {
		errs = append(errs, errors.New("loadgen: plan: no workloads"))
	}
	for i := range p.Workloads {
		errs = append(errs, p.Workloads[i].Validate())
	}
	if p.Warmup < 0 || (p.Warmup > 0 && p.Warmup >= p.length()) {
		errs = append(errs, fmt.Errorf("loadgen: plan: warmup must be 0 to the run's %v, not %v", p.length(), p.Warmup))
	}
	if p.Drain < 0 {
		errs = append(errs, fmt.Errorf("loadgen: plan: drain must not be negative, not %v", p.Drain))
	}
	return errors.Join(errs...)
}

// length returns the time from the start of the run to the last moment at which a request may be sent.
func (p *Plan) length() time.Duration {
	var length time.Duration
	for i := range p.Workloads {
		length = max(length, p.Workloads[i].end())
	}
	return length
}
