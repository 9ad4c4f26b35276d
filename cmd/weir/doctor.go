package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/weir-epp/weir/cmd/epp/app"
	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/doctor"
	"github.com/weir-epp/weir/internal/doctor/ask"
	"github.com/weir-epp/weir/internal/printable"
	"github.com/weir-epp/weir/pkg/datastore"
	"github.com/weir-epp/weir/pkg/datastore/kube"
	"github.com/weir-epp/weir/pkg/invalid"
)

const doctorUsage = `Usage:
  weir doctor [flags] [EPP'S FLAGS] ENVOY
  weir doctor --kubernetes [flags] [EPP'S FLAGS] [ENVOY]

weir doctor compares Envoy's configuration with Weir's and reports known mistakes. It sends no request. ENVOY is a file, - for
standard input, or the URL of an admin interface: a bootstrap as in config/envoy, /config_dump?include_eds, or the output of
egctl x translate. Give the flags of your epp: --config-file and flags of single keys, --grpc-port, --secure-serving,
--endpoints or --endpoints-file, --client-ca-file. docs/doctor.md has the table of the checks.

With --kubernetes it also asks the apiserver about the CRDs, permissions, pods, EndpointSlice and certificate of the Weir with
these flags: --pool-name or --endpoint-selector, --pool-namespace, --ha-enable-leader-election, --leader-endpoint-slice.

Exit code: 0 no findings, 1 findings, 2 the arguments are wrong or a file cannot be read.

Flags:
`

// doctorFlags are the flags of `weir doctor` itself.
type doctorFlags struct {
	output   string
	clusters []string
	ignore   []string
	timeout  time.Duration
	epp      app.CommandLine

	kubernetes     bool
	serviceAccount string
	secret         string
}

// The exit codes of `weir doctor`.
const (
	healthy    = 0
	hasTraps   = 1
	unreadable = 2
)

// runDoctor is `weir doctor`.
func runDoctor(args []string, stdout, stderr io.Writer) int {
	f := &doctorFlags{epp: app.NewCommandLine()}
	set := flagSet("weir doctor")
	set.StringVarP(&f.output, "output", "o", "text", "`form` of the report: text or json")
	set.StringSliceVar(&f.clusters, "cluster", nil, "`names` of Envoy's clusters for Weir (default those of all ext_proc filters)")
	set.StringSliceVar(&f.ignore, "ignore", nil, "`identifiers` of checks to leave out, separated by commas")
	set.DurationVar(&f.timeout, "timeout", 10*time.Second, "longest time for reading from a URL or the apiserver")
	set.BoolVar(&f.kubernetes, "kubernetes", false, "ask the apiserver (--kubeconfig) too")
	set.StringVar(&f.serviceAccount, "service-account", "",
		"`name` of Weir's service account, whose permissions are asked for by impersonation (default those of the kubeconfig's user)")
	set.StringVar(&f.secret, "certificate-secret", "", "`name` of the Secret with Weir's certificate")
	own := set.FlagUsagesWrapped(120)
	f.epp.AddTo(set)
	if code, ok := readArguments(set, doctorUsage+own, args, f.check, stdout, stderr); !ok {
		return code
	}
	name := set.Arg(0)
	report, err := f.examine(name)
	if err == nil {
		report.Findings = slices.DeleteFunc(report.Findings, func(x doctor.Finding) bool { return slices.Contains(f.ignore, x.ID) })
		if f.output == "json" {
			err = report.JSON(printable.Writer(stdout))
		} else {
			err = report.Text(stdout, name)
		}
	}
	switch {
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "weir doctor: %s\n", printableLines(err.Error())) // a line for each problem of a file
		return unreadable
	case len(report.Findings) > 0:
		return hasTraps
	default:
		return healthy
	}
}

// check returns the problem of the arguments, or nil.
func (f *doctorFlags) check(args []string) error {
	switch {
	case f.output != "text" && f.output != "json":
		return fmt.Errorf("--output: %q: must be text or json", f.output)
	case len(args) == 0 && !f.kubernetes:
		return errors.New("must be followed by ENVOY: a file, -, or the URL of an admin interface")
	case !f.kubernetes && (f.serviceAccount != "" || f.secret != ""):
		return errors.New("--service-account and --certificate-secret are for --kubernetes only")
	case len(args) > 1:
		return fmt.Errorf("%q: only one ENVOY is allowed", args[1])
	}
	known := doctor.Checks()
	for _, id := range f.ignore {
		if !slices.ContainsFunc(known, func(c doctor.Check) bool { return c.ID == id }) {
			return fmt.Errorf("--ignore: %q: is not a check; docs/doctor.md lists them", id)
		}
	}
	return nil
}

