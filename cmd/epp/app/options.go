package app

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/internal/arguments"
	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/kubeapi"
	"github.com/weir-epp/weir/pkg/datastore"
	"github.com/weir-epp/weir/pkg/datastore/kvevents"
	"github.com/weir-epp/weir/pkg/datastore/scrape"
	"github.com/weir-epp/weir/pkg/invalid"
	"github.com/weir-epp/weir/pkg/leader"
	"github.com/weir-epp/weir/pkg/tracing"
)

// Actions at the start if the configuration is invalid.
const (
	InvalidFails    = "fail"
	InvalidDefaults = "defaults"
)

// DebugOff as the debug port means that there is no listener for debugging.
const DebugOff = -1

// Options are the program's options at its start, from the flags or a test. The comments name the flags.
type Options struct {
	// BindAddress is the address of all listeners except the one for debugging; empty: all interfaces (--bind-address).
	BindAddress string
	// GRPCPort serves Envoy, HealthPort the gRPC health checks, MetricsPort metrics over HTTP; 0 picks a free port
	// (--grpc-port, --grpc-health-port, --metrics-port).
	GRPCPort, HealthPort, MetricsPort int
	// DebugBindAddress is the address of the listener for debugging, never empty (--debug-bind-address).
	DebugBindAddress string
	// DebugPort serves the status and debug pages over HTTP; 0 picks a free port, DebugOff has none (--debug-port).
	DebugPort int
	// PortsFile is written when everything listens: {"grpc":…,"health":…,"metrics":…,"debug":…}; empty: no file
	// (--ports-file).
	PortsFile string

	// SecureServing serves Envoy over TLS (--secure-serving).
	SecureServing bool
	// CertPath is a directory with tls.crt and tls.key; empty: a self-signed certificate (--cert-path).
	CertPath string
	// ClientCAFile has the authorities, in PEM, for client certificates at the ext_proc port; empty: clients need no
	// certificate (--client-ca-file).
	ClientCAFile string
	// CertReload follows changes of the files with certificates (--enable-cert-reload).
	CertReload bool
	// TLSMinVersion is the least accepted version of TLS, TLS12 or TLS13 (--tls-min-version).
	TLSMinVersion string
	// TLSCipherSuites are the names of the permitted cipher suites of TLS 1.2; empty: crypto/tls's choice
	// (--tls-cipher-suites).
	TLSCipherSuites []string
	// GRPCMaxRecvMsgSize is the longest accepted message at the ext_proc port, in bytes, at least the need of the
	// configuration's limits; 0: exactly that (--grpc-max-recv-msg-size).
	GRPCMaxRecvMsgSize int

	// MetricsEndpointAuth authenticates readers of the metrics with the apiserver; nil: if the endpoints come from
	// Kubernetes (--metrics-endpoint-auth).
	MetricsEndpointAuth *bool
	// MetricsSecureServing serves metrics over TLS (--metrics-secure-serving).
	MetricsSecureServing bool
	// MetricsCertPath is a directory with tls.crt and tls.key for the metrics port; empty: a self-signed certificate
	// (--metrics-cert-path).
	MetricsCertPath string

	// ConfigFile or ConfigText is the configuration; at most one is given (--config-file, --config-text).
	ConfigFile, ConfigText string
	// Profile overrides the profile of the configuration, unless it is empty (--profile).
	Profile string
	// Override changes the configuration after the file and before validation, for the flags of single keys.
	Override func(*config.Document)
	// OnInvalidConfig is InvalidFails or InvalidDefaults (--on-invalid-config).
	OnInvalidConfig string

	// Endpoints is the static pool, EndpointsFile a followed file with it; at most one is given.
	Endpoints     []string
	EndpointsFile string
	// PoolName is the InferencePool whose pods are the pool, PoolNamespace its namespace, and PoolGroup its API group
	// (--pool-name, --pool-namespace, --pool-group).
	PoolName, PoolNamespace, PoolGroup string
	// EndpointSelector selects the pods without an InferencePool, EndpointTargetPorts are their ports (--endpoint-selector,
	// --endpoint-target-ports).
	EndpointSelector    string
	EndpointTargetPorts []int
	// Kubeconfig is the kubeconfig file for the apiserver; empty: $KUBECONFIG, or the pod's service account
	// (--kubeconfig).
	Kubeconfig string
	// Pod is the program's own pod (from the environment).
	Pod Pod
	// LeaderElection makes one of several replicas the leader, the only ready one (--ha-enable-leader-election).
	LeaderElection bool
	// LeaderEndpointSlice is the EndpointSlice in which the leader publishes itself; empty: none
	// (--leader-endpoint-slice).
	LeaderEndpointSlice string
	// Leader configures the election and the records of the requests in flight of replicas
	// (--leader-election-lease-duration, --leader-election-retry-period, --takeover-window).
	Leader leader.Config
	// ProbePath is the path of the HTTP GET that probes an endpoint's readiness; empty: endpoints are ready when listed
	// (--probe-path).
	ProbePath string
	// ProbeGuessed means that ProbePath is a default: an endpoint without this path is ready as long as it answers.
	ProbeGuessed bool
	// ProbeInterval is the time between two probes of an endpoint (--probe-interval).
	ProbeInterval time.Duration

	// Scrape configures the reading of the endpoints' metrics pages; without a path none are read (--scrape-path, and
	// flags of other endpoint pickers).
	Scrape scrape.Config
	// KVEvents has the addresses of the engines' KV events; without a port none are followed (--kv-events-port,
	// --kv-events-topic).
	KVEvents kvevents.Config

	// HashFlowKeys shows identities in flow keys as hashes in metrics, logs and pages (--hash-flow-keys).
	HashFlowKeys bool
	// DrainTimeout is the longest time of stopping, from the signal on (--drain-timeout).
	DrainTimeout time.Duration
	// MetricAliases also exports some metrics under other endpoint pickers' names (--metric-aliases).
	MetricAliases bool
	// Pprof serves /debug/pprof on the debug port (--enable-pprof).
	Pprof bool
	// Tracing configures the spans of requests; nil: none (--tracing, and the environment).
	Tracing *tracing.Config

	// Log is the program's log; the zero value discards.
	Log logr.Logger
}

