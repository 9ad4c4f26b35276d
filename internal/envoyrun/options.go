package envoyrun

import (
	"fmt"
	"time"
)

// Options describe the Envoy to start. Config and ModelServers or EndpointsFile must be set, and Weir if the configuration has ext_proc.
type Options struct {
	// Config is a shipped configuration ("recommended", "full-duplex"; see Shipped), or the path, with a slash in it,
	// of another one with the clusters "weir" and "model_servers".
	Config string

	// Weir is the ext_proc server, ip:port, reached in plain HTTP/2; replicas are separated by commas. The port need
	// not be open yet. Configurations without ext_proc ignore it.
	Weir string

	// ModelServers are the endpoints of the model servers' cluster, ip:port each. If the cluster reads them from a file
	// (EDS), Start writes it.
	ModelServers []string

	// EndpointsFile is the caller's file from which the model servers' cluster reads its endpoints (EDS), instead of
	// ModelServers. It must exist, and Envoy reads it again when a file is renamed into its directory.
	EndpointsFile string

	// Edit, if set, changes the configuration last, in place.
	Edit func(Bootstrap) error

	// Listen and Admin are the addresses to bind, ip:port. Empty means 127.0.0.1 and any free port; so does port 0. The
	// listener with the counters of ext_proc, where the configuration has one, always binds 127.0.0.1 and any free port.
	Listen, Admin string

	// Concurrency is the number of worker threads. 0 means 1, which leaves the other cores to the test.
	Concurrency int

	// LogLevel is one of Envoy's: trace, debug, info, warning, error, critical, off. Empty means warning.
	LogLevel string

	// Dir is an existing directory for the configuration, the logs (envoy.json, envoy.log, access.log) and the key
	// files (auth), which are not removed. Empty means a temporary directory that is removed with Envoy.
	Dir string

	// Binary is the Envoy to run. Empty means Find's result.
	Binary string

	// ReadyTimeout is the time for which Start waits for Envoy to be ready. 0 means 30 s.
	ReadyTimeout time.Duration
}

// withDefaults fills in the empty fields, except the addresses.
func (o Options) withDefaults() (Options, error) {
	if o.Concurrency == 0 {
		o.Concurrency = 1
	}
	if o.LogLevel == "" {
		o.LogLevel = "warning"
	}
	if o.ReadyTimeout == 0 {
		o.ReadyTimeout = 30 * time.Second
	}
	if o.Binary == "" {
		binary, err := Find()
		if err != nil {
			return o, err
		}
		o.Binary = binary
	}
	return o, nil
}

// Render returns Start's configuration for Envoy: the file, the addresses, the edit.
func (o Options) Render() (Bootstrap, error) {
	bootstrap, err := Load(o.Config)
	if err != nil {
		return nil, err
	}
	if err := bootstrap.setAddresses(o); err != nil {
		return nil, err
	}
	if o.Edit != nil {
		if err := o.Edit(bootstrap); err != nil {
			return nil, fmt.Errorf("envoyrun: editing configuration: %w", err)
		}
	}
	return bootstrap, nil
}
