package datastore

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config names the source of the endpoints when Kubernetes does not list them. At most one of Endpoints and File is
// set; with neither, a caller sets the pool with Store.Set.
type Config struct {
	// Endpoints are addresses as ParseEndpoints reads them (--endpoints).
	Endpoints []string
	// File is the path of a watched endpoints file (--endpoints-file).
	File string
	// OnFile, if set, is called with the error whenever a bad endpoints file has been read, and with nil when the file
	// is good again; from one goroutine at a time. It is meant for a metric: the store does its own logging.
	OnFile func(err error)
	// Probe configures readiness probing of these endpoints.
	Probe ProbeConfig
}

// ProbeConfig configures readiness probes: HTTP GETs that a ready endpoint answers with a 2xx status, or, where Path is
// a guess, with any status below 500.
type ProbeConfig struct {
	// Enabled turns probing on. Without it an endpoint is ready as soon as it is listed; with it, after its first
	// successful probe.
	Enabled bool
	// Path is the path to request, with a leading slash.
	Path string
	// Guessed means that Path is a default that no operator chose, so a server may lack it or require a key for it.
	// Only a refused connection, a timeout or a status of 500 or more then counts as a failure.
	Guessed bool
	// Interval is the time from the end of one probe of an endpoint to the start of its next, at least 100 ms.
	Interval time.Duration
	// Timeout bounds one probe; it is more than 0.
	Timeout time.Duration
	// FailureThreshold is the number of consecutive failures that make a ready endpoint unready, at least 1.
	FailureThreshold int
	// SuccessThreshold is the number of consecutive successes that make it ready again, at least 1.
	SuccessThreshold int
}

// DefaultConfig returns a configuration without a source and without probing.
func DefaultConfig() Config {
	return Config{Probe: ProbeConfig{
		Path:             "/health",
		Interval:         5 * time.Second,
		Timeout:          2 * time.Second,
		FailureThreshold: 3,
		SuccessThreshold: 1,
	}}
}

// Validate returns every problem at once, each with the name of its flag, or of its field if it has no flag. It does
// not open the file.
func (c Config) Validate() error {
	var problems []error
	if len(c.Endpoints) > 0 && c.File != "" {
		problems = append(problems, errors.New("--endpoints: there is an --endpoints-file already; use one of the two"))
	}
	if _, err := ParseEndpoints(c.Endpoints); err != nil {
		problems = append(problems, err)
	}
	if c.Probe.Enabled {
		problems = append(problems, c.Probe.validate()...)
	}
	return errors.Join(problems...)
}

func (p ProbeConfig) validate() []error {
	var problems []error
	bad := func(field, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
	if !strings.HasPrefix(p.Path, "/") {
		bad("--probe-path", "%q does not begin with a slash", p.Path)
	}
	if p.Interval < minProbeInterval {
		bad("--probe-interval", "%v is less than %v", p.Interval, minProbeInterval)
	}
	if p.Timeout <= 0 {
		bad("probe.timeout", "%v is not more than 0", p.Timeout)
	}
	if p.FailureThreshold < 1 {
		bad("probe.failureThreshold", "%d is less than 1", p.FailureThreshold)
	}
	if p.SuccessThreshold < 1 {
		bad("probe.successThreshold", "%d is less than 1", p.SuccessThreshold)
	}
	return problems
}

const minProbeInterval = 100 * time.Millisecond
