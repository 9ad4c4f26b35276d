package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"github.com/weir-epp/weir/internal/config"
)

// text is a document in full.
func text(t *testing.T, d config.Document) string {
	t.Helper()
	yaml, err := d.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return string(yaml)
}

func TestMainExits(t *testing.T) {
	for name, test := range map[string]struct {
		args           []string
		code           int
		stdout, stderr []string
	}{
		"help": {
			[]string{"--help"},
			0,
			[]string{"--grpc-port port", "(default 9002)", "--queue-ttl duration", "(default 30s)", "--slots-per-backend=n", "mindrouter-fairshare"},
			nil,
		},
		"version":      {[]string{"--version"}, 0, []string{"epp "}, nil},
		"unknown flag": {[]string{"--grcp-port=1"}, 2, nil, []string{"unknown flag: --grcp-port (did you mean --grpc-port?)"}},
		"a value that cannot be read": {
			[]string{"--watermark-per-backend=abc"}, 2, nil, []string{`--watermark-per-backend: "abc": must be a whole number`},
		},
		"every problem of the flags": {
			[]string{
				"--pool-name=p", "--pool-group=g", "--endpoints=10.0.0.1:80", "--leader-election-lease-duration=1m30ms", "--takeover-window=2h", "--leader-election-retry-period=1h", "--grpc-port=-1", "--v=1000",
				"--debug-port=-2", "--debug-bind-address=",
				"--zap-encoder=xml", "--on-invalid-config=ignore", "--config-file=a", "--config-text=b", "rest",
			},
			2, nil,
			[]string{
				"--endpoints: --pool-name is given already", "--leader-election-lease-duration: 1m0.03s: must be whole seconds",
				"--leader-election-retry-period: 1h: must be from 100ms to half of --leader-election-lease-duration",
				"--takeover-window: 2h: must be from 0s to 1h",
				"--grpc-port: -1: must be from 0 to 65535", "--v: 1000",
				"--debug-port: -2: must be from 0 to 65535, or -1 for none", `--debug-bind-address: "": must be an address`,
				`--zap-encoder: "xml"`, `--on-invalid-config: "ignore"`, "--config-text: there is a --config-file", `"rest"`,
				"--pool-group: \"g\": must be inference.networking.k8s.io",
			},
		},
		"every problem of the configuration": {
			[]string{
				"--endpoints=192.0.2.1:1", "--config-text=flows: { order: sfcs }\nspam: 1", "--total-capacity=0",
				"--percentage-deviation-for-bounds=1.5",
			},
			1, nil,
			[]string{
				"--config-text: invalid, 4 problems:", "spam: unknown field (line 2)",
				`flows.order: "sfcs": must be one of fcfs, wspt, edf, locality (did you mean fcfs?) (line 1)`,
				"fairRequestQueue.totalCapacity: 0 (from a flag): must be at least 1",
				"requestQueueController.percentageDeviationForBounds: 1.5 (from a flag): must be above 0 and below 1",
			},
		},
		"an address of another machine": {
			[]string{"--endpoints=192.0.2.1:1", "--bind-address=192.0.2.1", "--grpc-port=0"},
			1, nil,
			[]string{`epp: --bind-address: "192.0.2.1": must be an address of this machine`},
		},
		"an address that is none": {
			[]string{"--endpoints=192.0.2.1:1", "--bind-address=127.0.0.1:80"},
			1, nil,
			[]string{`--bind-address: "127.0.0.1:80": must be an address of this machine`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := Main(test.args, &stdout, &stderr); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			for _, want := range test.stdout {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("%q is not in stdout:\n%s", want, stdout.String())
				}
			}
			for _, want := range test.stderr {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("%q is not in stderr:\n%s", want, stderr.String())
				}
			}
		})
	}
}

// Advice about the configuration is for a successful start: an error stands alone.
func TestErrorsComeWithoutAdvice(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	for what, args := range map[string][]string{
		"a configuration that is invalid": {"--endpoints=192.0.2.1:1", "--config-text=fairRequestQueue: { totalCapacity: 0 }"},
		"an address that is not here":     {"--endpoints=192.0.2.1:1", "--bind-address=192.0.2.1", "--grpc-port=0"},
		"no file with the endpoints": {
			"--endpoints-file=" + missing, "--bind-address=127.0.0.1", "--grpc-port=0", "--grpc-health-port=0", "--metrics-port=0",
			"--debug-port=0",
		},
	} {
		var stdout, stderr bytes.Buffer
		if code := Main(args, &stdout, &stderr); code != 1 {
			t.Errorf("%s: exit code %d, want 1", what, code)
		}
		if first, _, _ := strings.Cut(stderr.String(), "\n"); !strings.HasPrefix(first, "epp: --") {
			t.Errorf("%s: the first line is %s", what, first)
		}
	}
}

