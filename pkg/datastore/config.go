package datastore

import (
	"strings"
	"time"

	"github.com/weir-epp/weir/pkg/invalid"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// Config names the source of the endpoints when Kubernetes does not list them. At most one of Endpoints and File is
// set; with neither, a caller sets the pool with Store.Set.
type Config struct {
	// Endpoints are addresses in the form of ParseEndpoints (--endpoints).
	Endpoints []string
	// File is the path of a watched endpoints file (--endpoints-file).
	File string
	// OnFile, if set, is called with the error after reading a bad endpoints file, and with nil when the file is good
	// again, by one goroutine at a time. It is meant for a metric: the store does its own logging.
	OnFile func(err error)
	// InUse, if set, returns which of the departed endpoints still have requests in flight. It is called outside of hot
	// paths with at most 64 endpoints. An endpoint keeps its identity while InUse names it, so that its requests in
	// flight count again if it returns. Without InUse, an endpoint is forgotten when it leaves.
	InUse func(departed []scheduling.EndpointID) (inUse []scheduling.EndpointID)
	// Probe configures readiness probing of these endpoints.
	Probe ProbeConfig
}

// ProbeConfig configures readiness probes: HTTP GETs that a ready endpoint answers with a 2xx status or, if Path is
// guessed, with any status below 500.
type ProbeConfig struct {
	// Enabled turns probing on. Without it an endpoint is ready as soon as it is listed; with it, after its first
	// successful probe.
	Enabled bool
	// Path is the path to request, with a leading slash.
	Path string
	// Guessed means that Path is the default instead of an operator's choice, so a server may lack it or require a key
	// for it. Then only a refused connection, a timeout or a status of 500 or more is a failure.
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

// Validate reports every problem at once, as invalid.Problems. It does not open the file.
func (c Config) Validate() error {
	var ps invalid.Problems
	if len(c.Endpoints) > 0 && c.File != "" {
		ps.Add(endpointsField, nil, "%s is given already; use one of the two", invalid.At("File"))
	}
	_, err := ParseEndpoints(c.Endpoints)
	ps.Under(invalid.At(), err)
	if c.Probe.Enabled {
		c.Probe.check(&ps, invalid.At("Probe"))
	}
	return ps.Err()
}

// endpointsField is the field of a Config with its endpoints.
var endpointsField = invalid.At("Endpoints")

func (p ProbeConfig) check(ps *invalid.Problems, at invalid.Path) {
	if !strings.HasPrefix(p.Path, "/") {
		ps.Add(at.At("Path"), p.Path, "must begin with a slash")
	}
	invalid.AtLeast(ps, at.At("Interval"), p.Interval, minProbeInterval)
	invalid.Above(ps, at.At("Timeout"), p.Timeout, 0)
	invalid.AtLeast(ps, at.At("FailureThreshold"), p.FailureThreshold, 1)
	invalid.AtLeast(ps, at.At("SuccessThreshold"), p.SuccessThreshold, 1)
}

const minProbeInterval = 100 * time.Millisecond
