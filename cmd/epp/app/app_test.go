package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// One request from beginning to end, over TLS with the self-signed certificate: headers in, destination out, one
// outcome.
func TestServesOverTLS(t *testing.T) {
	o := testOptions()
	o.SecureServing = true
	o.PortsFile = filepath.Join(t.TempDir(), "ports.json")
	r := start(t, o)
	stream := r.request(t.Context())
	if got := granted(t, stream); got != "192.0.2.1:8000" {
		t.Errorf("destination %q", got)
	}
	if got := r.pool.controller.State().Stock; got != 1 {
		t.Errorf("stock %d while the answer is on its way, want 1", got)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	expect.True(t, "the stock is back", func() bool { return r.pool.controller.State().Stock == 0 })

	var text []byte
	expect.True(t, "the ports are written", func() (ok bool) {
		var err error
		text, err = os.ReadFile(o.PortsFile)
		return err == nil
	})
	var ports Ports
	if err := json.Unmarshal(text, &ports); err != nil || ports != r.Ports() || ports.GRPC == 0 {
		t.Errorf("ports file %s, %v; want %+v", text, err, r.Ports())
	}
}

// The metrics port has metrics of every part and health, and no names of flows. The debug port has the status page, the
// configuration in use and the waiters, and profiles only on request.
func TestMetricsAndDebugServers(t *testing.T) {
	o := testOptions()
	o.ConfigText = "fairRequestQueue: { queueTTL: 7s }"
	r := start(t, o)
	_, metrics := r.get("/metrics")
	for _, want := range []string{
		"weir_config_valid 1", "weir_build_info{", "go_goroutines", "process_cpu_seconds_total",
		`weir_requests_total{outcome="dispatched"} 0`, "weir_ready_backends 1", "weir_upper_bound 2.2",
		`weir_queue_length{model="other",target_model="other"} 0`, `weir_stock_level{model="other",target_model="other"} 0`,
		`weir_endpoint_in_flight{endpoint="192.0.2.1:8000"} 0`, `weir_endpoint_bound{endpoint="192.0.2.1:8000"} 2.2`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%q is not in /metrics", want)
		}
	}
	for path, want := range map[string]struct{ metrics, debug int }{
		"/metrics": {200, 404}, "/healthz": {200, 404}, "/readyz": {200, 404}, "/statusz": {404, 200},
		"/debug/config": {404, 200}, "/debug/flows": {404, 200}, "/debug/flows?limit=0": {404, 400}, "/debug/statistics": {404, 200},
		"/debug/statistics?limit=10001": {404, 400},
		"/debug/pprof/":                 {404, 404}, "/": {404, 200},
	} {
		if status, _ := r.get(path); status != want.metrics {
			t.Errorf("the metrics port: %s: %d, want %d", path, status, want.metrics)
		}
		if status, _ := r.debug(path); status != want.debug {
			t.Errorf("the debug port: %s: %d, want %d", path, status, want.debug)
		}
	}
	_, text := r.debug("/debug/config")
	var document struct {
		FairRequestQueue struct {
			QueueTTL string `yaml:"queueTTL"`
		} `yaml:"fairRequestQueue"`
	}
	if err := yaml.Unmarshal([]byte(text), &document); err != nil || document.FairRequestQueue.QueueTTL != "7s" {
		t.Errorf("/debug/config: %v\n%s", err, text)
	}

	_, text = r.debug("/statusz")
	for _, want := range []string{
		"--config-text, in use for", "profile        wfq", "queued    0 of 1000  in 0 flows", "critical   0", "endpoint        ready  in flight  elsewhere  lower bound  upper bound  tokens  their bound  running  waiting  scraped  adapters  circuit  oldest  served elsewhere", "192.0.2.1:8000  true   0          0          1.8          2.2          -       -            -        -        never    -         closed   0s      0",
		"cost   requests  shared by wfq", "usage  auto      not needed", "tier       queued  in flight  displaced  promoted  gap  bound", "critical   0       0          0          0         -    -",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in /statusz:\n%s", want, text)
		}
	}

	o.Pprof = true
	profiled := start(t, o)
	if status, _ := profiled.debug("/debug/pprof/"); status != 200 {
		t.Errorf("/debug/pprof/: %d with --enable-pprof", status)
	}
	if status, _ := profiled.get("/debug/pprof/"); status != 404 {
		t.Errorf("the metrics port: /debug/pprof/: %d with --enable-pprof", status)
	}
}

// By default only this machine reaches the debug port, even if all other ports are open to everybody.
func TestDebugPortIsOnLoopback(t *testing.T) {
	o := testOptions()
	o.BindAddress = ""
	host := func(l net.Listener) net.IP { return l.Addr().(*net.TCPAddr).IP }
	r := start(t, o)
	if at := host(r.listeners.debug); !at.IsLoopback() {
		t.Errorf("the debug port listens at %s", at)
	}
	if at := host(r.listeners.metrics); !at.IsUnspecified() {
		t.Errorf("the metrics port listens at %s", at)
	}
	o.DebugBindAddress = "0.0.0.0"
	if at := host(start(t, o).listeners.debug); !at.IsUnspecified() {
		t.Errorf("the debug port listens at %s", at)
	}
	o.DebugPort = DebugOff
	if off := start(t, o); off.listeners.debug != nil || off.Ports().Debug != 0 {
		t.Errorf("the debug port is %d, want none", off.Ports().Debug)
	}
}

