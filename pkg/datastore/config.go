package datastore

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config says where the endpoints come from when Kubernetes does not list them. At most one of Endpoints and File is
// given; with neither, somebody else calls Store.Set.
type Config struct {
	// Endpoints are addresses as ParseEndpoints reads them (--endpoints).
	Endpoints []string
	// File is the path of a watched endpoints file (--endpoints-file).
	File string
	// OnFile, if set, is told the state of the file when it has become good again (nil), and what is wrong whenever a file
	// that is not good was read; from one goroutine at a time. It is for a metric: the store itself logs.
	OnFile func(err error)
	// Probe is readiness probing of these endpoints.
	Probe ProbeConfig
}

// ProbeConfig says how endpoints are asked whether they are ready: by an HTTP GET that is answered with a 2xx status, or
// where Path is a guess, with any status below 500.
type ProbeConfig struct {
	// Enabled turns probing on. Without it an endpoint is ready when it is listed; with it, after its first success.
	Enabled bool
	// Path is what is asked for, with a leading slash.
	Path string
	// Guessed means that nobody has named Path: a server may lack it, or want a key for it. What shows that it does not
	// serve is then a refused connection, silence or a status of 500 and more; any other answer shows that it lives.
	Guessed bool
	// Interval is the time from the end of a probe to the next one of the same endpoint, at least 100 ms.
	Interval time.Duration
	// Timeout bounds one probe, more than 0.
	Timeout time.Duration
	// FailureThreshold is how many failures in a row make a ready endpoint unready, at least 1.
	FailureThreshold int
	// SuccessThreshold is how many successes in a row make it ready again after that, at least 1.
	SuccessThreshold int
}

// DefaultConfig has no source and no probing.
func DefaultConfig() Config {
	return Config{Probe: ProbeConfig{
		Path:             "/health",
		Interval:         5 * time.Second,
		Timeout:          2 * time.Second,
		FailureThreshold: 3,
		SuccessThreshold: 1,
	}}
}

// Validate returns every problem at once, each with the name of its flag, or of its field where it
// has no flag. It does not open the file.
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