// DefaultOptions returns the defaults of the flags.
func DefaultOptions() Options {
	return Options{
		GRPCPort:         9002,
		HealthPort:       9003,
		MetricsPort:      9090,
		DebugPort:        9004,
		DebugBindAddress: "127.0.0.1",
		SecureServing:    true,
		CertReload:       true,
		TLSMinVersion:    TLS12,
		OnInvalidConfig:  InvalidFails,
		PoolNamespace:    defaultNamespace(),
		PoolGroup:        kubeapi.PoolGroupVersion.Group,
		Pod:              ownPod(),
		Leader:           leader.DefaultConfig(),
		ProbePath:        "/health",
		ProbeGuessed:     true,
		ProbeInterval:    5 * time.Second,
		Scrape:           scrape.DefaultConfig(),
		DrainTimeout:     time.Minute,
	}
}

// Validate reports every problem at once, each with the name of its flag. The configuration is validated when loaded.
func (o *Options) Validate() error {
	var ps arguments.Problems
	arguments.Within(&ps, "grpc-port", o.GRPCPort, 0, 65535)
	arguments.Within(&ps, "grpc-health-port", o.HealthPort, 0, 65535)
	arguments.Within(&ps, "metrics-port", o.MetricsPort, 0, 65535)
	if o.DebugPort < DebugOff || o.DebugPort > 65535 {
		ps.Add("debug-port", "%d: must be from 0 to 65535, or %d for none", o.DebugPort, DebugOff)
	}
	if o.DebugBindAddress == "" {
		ps.Add("debug-bind-address", `"": must be an address; all interfaces are 0.0.0.0 or ::`)
	}
	if o.ConfigFile != "" && o.ConfigText != "" {
		ps.Add("config-text", "there is a --config-file already; use one of the two")
	}
	if o.CertPath != "" && !o.SecureServing {
		ps.Add("cert-path", "%s: has no use with --secure-serving=false", o.CertPath)
	}
	if o.ClientCAFile != "" && !o.SecureServing {
		ps.Add("client-ca-file", "%s: has no use with --secure-serving=false", o.ClientCAFile)
	}
	if o.MetricsCertPath != "" && !o.MetricsSecureServing {
		ps.Add("metrics-cert-path", "%s: has no use without --metrics-secure-serving", o.MetricsCertPath)
	}
	switch _, known := tlsVersions[o.TLSMinVersion]; {
	case !known:
		ps.Add("tls-min-version", "%q: must be one of %s", o.TLSMinVersion, strings.Join(slices.Sorted(maps.Keys(tlsVersions)), ", "))
	case o.TLSMinVersion != TLS12 && !o.SecureServing && !o.MetricsSecureServing:
		ps.Add("tls-min-version", "%s: has no use with --secure-serving=false and no --metrics-secure-serving", o.TLSMinVersion)
	}
	for _, name := range o.TLSCipherSuites {
		if _, known := cipherSuites[name]; !known {
			ps.Add("tls-cipher-suites", "%q: must be one of %s", name, strings.Join(cipherSuiteNames(), ", "))
		}
	}
	if len(o.TLSCipherSuites) > 0 && o.TLSMinVersion == TLS13 {
		ps.Add("tls-cipher-suites", "%s: has no use with --tls-min-version=1.3, whose suites cannot be chosen", strings.Join(o.TLSCipherSuites, ","))
	}
	if o.GRPCMaxRecvMsgSize < 0 || o.GRPCMaxRecvMsgSize > math.MaxInt32 {
		ps.Add("grpc-max-recv-msg-size", "%d: must be from 0 to %d bytes", o.GRPCMaxRecvMsgSize, math.MaxInt32)
	}
	if known := []string{InvalidFails, InvalidDefaults}; !slices.Contains(known, o.OnInvalidConfig) {
		ps.Add("on-invalid-config", "%q: must be one of %s", o.OnInvalidConfig, strings.Join(known, ", "))
	}
	if o.DrainTimeout < 0 {
		ps.Add("drain-timeout", "%s: must be at least 0s", o.DrainTimeout)
	}
	var parts invalid.Problems
	parts.Under(invalid.At("Scrape"), o.Scrape.Validate())
	parts.Under(invalid.At("KVEvents"), o.KVEvents.Validate())
	for _, p := range slices.Concat(o.validateSource(&ps), invalid.Of(o.datastore().Validate()), invalid.Of(o.Leader.Validate()), parts) {
		ps = append(ps, errors.New(p.Text(flagOf)))
	}
	return ps.Err()
}

