package trace

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/checkout"
	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/scene"
)

func TestMain(m *testing.M) { os.Exit(binaries.Run(m, binaries.EPP)) }

// rig is Weir behind an Envoy, with one model server of one slot.
type rig struct {
	t      *testing.T
	scene  *scene.Scene
	engine *engine
	epp    *scene.EPP
	envoy  *envoyrun.Envoy
}

// engine is a model server that records the trace headers of its requests, and delays the answer of one that asks for
// it.
type engine struct {
	*httptest.Server
	held, release chan struct{}

	mu      sync.Mutex
	parents []string
}

func newEngine() *engine {
	e := &engine{held: make(chan struct{}), release: make(chan struct{})}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodPost { // else Weir reads the engine's metrics
			e.mu.Lock()
			e.parents = append(e.parents, r.Header.Get("traceparent"))
			e.mu.Unlock()
		}
		if r.Header.Get("x-hold") != "" {
			e.held <- struct{}{}
			<-e.release
		}
		w.Header().Set("content-type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	}))
	return e
}

func (e *engine) address() string { return e.Listener.Addr().String() }

// newRig starts Weir with tracing to the collector, and an Envoy before it.
func newRig(t *testing.T, edit func(envoyrun.Bootstrap) error) *rig {
	t.Helper()
	r := &rig{t: t, scene: scene.New(context.Background(), t.TempDir()), engine: newEngine()}
	t.Cleanup(r.engine.Close)
	t.Cleanup(func() {
		if err := r.scene.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	var err error
	r.epp, err = r.scene.EPP(scene.EPPOptions{
		Binary: binaries.Path(binaries.EPP), Endpoints: []string{r.engine.address()}, Flags: []string{"--tracing"},
		Config: "profile: wfq\n" +
			"requestQueueController: { watermarkPerBackend: 1, lowerBoundPerBackend: 1, upperBoundPerBackend: 1 }\n" +
			"fairRequestQueue: { queueTTL: 300ms }\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	r.envoy = r.front("envoy", "recommended", r.engine.address(), edit)
	return r
}

// front starts an Envoy with that address as its only model server.
func (r *rig) front(name, config, server string, edit func(envoyrun.Bootstrap) error) *envoyrun.Envoy {
	r.t.Helper()
	e, err := r.scene.Envoy(name, envoyrun.Options{Config: config, Weir: r.epp.Address, ModelServers: []string{server}, Edit: edit})
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

// snippet returns the YAML block of docs/tracing.md that begins with that line.
func snippet(t *testing.T, first string) map[string]any {
	t.Helper()
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "tracing.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```yaml\n# "+first+"\n")
	text, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatalf("docs/tracing.md has no block %q", first)
	}
	var block map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &block); err != nil {
		t.Fatal(err)
	}
	return block
}

// traced returns an edit that adds the tracer of docs/tracing.md, which samples everything and sends to the collector.
// A client's trace counts, unless strangers is set: then clients are untrusted, as on the page.
func traced(t *testing.T, c *collector, strangers bool) func(envoyrun.Bootstrap) error {
	host, port, err := net.SplitHostPort(c.grpc)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return func(b envoyrun.Bootstrap) error {
		for key, value := range snippet(t, "in the HttpConnectionManager") {
			if key != "early_header_mutation_extensions" || strangers {
				b.ConnectionManager()[key] = value
			}
		}
		envoyrun.Object(b.ConnectionManager(), "tracing")["random_sampling"] = map[string]any{"value": 100}
		cluster := snippet(t, "in static_resources.clusters")
		cluster["type"] = "STATIC"
		at := envoyrun.Object(cluster, "load_assignment", "endpoints", 0, "lb_endpoints", 0, "endpoint", "address", "socket_address")
		at["address"], at["port_value"] = host, number
		resources := envoyrun.Object(b, "static_resources")
		resources["clusters"] = append(envoyrun.List(b, "static_resources", "clusters"), cluster)
		return nil
	}
}

// ask sends a request to an Envoy, and returns its status.
func (r *rig) ask(at *envoyrun.Envoy, headers ...string) int {
	r.t.Helper()
	a := expect.Post(r.t.Context(), at.URL()+"/v1/chat/completions", `{"model":"chat","messages":[{"role":"user","content":"x"}]}`, headers...)
	if a.Err != nil {
		r.t.Error(a.Err)
	}
	return a.Status
}

const (
	clientTrace  = "0af7651916cd43dd8448eb211c80319c"
	clientSpan   = "b7ad6b7169203331"
	clientParent = "00-" + clientTrace + "-" + clientSpan + "-01"
)

// named returns the only span of that name.
func named(t *testing.T, spans []span, name string) span {
	t.Helper()
	var found []span
	for _, s := range spans {
		if strings.Contains(s.name, name) {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans %s in %+v", len(found), name, spans)
	}
	return found[0]
}

// Envoy's spans and Weir's are one trace: Envoy names the span of its stream to Weir in the stream's metadata, even if
// the client has its own trace. The model server gets Envoy's span for it, and not one of Weir's.
func TestOneTraceByMetadata(t *testing.T) {
	c := startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+c.grpc)
	r := newRig(t, traced(t, c, false))
	for _, headers := range [][]string{nil, {"traceparent", clientParent}} {
		if status := r.ask(r.envoy, headers...); status != http.StatusOK {
			t.Fatal(status)
		}
	}
	waits := c.await(2, func(s *span) bool { return s.name == "weir.wait" })
	for i, wait := range waits {
		spans := c.await(5, func(s *span) bool { return s.trace == wait.trace })
		ingress, stream := named(t, spans, "ingress"), named(t, spans, "ExternalProcessor.Process egress")
		pick, upstream := named(t, spans, "weir.pick"), named(t, spans, "router model_servers egress")
		if wait.service != "weir" || ingress.service != "envoy" {
			t.Errorf("services %s and %s", wait.service, ingress.service)
		}
		if wait.parent != stream.id || pick.parent != stream.id || stream.parent != ingress.id || upstream.parent != ingress.id {
			t.Errorf("parents of %+v", spans)
		}
		if wait.start.Before(stream.start) || pick.end.After(ingress.end) {
			t.Errorf("Weir's spans are not within Envoy's: %+v", spans)
		}
		if wait.attributes["weir.outcome"] != "dispatched" || wait.attributes["weir.tier"] == "" || wait.attributes["gen_ai.request.model"] != "chat" {
			t.Errorf("attributes %v", wait.attributes)
		}
		if got := net.JoinHostPort(pick.attributes["server.address"], pick.attributes["server.port"]); got != r.engine.address() {
			t.Errorf("picked %s", got)
		}
		if got, want := r.engine.parents[i], "00-"+wait.trace+"-"+upstream.id+"-01"; got != want {
			t.Errorf("the model server got %s, want %s", got, want)
		}
	}
	if waits[1].trace != clientTrace {
		t.Errorf("the trace of the client's request is %s", waits[1].trace)
	}
}

// If only a hop before Weir's Envoy traces, Weir reads that hop's header of the request.
func TestOneTraceByHeader(t *testing.T) {
	c := startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+c.http)
	r := newRig(t, nil)
	hop := r.front("hop", "direct", r.envoy.Addr(), traced(t, c, false))
	if status := r.ask(hop); status != http.StatusOK {
		t.Fatal(status)
	}
	wait := c.await(1, func(s *span) bool { return s.name == "weir.wait" })[0]
	spans := c.await(4, func(s *span) bool { return s.trace == wait.trace })
	upstream, pick := named(t, spans, "router model_servers egress"), named(t, spans, "weir.pick")
	if wait.parent != upstream.id || pick.parent != upstream.id || upstream.service != "envoy" {
		t.Errorf("parents of %+v", spans)
	}
	if got, want := r.engine.parents[0], "00-"+wait.trace+"-"+upstream.id+"-01"; got != want {
		t.Errorf("the model server got %s, want %s: Weir has changed it", got, want)
	}
}

// A request that waits until its TTL ends has a span for that wait, with its outcome, and none for a pick.
func TestTraceOfARejection(t *testing.T) {
	c := startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+c.grpc)
	r := newRig(t, traced(t, c, false))
	served := make(chan int, 1)
	go func() { served <- r.ask(r.envoy, "x-hold", "1") }()
	<-r.engine.held
	if status := r.ask(r.envoy, "traceparent", clientParent); status != http.StatusServiceUnavailable {
		t.Errorf("status %d", status)
	}
	close(r.engine.release)
	if status := <-served; status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	spans := c.await(3, func(s *span) bool { return s.trace == clientTrace })
	wait := named(t, spans, "weir.wait")
	if wait.attributes["weir.outcome"] != "ttl-expired" || wait.attributes["error.type"] != "ttl-expired" || wait.status != "2" ||
		wait.attributes["weir.bypass"] != "false" {
		t.Errorf("got %+v", wait)
	}
	if took := wait.end.Sub(wait.start); took.Milliseconds() < 300 {
		t.Errorf("a wait of %s", took)
	}
	c.await(2, func(s *span) bool { return s.name == "weir.wait" })
	if picks := c.await(1, func(s *span) bool { return s.name == "weir.pick" }); len(picks) != 1 || picks[0].trace == clientTrace {
		t.Errorf("picks %+v", picks)
	}
}

// With the headers of clients removed, as on the page, a client decides neither its trace nor its sampling.
func TestClientsDoNotDecide(t *testing.T) {
	c := startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+c.grpc)
	r := newRig(t, traced(t, c, true))
	if status := r.ask(r.envoy, "traceparent", clientParent); status != http.StatusOK {
		t.Fatal(status)
	}
	wait := c.await(1, func(s *span) bool { return s.name == "weir.wait" })[0]
	if wait.trace == clientTrace || wait.parent == clientSpan || wait.parent == "" {
		t.Errorf("got %+v", wait)
	}
}
