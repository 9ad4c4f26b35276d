package app

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/weir-epp/weir/internal/arguments"
	"github.com/weir-epp/weir/internal/config"
)

// flags is the command line: Options, the keys of the configuration that have a flag, and the parts that only Main
// needs.
type flags struct {
	Options

	version   bool
	validate  bool
	encoder   string
	verbosity int

	// The flags of keys write here; given flags are then copied to the configuration.
	document config.Document
	keys     []config.Flag

	metricsAuth bool
	tracing     bool

	set    *pflag.FlagSet
	groups []group
}

// group is a section of --help.
type group struct {
	title string
	set   *pflag.FlagSet
}

const usage = `epp is Weir's endpoint picker: an Envoy ext_proc server that holds requests in a fair queue until the model servers
can take them, then picks one.

  epp --endpoints 10.0.0.1:8000,10.0.0.2:8000 --secure-serving=false --config-file weir.yaml

It serves Envoy over TLS by default; --secure-serving=false is for a cluster without TLS, as in config/envoy.

Weir learns the batch slots of each engine from its metrics, and assumes 64 without metrics. --slots-per-backend=n
keeps n batch slots of each engine busy instead (vLLM: --max-num-seqs n).
`

func newFlags() *flags {
	document, err := config.Profile(config.DefaultProfile)
	if err != nil {
		panic(err) // it is one of this build
	}
	f := &flags{Options: DefaultOptions(), document: document}
	f.keys = config.Flags(&f.document)
	f.set = pflag.NewFlagSet("epp", pflag.ContinueOnError)
	f.set.SortFlags = false
	f.set.Usage = func() {}
	f.first(f.group("Settings of most installations"))
	f.serving(f.group("Serving"))
	f.probing(f.group("Probing and metrics of model servers"))
	f.configuration(f.group("Configuration (flags override the file)"))
	f.stopping(f.group("Stopping and observing"))
	f.kubernetes(f.group("Kubernetes"))
	f.ofKeys(f.group("Settings that nobody needs (docs/settings-nobody-needs.md)"), config.PageRare)
	for _, g := range f.groups {
		f.set.AddFlagSet(g.set)
	}
	f.foreign(f.set)
	f.set.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "slots" {
			name = "slots-per-backend"
		}
		return pflag.NormalizedName(name)
	})
	return f
}

func (f *flags) group(title string) *pflag.FlagSet {
	set := pflag.NewFlagSet(title, pflag.ContinueOnError)
	set.SortFlags = false
	f.groups = append(f.groups, group{title, set})
	return set
}

func (f *flags) first(s *pflag.FlagSet) {
	s.StringSliceVar(&f.Endpoints, "endpoints", nil, "model servers as `ip:port`, separated by commas; can be repeated")
	s.StringVar(&f.EndpointsFile, "endpoints-file", "", "YAML `file` with the model servers; Weir follows its changes")
	s.StringVar(&f.PoolName, "pool-name", "", "`name` of the InferencePool whose pods are the model servers")
	s.StringVar(&f.PoolNamespace, "pool-namespace", f.PoolNamespace,
		"`namespace` of the InferencePool and of the pods (default $NAMESPACE, else default)")
	s.StringVar(&f.EndpointSelector, "endpoint-selector", "",
		"label `selector` of the model servers' pods, without an InferencePool")
	s.IntSliceVar(&f.EndpointTargetPorts, "endpoint-target-ports", nil,
		"`ports` of the pods of --endpoint-selector, separated by commas, at most 8; each is a model server")
	s.StringVar(&f.ConfigFile, "config-file", "", "YAML `file` with the configuration; Weir follows its changes; docs/config.md has every key")
	s.StringVar(&f.Profile, "profile", "",
		"`name` of the set of defaults: "+config.ProfileList()+" (default the file's, else "+config.DefaultProfile+")")
	f.ofKeys(s, config.PageFirst)
	s.BoolVar(&f.SecureServing, "secure-serving", f.SecureServing, "serve Envoy over TLS")
	s.StringVar(&f.CertPath, "cert-path", f.CertPath,
		"`directory` with tls.crt and tls.key (default a self-signed certificate)")
}

// ofKeys defines the flags of the keys of a page.
func (f *flags) ofKeys(s *pflag.FlagSet, page string) {
	for _, flag := range f.keys {
		if flag.Page != page {
			continue
		}
		switch value := flag.Value.(type) {
		case *int64:
			s.Int64Var(value, flag.Name, *value, flag.Usage)
		case pflag.Value:
			s.Var(value, flag.Name, flag.Usage)
		}
	}
}