// examine reads both configurations, asks the apiserver if requested, and returns the findings. Without an Envoy name
// is "".
func (f *doctorFlags) examine(name string) (doctor.Report, error) {
	options, document, err := f.epp.Read()
	if err != nil {
		return doctor.Report{}, err
	}
	var report doctor.Report
	if name != "" {
		weir, err := f.weir(options, document)
		if err != nil {
			return report, err
		}
		text, err := f.read(name)
		if err != nil {
			return report, err
		}
		envoys, err := doctor.Read(text)
		if err != nil {
			return report, fmt.Errorf("%s: %w", name, err)
		}
		for _, cluster := range f.clusters {
			if !slices.ContainsFunc(envoys, func(e *doctor.Envoy) bool { return doctor.Asks(e, cluster) }) {
				return report, fmt.Errorf("--cluster: %q: no ext_proc filter in use in %s has this cluster", cluster, name)
			}
		}
		for _, e := range envoys {
			if !isURL(name) {
				report.Notes = append(report.Notes, assign(e)...)
			}
			report.Add(doctor.Examine(e, weir))
		}
	}
	if !f.kubernetes {
		return report, nil
	}
	facts, err := f.cluster(options)
	if err != nil {
		return report, err
	}
	report.Add(doctor.ExamineCluster(facts))
	return report, nil
}

// cluster asks the apiserver.
func (f *doctorFlags) cluster(o app.Options) (doctor.Cluster, error) {
	if o.PoolName == "" && o.EndpointSelector == "" {
		return doctor.Cluster{}, errors.New("--kubernetes: needs --pool-name or --endpoint-selector, as given to epp")
	}
	connection, err := kube.Connect(o.Kubeconfig)
	if err != nil {
		return doctor.Cluster{}, err
	}
	connection.QPS = -1
	connection.Timeout = f.timeout
	asked := ask.Options{
		Namespace: o.PoolNamespace, Own: cmp.Or(o.Pod.Namespace, o.PoolNamespace), Pool: o.PoolName, Group: o.PoolGroup,
		Selector: o.EndpointSelector, Election: o.LeaderElection, Slice: o.LeaderEndpointSlice,
		ServiceAccount: f.serviceAccount, MetricsAuth: o.MetricsEndpointAuth == nil || *o.MetricsEndpointAuth,
	}
	if o.SecureServing {
		asked.Secret, asked.CertPath = f.secret, o.CertPath
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*f.timeout)
	defer cancel()
	return ask.Cluster(ctx, connection, asked)
}

// weir returns Weir's side, from the flags of epp.
func (f *doctorFlags) weir(options app.Options, document config.Document) (doctor.Weir, error) {
	w := doctor.Weir{
		Document: document, ClientCertificates: options.ClientCAFile != "", Endpoints: options.Endpoints, Clusters: f.clusters,
	}
	if f.epp.Given("grpc-port") {
		w.Port = options.GRPCPort
	}
	if f.epp.Given("secure-serving") || options.CertPath != "" || options.ClientCAFile != "" {
		w.TLS = &options.SecureServing
	}
	if len(options.Endpoints) > 0 {
		_, err := datastore.ParseEndpoints(options.Endpoints)
		var problems []error
		for _, p := range invalid.Of(err) {
			problems = append(problems, errors.New(p.Text(func(invalid.Path) string { return "--endpoints" })))
		}
		if err != nil {
			return w, errors.Join(problems...)
		}
	}
	if options.EndpointsFile != "" {
		listed, err := readEndpoints(options.EndpointsFile)
		if err != nil {
			return w, fmt.Errorf("--endpoints-file: %w", err)
		}
		w.Endpoints = []string{}
		for _, e := range listed {
			w.Endpoints = append(w.Endpoints, e.Address)
			if !e.Work.Serves() {
				w.Unnamed = append(w.Unnamed, e.Address)
			}
		}
	}
	return w, nil
}

// read returns the text of Envoy's configuration.
func (f *doctorFlags) read(name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), f.timeout)
	defer cancel()
	from, err := source(ctx, name, "/config_dump?include_eds")
	if _, _, isAddress := net.SplitHostPort(name); err != nil && isAddress == nil {
		return nil, fmt.Errorf("%w; the URL of an admin interface begins with http://", err)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	text, err := io.ReadAll(io.LimitReader(from, doctor.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// assign gives an Envoy the endpoints from its configuration's files, and returns notes about unreadable files.
func assign(e *doctor.Envoy) []string {
	var notes []string
	for _, path := range e.EndpointFiles() {
		text, err := datastore.ReadFile(path, largestEndpointsFile)
		if err == nil {
			err = e.Assign(path, text)
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("endpoints file %s: %v", path, err))
		}
	}
	return notes
}

// largestEndpointsFile is the largest size in bytes of a file of Envoy's endpoints. A list of Weir's most endpoints
// takes a fifth of it.
const largestEndpointsFile = 32 << 20