// The error for an unparsable value of a flag lists the accepted ones, in Weir's words and not in a library's.
func TestUnreadableValues(t *testing.T) {
	kinds := map[string]bool{}
	newFlags().set.VisitAll(func(flag *pflag.Flag) {
		kind := flag.Value.Type()
		if kind == "string" {
			return // takes everything
		}
		kinds[kind] = true
		err := newFlags().parse([]string{"--" + flag.Name + `=1.2"3`})
		if err == nil || !strings.HasPrefix(err.Error(), "--"+flag.Name+`: "1.2\"3": must be `) {
			t.Errorf("--%s: %v", flag.Name, err)
		}
	})
	for _, kind := range []string{"bool", "int", "int64", "duration", "decimal", "stringSlice"} {
		if !kinds[kind] {
			t.Errorf("no flag is a %s: take it out of here", kind)
		}
	}
}

// A flag of a field changes that field only if it is given.
func TestFieldFlags(t *testing.T) {
	f := newFlags()
	err := f.parse([]string{
		"--endpoints=192.0.2.1:1,192.0.2.2:1", "--total-capacity=2000", "--flow-capacity=200", "--queue-ttl=90s",
		"--watermark-per-backend=64", "--percentage-deviation-for-bounds=0.15", "--lower-bound-per-backend=63",
		"--upper-bound-per-backend=65", "--num-poppers=3", "--popper-wait-base=20ms", "--popper-wait-jitter-max=2ms",
		"--expiry-cleanup-interval=5s", "--min-drain=2s", "--slots-per-backend=9",
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := config.Load(config.Source{Profile: config.ProfileWFQ, Override: f.Override})
	if err != nil {
		t.Fatal(err)
	}
	want, err := config.Load(config.Source{Profile: config.ProfileWFQ, Text: []byte(`
fair_request_queue: { total_capacity: 2000, flow_capacity: 200, queue_ttl: "90s" }
request_queue_controller: { watermark_per_backend: 64, percentage_deviation_for_bounds: 0.15, lower_bound_per_backend: 63,
  upper_bound_per_backend: 65, num_poppers: 3, popper_wait_base: 20ms, popper_wait_jitter_max: 2ms, expiry_cleanup_interval: 5s,
  min_drain: 2s, slots_per_backend: 9 }
`)})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := text(t, got), text(t, want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	none := newFlags()
	if err := none.parse([]string{"--endpoints=192.0.2.1:1"}); err != nil || none.Override != nil {
		t.Errorf("without flags of keys: %v", err)
	}
}

// SIGHUP reloads for as long as the program runs, and does not end it.
func TestHangup(*testing.T) {
	signals, reloads := make(chan os.Signal, 1), make(chan struct{}, 1)
	stop := onHangup(signals, func() { reloads <- struct{}{} })
	for range 3 {
		signals <- syscall.SIGHUP
		<-reloads
	}
	stop()
}

// The default path of probes is a guess. A given path is not, even if it is the default. An empty one turns probing
// off.
func TestProbePath(t *testing.T) {
	for arguments, want := range map[string]struct {
		path    string
		guessed bool
		enabled bool
	}{
		"":                     {"/health", true, true},
		"--probe-path=/health": {"/health", false, true},
		"--probe-path=/ready":  {"/ready", false, true},
		"--probe-path=":        {"", false, false},
	} {
		f := newFlags()
		if err := f.parse(append([]string{"--endpoints=192.0.2.1:1"}, strings.Fields(arguments)...)); err != nil {
			t.Fatal(err)
		}
		if got := f.datastore().Probe; got.Path != want.path || got.Guessed != want.guessed || got.Enabled != want.enabled {
			t.Errorf("%q: %+v, want %+v", arguments, got, want)
		}
	}
}

// The first signal ends the context, the second the process.
func TestSignals(t *testing.T) {
	codes := make(chan int, 1)
	ctx, stop := onSignal(func(code int) { codes <- code })
	defer stop()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if err := self.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := <-codes; code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}