// validateSource checks that there is one source of endpoints, and returns the problems of Kubernetes as the source.
func (o *Options) validateSource(ps *arguments.Problems) invalid.Problems {
	if !o.kubernetes() {
		if len(o.Endpoints) == 0 && o.EndpointsFile == "" {
			ps.Add("endpoints", "no model servers: list them here, in --endpoints-file, or in Kubernetes with --pool-name or "+
				"--endpoint-selector")
		}
		if len(o.EndpointTargetPorts) > 0 {
			ps.Add("endpoint-target-ports", "%v: has no use without --endpoint-selector", o.EndpointTargetPorts)
		}
		if o.Kubeconfig != "" && !o.metricsAuth() {
			ps.Add("kubeconfig", "%s: has no use without --pool-name, --endpoint-selector or --metrics-endpoint-auth", o.Kubeconfig)
		}
		if o.LeaderElection {
			ps.Add("ha-enable-leader-election", "true: has no use without --pool-name or --endpoint-selector")
		}
		if o.LeaderEndpointSlice != "" {
			ps.Add("leader-endpoint-slice", "%s: has no use without --pool-name or --endpoint-selector", o.LeaderEndpointSlice)
		}
		return nil
	}
	if o.LeaderEndpointSlice != "" && !o.LeaderElection {
		ps.Add("leader-endpoint-slice", "%s: has no use without --ha-enable-leader-election", o.LeaderEndpointSlice)
	}
	given := "--pool-name"
	if o.PoolName == "" {
		given = "--endpoint-selector"
	}
	if len(o.Endpoints) > 0 {
		ps.Add("endpoints", "%s is given already; use one of the two", given)
	}
	if o.EndpointsFile != "" {
		ps.Add("endpoints-file", "%s is given already; use one of the two", given)
	}
	return invalid.Of(o.kube().Validate())
}

// metricsAuth reports whether readers of the metrics are authenticated.
func (o *Options) metricsAuth() bool {
	if o.MetricsEndpointAuth != nil {
		return *o.MetricsEndpointAuth
	}
	return o.kubernetes()
}

// flagOf returns the flag for a field of the configuration of the datastore, the Kubernetes source or the election, or
// the field itself if there is none.
func flagOf(field invalid.Path) string {
	flags := map[string]string{
		"Pool": "--pool-name", "Namespace": "--pool-namespace", "Group": "--pool-group",
		"Selector": "--endpoint-selector", "Ports": "--endpoint-target-ports",
		"LeaseDuration": "--leader-election-lease-duration", "RetryPeriod": "--leader-election-retry-period",
		"TakeoverWindow": "--takeover-window",
		"Endpoints":      "--endpoints", "File": "--endpoints-file", "Probe.Path": "--probe-path", "Probe.Interval": "--probe-interval",
		"Scrape.Path": "--scrape-path", "Scrape.Port": "--model-server-metrics-port", "Scrape.Scheme": "--model-server-metrics-scheme",
		"Scrape.Interval":        "--refresh-metrics-interval",
		"Scrape.Names.Running":   "--total-running-requests-metric",
		"Scrape.Names.Waiting":   "--total-queued-requests-metric",
		"Scrape.Names.CacheUsed": "--kv-cache-usage-percentage-metric",
		"Scrape.Names.CacheInfo": "--cache-info-metric",
		"Scrape.Names.Adapters":  "--lora-info-metric",
		"KVEvents.Port":          "--kv-events-port", "KVEvents.Topic": "--kv-events-topic",
	}
	return cmp.Or(flags[field.Pattern()], field.String())
}

// datastore returns the configuration of the pool.
func (o *Options) datastore() datastore.Config {
	cfg := datastore.DefaultConfig()
	cfg.Endpoints, cfg.File = o.Endpoints, o.EndpointsFile
	cfg.Probe.Enabled = o.ProbePath != "" && !(o.ProbeGuessed && o.kubernetes()) // the kubelet probes pods
	cfg.Probe.Path, cfg.Probe.Guessed, cfg.Probe.Interval = o.ProbePath, o.ProbeGuessed, o.ProbeInterval
	return cfg
}
