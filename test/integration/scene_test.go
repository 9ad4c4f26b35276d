package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/child"
	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
	processes "github.com/weir-epp/weir/internal/scene"
)

func TestMain(m *testing.M) {
	if _, err := envoyrun.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(binaries.Run(m, binaries.EPP, binaries.Weir))
}

// setup describes a scene. The zero value is the recommended Envoy with Weir with the proposal's values and two fixed
// model servers of 4 slots.
type setup struct {
	envoys  []string          // shipped configurations, one Envoy each; default: recommended
	models  []modelsim.Config // default: two of Fixed(4, 50 ms)
	config  string            // Weir's YAML, without apiVersion and kind; its profile is wfq unless it names one
	flags   []string          // further flags of epp
	noEPP   bool              // for comparisons
	edit    func(envoyrun.Bootstrap) error
	strange bool                              // clients are untrusted: headers about identity and urgency are removed, as in the shipped files
	workers int                               // Envoy's worker threads; default 1
	file    bool                              // endpoints in a file that the test may change, instead of in --endpoints
	follow  time.Duration                     // Envoy follows that file too, by weir envoy endpoints --follow with this grace
	fronts  func(addresses []string) []string // the addresses in front of the model servers
	shipped bool                              // the default probing and minDrain; otherwise there is none, and epp ends when nothing runs
}

// identityHeaders are headers that tests send as a trusted hop. The shipped files remove them.
var identityHeaders = []string{
	"x-llm-d-inference-fairness-id", "x-gateway-inference-fairness-id",
	"x-llm-d-inference-objective", "x-gateway-inference-objective", "x-llm-d-slo-ttft-ms", "x-envoy-expected-rq-timeout-ms",
}

// scene is a running Envoy, Weir and its model servers.
type scene struct {
	t      *testing.T
	with   setup
	models []*modelsim.Server
	epp    *epp
	envoys []*envoyrun.Envoy
	lists  child.LogFile // the output of weir envoy endpoints, if setup.follow is set
}

// envoy is the scene's first Envoy.
func (s *scene) envoy() *envoyrun.Envoy { return s.envoys[0] }

// start starts everything and stops it when the test ends.
func start(t *testing.T, with setup) *scene {
	t.Helper()
	s := &scene{t: t}
	if with.models == nil {
		fixed := modelsim.Fixed(4, 50*time.Millisecond)
		with.models = []modelsim.Config{fixed, fixed}
	}
	if with.envoys == nil {
		with.envoys = []string{"recommended"}
	}
	s.with = with
	addresses := make([]string, len(with.models))
	for i, cfg := range with.models {
		m, err := modelsim.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		s.models = append(s.models, m)
		addresses[i] = m.Address()
	}
	if with.fronts != nil {
		addresses = with.fronts(addresses)
	}
	if !with.noEPP {
		s.epp = startEPP(t, with, addresses)
	}
	var listed string
	if with.follow > 0 {
		listed = s.followEndpoints(with.follow)
	}
	edit := envoyrun.Edits(trustIssuer, with.edit)
	if !with.strange {
		edit = envoyrun.Edits(envoyrun.KeepHeader(identityHeaders...), edit)
	}
	for _, name := range with.envoys {
		opts := envoyrun.Options{Config: name, ModelServers: addresses, EndpointsFile: listed, Edit: edit, Concurrency: with.workers}
		if s.epp != nil {
			opts.Weir = s.epp.Address
		}
		// Not t.Context(): that ends before the cleanup that stops Envoy in order.
		e, err := envoyrun.Start(context.Background(), opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if t.Failed() {
				log, _ := os.ReadFile(e.Log())
				t.Logf("end of Envoy's log:\n%s", child.Tail(string(log), 20))
			}
			e.Kill()
		})
		s.envoys = append(s.envoys, e)
	}
	return s
}

// run runs part of the test as a subtest, on the same scene.
func (s *scene) run(name string, part func()) {
	s.t.Run(name, func(t *testing.T) {
		whole := s.t
		s.t, s.epp.t = t, t
		defer func() { s.t, s.epp.t = whole, whole }()
		part()
	})
}

// epp listens at eppHost, and nothing else opens ports there: a restarted one gets its port again.
const eppHost = "127.0.0.9"

// epp is the real binary as a process.
type epp struct {
	*processes.EPP

	t         *testing.T
	endpoints string // the file, if setup.file is set
}

func startEPP(t *testing.T, with setup, addresses []string) *epp {
	t.Helper()
	e := &epp{t: t}
	options := processes.EPPOptions{Host: eppHost, Shipped: true}
	if !with.shipped {
		options.Flags = append(options.Flags, "--min-drain=0s", "--probe-path=")
	}
	if with.config != "" {
		options.Config = profiled(with.config)
	} else if !slices.ContainsFunc(with.flags, func(f string) bool { return strings.HasPrefix(f, "--config-") }) {
		options.Flags = append(options.Flags, "--profile=wfq")
	}
	if with.file {
		e.endpoints = filepath.Join(t.TempDir(), "endpoints.yaml")
		e.setEndpoints(addresses...)
		options.Flags = append(options.Flags, "--endpoints-file="+e.endpoints)
	} else {
		options.Endpoints = addresses
	}
	options.Flags = append(options.Flags, with.flags...)
	e.EPP = binaries.StartEPP(t, options)
	return e
}

// whole is a configuration in YAML with its version and kind, and with the profile wfq if it names none.
func whole(text string) string {
	return "apiVersion: weir.dev/v1alpha1\nkind: EndpointPickerConfig\n" + profiled(text)
}

func profiled(text string) string {
	if namesProfile.MatchString(text) {
		return text
	}
	return "profile: wfq\n" + text
}

var namesProfile = regexp.MustCompile(`(?m)^profile:`)

// setEndpoints replaces the endpoints file with an atomic rename.
func (e *epp) setEndpoints(addresses ...string) {
	e.t.Helper()
	text := "endpoints:\n"
	if len(addresses) == 0 {
		text = "endpoints: []\n"
	}
	for _, a := range addresses {
		text += fmt.Sprintf("- { address: %q }\n", a)
	}
	e.writeEndpoints(text)
}

// writeEndpoints replaces the text of the endpoints file in the same way.
func (e *epp) writeEndpoints(text string) {
	e.t.Helper()
	expect.Replaced(e.t, e.endpoints, text)
}

// signal sends a signal to the process.
func (e *epp) signal(s syscall.Signal) {
	e.t.Helper()
	if err := e.Signal(s); err != nil {
		e.t.Fatal(err)
	}
}

// exitCode waits for the process to end.
func (e *epp) exitCode(within time.Duration) int {
	e.t.Helper()
	select {
	case <-e.Done():
	case <-time.After(within):
		e.t.Fatalf("epp still runs after %v", within)
	}
	return e.State().ExitCode()
}
