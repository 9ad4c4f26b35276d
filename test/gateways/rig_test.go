package gateways

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/scene"
)

// patience is the longest wait for an immediate event on an idle machine.
const patience = 2 * time.Minute

// path is that of all requests.
const path = "/v1/chat/completions"

// engine is a model server whose requests wait for the test.
type engine struct {
	*httptest.Server
	arrived chan *held // each request, in order
}

// held is a request at an engine.
type held struct {
	header http.Header
	body   string
	gone   <-chan struct{} // closed when Envoy has dropped the request
	begin  chan struct{}   // closed by the test: the first part of the answer is sent, with its headers unless it is streamed
	end    chan struct{}   // closed by the test: the answer ends
}

// answered answers the request.
func (h *held) answered() {
	close(h.begin)
	close(h.end)
}

func newEngine(t *testing.T) *engine {
	e := &engine{arrived: make(chan *held, 100)}
	e.Server = httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(func() {
		e.CloseClientConnections()
		e.Close()
	})
	return e
}

func (e *engine) address() string { return e.Listener.Addr().String() }

func (e *engine) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != path { // epp's own requests
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	h := &held{header: r.Header, body: string(body), gone: r.Context().Done(), begin: make(chan struct{}), end: make(chan struct{})}
	e.arrived <- h
	parts := []string{`{"id":"x","object":"chat.completion","model":"m",`, `"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`}
	w.Header().Set("content-type", "application/json")
	if strings.Contains(h.body, `"stream":true`) {
		w.Header().Set("content-type", "text/event-stream")
		_ = http.NewResponseController(w).Flush() // as engines do, whose requests may still wait
		parts = []string{"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n", "data: [DONE]\n\n"}
	}
	for i, wait := range []chan struct{}{h.begin, h.end} {
		select {
		case <-wait:
		case <-h.gone:
			return
		}
		_, _ = io.WriteString(w, parts[i])
		_ = http.NewResponseController(w).Flush()
	}
}

// rig is an Envoy with Envoy Gateway's configuration, with epp and two engines.
type rig struct {
	t       *testing.T
	engines []*engine
	epp     *scene.EPP
	envoy   *envoyrun.Envoy
	output  []byte // of egctl
}

// options change a rig.
type options struct {
	values string                                   // of the chart, on top of base; TLS is off unless secure
	secure []string                                 // further flags of epp, which serves over TLS
	others []map[string]any                         // more objects of the cluster
	edit   func(t *testing.T, b envoyrun.Bootstrap) // changes egctl's output
}

func newRig(t *testing.T, o options) *rig {
	t.Helper()
	r := &rig{t: t}
	s := scene.New(context.Background(), t.TempDir())
	t.Cleanup(func() { _ = s.Close() })
	var addresses []string
	for range 2 {
		e := newEngine(t)
		r.engines, addresses = append(r.engines, e), append(addresses, e.address())
	}
	values := []string{base, o.values}
	flags := append([]string{"--secure-serving=true"}, o.secure...)
	if o.secure == nil {
		values, flags = append(values, "tls: { enabled: false }\n"), nil
	}
	all := render(t, values...)
	var err error
	r.epp, err = s.EPP(scene.EPPOptions{
		Binary: binaries.Path(binaries.EPP), Endpoints: addresses, Flags: flags, Config: shortened(t, weirYAML(t, all)),
	})
	if err != nil {
		t.Fatal(err)
	}
	r.output = translate(t, all, o.others...)
	r.envoy = r.start(s, bootstrap(t, r.output), o.edit)
	return r
}

// weirYAML returns Weir's configuration out of the chart's ConfigMap.
func weirYAML(t *testing.T, all []map[string]any) string {
	t.Helper()
	return fmt.Sprint(envoyrun.Object(find(t, all, "ConfigMap", fullname), "data")["weir.yaml"])
}

// shortened returns it in a scene's form.
func shortened(t *testing.T, text string) string {
	t.Helper()
	var document map[string]any
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	delete(document, "apiVersion")
	delete(document, "kind")
	short, err := yaml.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(short)
}

