package app

import (
	"bytes"
	"errors"
	"io"
	"net"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/pkg/tracing"
)

// silentCollector accepts connections, and never answers.
func silentCollector(t *testing.T) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var open []net.Conn
		for {
			conn, err := l.Accept()
			if err != nil {
				for _, c := range open {
					_ = c.Close()
				}
				return
			}
			open = append(open, conn)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}

// mute is a gRPC collector that accepts a request, and never answers it.
func mute(t *testing.T) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		<-stream.Context().Done()
		return stream.Context().Err()
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-done
	})
	return "http://" + l.Addr().String()
}

// manyDropped checks that most of 40 spans were dropped. At most 6 have room.
var manyDropped = regexp.MustCompile(`weir_tracing_spans_dropped_total\{reason="queue-full"\} 3[4-9]\n`)

// serve sends a request and waits until its stream has ended.
func (r *running) serve() {
	r.t.Helper()
	stream := r.request(r.t.Context())
	granted(r.t, stream)
	if err := stream.CloseSend(); err != nil {
		r.t.Fatal(err)
	}
	for {
		if _, err := stream.Recv(); err != nil {
			if !errors.Is(err, io.EOF) {
				r.t.Fatal(err)
			}
			return
		}
	}
}

// A collector that hangs delays no request. The queue drops excess spans, and the end of the program does not wait for
// the collector.
func TestHungCollector(t *testing.T) {
	for name, url := range map[string]string{"silent": silentCollector(t), "mute": mute(t)} {
		t.Run(name, func(t *testing.T) {
			o := testOptions()
			cfg := tracing.DefaultConfig()
			cfg.Endpoint, cfg.QueueSize, cfg.BatchSize, cfg.Delay = url, 4, 2, time.Millisecond
			cfg.Timeout, cfg.ExportTimeout = time.Hour, time.Hour
			o.Tracing = &cfg
			r := start(t, o)
			for range 20 {
				r.serve()
			}
			expect.True(t, "spans are dropped", func() bool {
				_, page := r.get("/metrics")
				return manyDropped.MatchString(page)
			})
			r.stop()
			r.waitEnd()
		})
	}
}

// An unreachable collector fails exports, which are counted.
func TestDeadCollector(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	o := testOptions()
	cfg := tracing.DefaultConfig()
	cfg.Endpoint, cfg.BatchSize, cfg.ExportTimeout = "http://"+l.Addr().String(), 2, 100*time.Millisecond
	o.Tracing = &cfg
	r := start(t, o)
	r.serve()
	expect.True(t, "the export fails", func() bool {
		_, page := r.get("/metrics")
		return strings.Contains(page, "weir_tracing_export_failures_total 1\n") &&
			strings.Contains(page, `weir_tracing_spans_dropped_total{reason="export-failed"} 2`)
	})
}

// Without --tracing there is no exporter, no goroutine of one, and no metric.
func TestTracingIsOff(t *testing.T) {
	r := start(t, testOptions())
	r.serve()
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if bytes.Contains(stacks, []byte("otlp")) || bytes.Contains(stacks, []byte("pkg/tracing.")) {
		t.Errorf("there is a goroutine:\n%s", stacks)
	}
	if _, page := r.get("/metrics"); strings.Contains(page, "weir_tracing") {
		t.Error("there are metrics")
	} else if !strings.Contains(page, "weir_extproc_panics_total 0\n") {
		t.Error("a stream has panicked")
	}
}

// Only --tracing reads the variables of OpenTelemetry.
func TestTracingFlag(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317")
	for argument, want := range map[string]bool{"--tracing": true, "--tracing=true": true, "--tracing=false": false, "--v=0": false} {
		f := newFlags()
		if err := f.parse([]string{"--endpoints=192.0.2.1:8000", argument}); err != nil {
			t.Fatal(err)
		}
		if got := f.Tracing != nil && f.Tracing.Endpoint == "http://collector:4317"; got != want {
			t.Errorf("%s: %+v", argument, f.Tracing)
		}
	}
	t.Setenv("OTEL_TRACES_SAMPLER", "often")
	if err := newFlags().parse([]string{"--endpoints=192.0.2.1:8000"}); err != nil {
		t.Errorf("without --tracing: %v", err)
	}
	var out, problems bytes.Buffer
	if code := Main([]string{"--endpoints=192.0.2.1:8000", "--tracing"}, &out, &problems); code != 2 ||
		!strings.Contains(problems.String(), `OTEL_TRACES_SAMPLER: "often": must be one of always_on`) {
		t.Errorf("code %d: %s", code, problems.String())
	}
	t.Setenv("OTEL_TRACES_SAMPLER", "")
	t.Setenv("OTEL_SDK_DISABLED", "true")
	problems.Reset()
	if code := Main([]string{"--endpoints=192.0.2.1:8000", "--tracing", "--validate"}, &out, &problems); code != 0 ||
		!strings.Contains(problems.String(), "--tracing has no effect") {
		t.Errorf("code %d: %s", code, problems.String())
	}
}