func (f *flags) serving(s *pflag.FlagSet) {
	s.StringVar(&f.BindAddress, "bind-address", f.BindAddress, "`address` of all listeners except --debug-port (default all interfaces)")
	s.IntVar(&f.GRPCPort, "grpc-port", f.GRPCPort, "`port` of the ext_proc server, for Envoy; 0 picks a free one")
	s.IntVar(&f.HealthPort, "grpc-health-port", f.HealthPort,
		"`port` of the gRPC health services (liveness, synced, readiness and their synonyms); 0 picks a free one")
	s.IntVar(&f.MetricsPort, "metrics-port", f.MetricsPort,
		"`port` of the HTTP server with /metrics, /healthz and /readyz; 0 picks a free one")
	s.IntVar(&f.DebugPort, "debug-port", f.DebugPort,
		"`port` of the HTTP server with /statusz, /debug/config and /debug/flows, which show flow keys; 0 picks a free one, -1 turns it off")
	s.StringVar(&f.DebugBindAddress, "debug-bind-address", f.DebugBindAddress,
		"`address` of --debug-port, which has no authentication; 0.0.0.0 or :: is all interfaces")
	s.StringVar(&f.PortsFile, "ports-file", f.PortsFile,
		"`file` for the ports, written as JSON once all of them listen")
	s.StringVar(&f.ClientCAFile, "client-ca-file", "",
		"PEM `file` with the authorities of Envoy's certificate, which the ext_proc port then requires (default no client certificate)")
	s.BoolVar(&f.CertReload, "enable-cert-reload", f.CertReload,
		"follow changes of the files in --cert-path and --metrics-cert-path, and of --client-ca-file")
	s.StringVar(&f.TLSMinVersion, "tls-min-version", f.TLSMinVersion, "lowest `version` of TLS: 1.2 or 1.3")
	s.StringSliceVar(&f.TLSCipherSuites, "tls-cipher-suites", nil,
		"cipher suites of TLS 1.2, by the `names` of Go's crypto/tls, separated by commas (default Go's choice)")
	s.Var(size{&f.GRPCMaxRecvMsgSize}, "grpc-max-recv-msg-size",
		"`size` of the longest message that the ext_proc port accepts, such as 64Mi; not below the default (default as limits needs)")
	s.BoolVar(&f.MetricsSecureServing, "metrics-secure-serving", f.MetricsSecureServing, "serve --metrics-port over TLS")
	s.StringVar(&f.MetricsCertPath, "metrics-cert-path", "",
		"`directory` with tls.crt and tls.key of the metrics port (default a self-signed certificate)")
}

func (f *flags) probing(s *pflag.FlagSet) {
	s.StringVar(&f.ProbePath, "probe-path", f.ProbePath,
		"HTTP `path` that a ready model server answers with 2xx; empty: no probing. A server without the default path is ready "+
			"while it answers at all")
	s.DurationVar(&f.ProbeInterval, "probe-interval", f.ProbeInterval, "time between two probes of a model server")
	s.StringVar(&f.Scrape.Path, "scrape-path", f.Scrape.Path,
		"HTTP `path` of a model server's metrics, read once a second; empty: Weir counts only its own requests there")
	s.StringVar(&f.KVEvents.Port, "kv-events-port", "",
		"`port` at which each model server publishes its KV events over ZeroMQ (vLLM's --kv-events-config); +N is the endpoint's port "+
			"plus N; empty: Weir follows no events")
	s.StringVar(&f.KVEvents.Topic, "kv-events-topic", "", "beginning of the `topic` of the KV events; empty: all topics")
}

func (f *flags) configuration(s *pflag.FlagSet) {
	s.StringVar(&f.ConfigText, "config-text", "", "the configuration as `YAML` text, instead of a file")
	s.StringVar(&f.OnInvalidConfig, "on-invalid-config", f.OnInvalidConfig,
		"`effect` of an invalid configuration: fail (exit and name every problem) or defaults (start with the profile's defaults)")
	f.ofKeys(s, "")
}