// /debug/flows has the waiting flows, with the time and reason of each wait.
func TestFlowsPage(t *testing.T) {
	o := testOptions()
	o.ConfigText = "requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }\nflows: { weights: { chat/chat: 2 } }"
	r := start(t, o)
	granted(t, r.request(t.Context()))
	r.request(t.Context())
	expect.True(t, "the second one waits", func() bool { return r.pool.controller.State().Queued == 1 })
	_, text := r.debug("/debug/flows?limit=5")
	var page struct {
		Queued, Flows, Stock int
		Waiting              []flowcontrol.FlowState
	}
	if err := json.Unmarshal([]byte(text), &page); err != nil || page.Queued != 1 || page.Flows != 1 || page.Stock != 1 ||
		len(page.Waiting) != 1 {
		t.Fatalf("%v\n%s", err, text)
	}
	want := flowcontrol.FlowState{
		Flow: "chat/chat", Tier: "critical", Waiting: 1, WaitingCost: 1, InFlight: 1, Since: page.Waiting[0].Since, Weight: 2,
		Entitled: 1, Why: "stock",
	}
	if page.Waiting[0] != want || want.Since <= 0 {
		t.Errorf("got %+v, want %+v", page.Waiting[0], want)
	}
}

// Endpoints come and go with their file: a request that waits for the first one is granted when it comes.
func TestEndpointsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "endpoints.yaml")
	write := func(text string) { t.Helper(); expect.Replaced(t, file, text) }
	write("endpoints: []\n")
	o := testOptions()
	o.Endpoints, o.EndpointsFile = nil, file
	r := start(t, o)
	stream := r.request(t.Context())
	expect.True(t, "the request waits", func() bool { return r.pool.controller.State().Queued == 1 })
	write("endpoints: [ { address: \"192.0.2.7:80\", slots: 3 } ]\n")
	if got := granted(t, stream); got != "192.0.2.7:80" {
		t.Errorf("destination %q", got)
	}
	// A backend that reports its slots gets exactly as many requests.
	if s := r.pool.controller.State(); s.LowerBound != 3 || s.UpperBound != 3 || s.Ready != 1 {
		t.Errorf("bounds %v to %v of %d ready, want 3 to 3 of 1", s.LowerBound, s.UpperBound, s.Ready)
	}
	write("endpoints: broken\n")
	expect.True(t, "the broken file is reported", func() bool {
		_, metrics := r.get("/metrics")
		return strings.Contains(metrics, "weir_endpoints_file_valid 0")
	})
	if got := r.pool.controller.State().Ready; got != 1 {
		t.Errorf("%d ready with a broken file, want the last good state", got)
	}
}

// A wiring that fails leaves nothing open.
func TestNewRollsBack(t *testing.T) {
	const alone = "127.0.0.2" // an address of this test alone
	taken, err := net.Listen("tcp", alone+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // of the test
	free := freePort(t, alone)
	o := testOptions()
	o.BindAddress = alone
	o.GRPCPort, o.HealthPort = free, taken.Addr().(*net.TCPAddr).Port
	if _, err := New(o); problemsIn(err,
		fmt.Sprintf("--grpc-health-port: %d: must be free", o.HealthPort), "address already in use") != nil {
		t.Error(err)
	}
	o.HealthPort, o.EndpointsFile, o.Endpoints = 0, filepath.Join(t.TempDir(), "none.yaml"), nil
	if _, err := New(o); problemsIn(err, "none.yaml") != nil {
		t.Error(err)
	}
	again, err := net.Listen("tcp", fmt.Sprintf("%s:%d", alone, free))
	if err != nil {
		t.Fatalf("the gRPC port was not given back: %v", err)
	}
	_ = again.Close()
}

// If the system names a reason for a failed listen, the error has it. Otherwise the error has the flag and the system's
// message only.
func TestListenProblem(t *testing.T) {
	system := func(err error) error { return &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", err)} }
	for _, test := range []struct {
		err  error
		want string
	}{
		{system(syscall.EADDRINUSE), "--metrics-port: 90: must be free: "},
		{system(syscall.EACCES), "--metrics-port: 90: must be a port that this user may open: "},
		{system(syscall.EADDRNOTAVAIL), `--bind-address: "zz": must be an address of this machine, without brackets or a port: `},
		{&net.OpError{Op: "listen", Err: &net.DNSError{Err: "no such host", Name: "zz"}}, `--bind-address: "zz": must be an address of`},
		{&net.OpError{Op: "listen", Err: &net.AddrError{Err: "missing port", Addr: "[::1]"}}, `--bind-address: "zz": must be an address of`},
		{system(syscall.ENOMEM), "--metrics-port: 90: listen: bind: "},
	} {
		err := listenProblem(test.err, "bind-address", "zz", "metrics-port", 90)
		if !strings.HasPrefix(err.Error(), test.want) || !errors.Is(err, test.err) {
			t.Errorf("%v\nwant %s", err, test.want)
		}
	}
}

func freePort(t *testing.T, host string) int {
	t.Helper()
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // of the test
	return l.Addr().(*net.TCPAddr).Port
}

func TestCounted(t *testing.T) {
	for n, want := range []string{"0 flows", "1 flow", "2 flows"} {
		if got := counted(n, "flow"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