// start starts Envoy. Its clusters keep every field of egctl's, except for the addresses of their endpoints.
func (r *rig) start(s *scene.Scene, made envoyrun.Bootstrap, edit func(*testing.T, envoyrun.Bootstrap)) *envoyrun.Envoy {
	r.t.Helper()
	text, err := json.Marshal(made)
	if err != nil {
		r.t.Fatal(err)
	}
	file := filepath.Join(s.Dir(), "translated.json")
	// envoyrun gives addresses to clusters by these names.
	renamed := strings.NewReplacer(`"`+weirCluster+`"`, `"`+envoyrun.WeirCluster+`"`, `"`+modelsCluster+`"`, `"`+envoyrun.ModelServersCluster+`"`).Replace(string(text))
	if err := os.WriteFile(file, []byte(renamed), 0o600); err != nil {
		r.t.Fatal(err)
	}
	kept, err := envoyrun.Load(file)
	if err != nil {
		r.t.Fatal(err)
	}
	envoy, err := s.Envoy("envoy", envoyrun.Options{
		Config: file, Weir: r.epp.Address, ModelServers: []string{r.engines[0].address(), r.engines[1].address()},
		Edit: func(b envoyrun.Bootstrap) error {
			resources := envoyrun.Object(b, "static_resources")
			resources["clusters"] = envoyrun.List(kept, "static_resources", "clusters")
			resolve(b.Cluster(envoyrun.WeirCluster), r.epp.Address)
			resolve(b.Cluster(envoyrun.ModelServersCluster), r.engines[0].address(), r.engines[1].address())
			if edit != nil {
				edit(r.t, b)
			}
			return nil
		},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return envoy
}

// resolve replaces the one endpoint of a cluster, the address or the name of a Service, by those of its pods.
func resolve(cluster map[string]any, addresses ...string) {
	locality := envoyrun.Object(cluster, "load_assignment", "endpoints", 0)
	one := envoyrun.Object(locality, "lb_endpoints", 0)
	var all []any
	for _, address := range addresses {
		host, port, _ := strings.Cut(address, ":")
		endpoint := maps.Clone(one)
		endpoint["endpoint"] = map[string]any{"address": map[string]any{
			"socket_address": map[string]any{"address": host, "port_value": json.Number(port)},
		}}
		all = append(all, endpoint)
	}
	locality["lb_endpoints"] = all
}

// ask is a request of a client.
type ask struct {
	method, body string
	header       []string
}

// chat returns a request for a chat completion.
func chat(header ...string) ask {
	return ask{http.MethodPost, `{"model":"m","messages":[{"role":"user","content":"hello"}]}`, header}
}

// stream returns one for a streamed answer.
func stream(header ...string) ask {
	return ask{http.MethodPost, `{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}`, header}
}

// send sends a request, and returns the channel of its answer.
func (r *rig) send(a ask) <-chan expect.Answer {
	answers := make(chan expect.Answer, 1)
	go func() {
		header := append([]string{"content-type", "application/json"}, a.header...)
		answers <- expect.Send(r.t.Context(), a.method, r.envoy.URL()+path, a.body, header...)
	}()
	return answers
}

// arrival returns the next request at an engine, and the engine.
func (r *rig) arrival() (*held, *engine) {
	r.t.Helper()
	select {
	case h := <-r.engines[0].arrived:
		return h, r.engines[0]
	case h := <-r.engines[1].arrived:
		return h, r.engines[1]
	case <-time.After(patience):
		r.t.Fatal("no request comes to an engine")
		return nil, nil
	}
}

// none checks that the test knows all requests at the engines.
func (r *rig) none() {
	r.t.Helper()
	if n := len(r.engines[0].arrived) + len(r.engines[1].arrived); n != 0 {
		r.t.Errorf("%d requests more are at the engines", n)
	}
}

func served(t *testing.T, what string, answers <-chan expect.Answer) expect.Answer {
	t.Helper()
	select {
	case got := <-answers:
		if err := got.Served(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return got
	case <-time.After(patience):
		t.Fatalf("%s is not answered", what)
		return expect.Answer{}
	}
}

func (r *rig) metrics() string {
	r.t.Helper()
	return expect.Page(r.t, r.epp.MetricsURL+"/metrics")
}

// value returns a metric's value, as [expect.Metrics.Sum] has it.
func (r *rig) value(name string, labels ...string) float64 {
	r.t.Helper()
	metrics, err := expect.Scrape(r.epp.MetricsURL + "/metrics")
	if err != nil {
		r.t.Fatal(err)
	}
	return metrics.Sum(name, labels...)
}

// await waits until a metric has a value.
func (r *rig) await(want float64, name string) {
	r.t.Helper()
	expect.Eventually(r.t, name, func() error {
		if got := r.value(name); got != want {
			return fmt.Errorf("is %v, want %v", got, want)
		}
		return nil
	})
}

// settled waits until no request waits or runs.
func (r *rig) settled() {
	r.t.Helper()
	r.await(0, "weir_queue_length")
	r.await(0, "weir_stock_level")
	r.await(0, "weir_extproc_streams")
}