func (f *flags) stopping(s *pflag.FlagSet) {
	s.DurationVar(&f.DrainTimeout, "drain-timeout", f.DrainTimeout,
		"longest time from SIGTERM to the exit, including the configuration's drainWindow")
	s.StringVar(&f.encoder, "zap-encoder", "json", "`encoding` of the log: json or console")
	s.IntVarP(&f.verbosity, "v", "v", 0, "`verbosity` of the log, from 0; 1 logs a line for each request")
	s.BoolVar(&f.HashFlowKeys, "hash-flow-keys", f.HashFlowKeys,
		"show flow keys from headers, metadata or attributes only as SHA-256 hashes, in metrics, logs and pages: for keys "+
			"that are secrets")
	s.BoolVar(&f.Pprof, "enable-pprof", f.Pprof, "serve /debug/pprof on the debug port")
	s.BoolVar(&f.metricsAuth, "metrics-endpoint-auth", false,
		"let the apiserver check the token and the permission of each reader of /metrics (default true if the model servers "+
			"come from Kubernetes)")
	s.BoolVar(&f.MetricAliases, "metric-aliases", f.MetricAliases,
		"also export metrics under the names that autoscalers read from llm-d's and GIE's endpoint pickers")
	s.BoolVar(&f.tracing, "tracing", false,
		"send spans of requests by OTLP to the collector at OTEL_EXPORTER_OTLP_ENDPOINT (default http://localhost:4317)")
	s.BoolVar(&f.validate, "validate", false, "check the flags and the configuration, report the problems, and exit")
	s.BoolVar(&f.version, "version", false, "print the version and exit")
}

func (f *flags) kubernetes(s *pflag.FlagSet) {
	s.StringVar(&f.PoolGroup, "pool-group", f.PoolGroup, "API `group` of the InferencePool")
	s.StringVar(&f.Kubeconfig, "kubeconfig", "",
		"kubeconfig `file` for the apiserver (default $KUBECONFIG, or the service account in a pod)")
	s.BoolVar(&f.LeaderElection, "ha-enable-leader-election", false,
		"elect a leader among several replicas; only the leader is ready")
	s.StringVar(&f.LeaderEndpointSlice, "leader-endpoint-slice", f.LeaderEndpointSlice,
		"EndpointSlice, in the pod's namespace, in which the leader enters itself (POD_IP), for a Service without a selector")
	s.DurationVar(&f.Leader.LeaseDuration, "leader-election-lease-duration", f.Leader.LeaseDuration,
		"time for which an unchanged Lease stays with its leader, in whole seconds")
	s.DurationVar(&f.Leader.RetryPeriod, "leader-election-retry-period", f.Leader.RetryPeriod,
		"time between two renewals of a replica's Leases, and between two reads of the others'")
	s.DurationVar(&f.Leader.TakeoverWindow, "takeover-window", f.Leader.TakeoverWindow,
		"time in which the recorded stock of a vanished replica falls to 0; 0s: it does not count")
}

// parse parses the arguments. The error names every flag that this build does not support.
func (f *flags) parse(args []string) error {
	if err := f.set.Parse(args); err != nil {
		return arguments.Explain(f.set, err)
	}
	if err := f.translateForeign(); err != nil {
		return err
	}
	f.ProbeGuessed = !f.set.Changed("probe-path")
	var ps arguments.Problems
	if f.set.NArg() > 0 {
		ps = append(ps, arguments.Unexpected(f.set, f.set.Arg(0), args))
	}
	f.chooseMetricsAuth()
	if f.encoder != encoderJSON && f.encoder != encoderConsole {
		ps.Add("zap-encoder", "%q: must be one of json, console", f.encoder)
	}
	arguments.Within(&ps, "v", f.verbosity, 0, maxVerbosity)
	f.overrideKeys()
	ps = append(ps, f.readTracing(os.Getenv), f.refuseForeign(), f.Validate())
	return ps.Err()
}

// chooseMetricsAuth sets the option MetricsEndpointAuth, whose default depends on other options.
func (f *flags) chooseMetricsAuth() {
	if f.set.Changed("metrics-endpoint-auth") {
		f.MetricsEndpointAuth = &f.metricsAuth
	}
}

// overrideKeys makes the given flags of keys the last layer of the configuration.
func (f *flags) overrideKeys() {
	given := slices.DeleteFunc(slices.Clone(f.keys), func(flag config.Flag) bool { return !f.set.Changed(flag.Name) })
	if len(given) > 0 {
		f.Override = func(d *config.Document) { config.Override(d, &f.document, given) }
	}
}

// help prints the flags by group, with units and defaults.
func (f *flags) help(w io.Writer) {
	_, _ = fmt.Fprint(w, usage)
	for _, g := range f.groups {
		_, _ = fmt.Fprintf(w, "\n%s:\n%s", g.title, g.set.FlagUsagesWrapped(120))
	}
	f.helpForeign(w)
}
