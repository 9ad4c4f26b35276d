package observe

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/scene"
)

// patience bounds all waits of a test.
const patience = 90 * time.Second

// tenantHeader names a request's flow. Clients of a rig are a trusted hop, unlike in the shipped file.
const tenantHeader = "x-llm-d-inference-fairness-id"

// setup describes a rig. The zero value is the recommended Envoy and profile, and two engines of four slots.
type setup struct {
	name    string
	config  string // Weir's YAML, without apiVersion and kind
	engines []modelsim.Config
	flags   []string // further flags of epp
	edit    func(envoyrun.Bootstrap) error

	environment []string // of epp, beside the test's
}

// rig is an installation of Weir that Prometheus scrapes, as a job of its name.
type rig struct {
	t          *testing.T
	name       string
	with       setup
	prometheus *prometheus
	engines    []*modelsim.Server
	epp        *epp
	envoys     []*envoyrun.Envoy
	began      time.Time

	ctx context.Context // ends with the test, before the processes do
}

// epp is the real binary as a process.
type epp struct {
	*scene.EPP
	config string // file
}

// newRig returns a rig without a running part.
func newRig(t *testing.T, with setup) *rig {
	t.Helper()
	return &rig{t: t, name: with.name, with: with, prometheus: shared.get(t), ctx: t.Context()}
}

// start starts a rig, and makes Prometheus scrape it.
func start(t *testing.T, with setup) *rig {
	t.Helper()
	r := newRig(t, with)
	if with.engines == nil {
		with.engines = two(slots(4, 200*time.Millisecond))
	}
	for _, config := range with.engines {
		engine, err := modelsim.Start(config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(engine.Close)
		r.engines = append(r.engines, engine)
	}
	r.epp = startEPP(t, with, append([]string{"--endpoints=" + strings.Join(r.addresses(), ",")}, with.flags...))
	r.envoy(r.addresses(), with.edit)
	r.scraped()
	return r
}

// scraped makes Prometheus scrape the rig in its current state, and evaluate its alerts.
func (r *rig) scraped() {
	r.t.Helper()
	labels := func(job, pod string) map[string]string {
		return map[string]string{"namespace": namespace, "job": job, "pod": pod}
	}
	targets := []target{{[]string{strings.TrimPrefix(r.epp.MetricsURL, "http://")}, labels(r.name, "weir-0")}}
	for i, envoy := range r.envoys {
		targets = append(targets, target{
			[]string{strings.TrimPrefix(envoy.StatsURL(), "http://")}, labels(r.name+"/envoy", fmt.Sprintf("envoy-%d", i)),
		})
	}
	r.prometheus.scrape(r.t, r.name, targets)
	if r.began.IsZero() {
		r.began = time.Now()
		r.prometheus.evaluate(r.t, r.name, rulesOf(r.t, r.name))
	}
}

// addresses are those of the engines.
func (r *rig) addresses() []string {
	all := make([]string, len(r.engines))
	for i, engine := range r.engines {
		all[i] = engine.Address()
	}
	return all
}

// envoy starts one more Envoy before the same Weir, with these engines.
func (r *rig) envoy(engines []string, edit func(envoyrun.Bootstrap) error) *envoyrun.Envoy {
	r.t.Helper()
	// Not t.Context(): that ends before the cleanup that stops Envoy in order.
	envoy, err := envoyrun.Start(context.Background(), envoyrun.Options{
		Config: "recommended", Weir: r.epp.Address, ModelServers: engines,
		Edit: envoyrun.Edits(envoyrun.KeepHeader(tenantHeader), edit),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(envoy.Kill)
	r.envoys = append(r.envoys, envoy)
	return envoy
}

// startEPP starts the binary with a configuration and further flags.
func startEPP(t *testing.T, with setup, flags []string) *epp {
	t.Helper()
	e := &epp{config: filepath.Join(t.TempDir(), "weir.yaml")}
	e.configure(t, with.config)
	e.EPP = binaries.StartEPP(t, scene.EPPOptions{
		Shipped: true, Environment: with.environment, Flags: append([]string{"--config-file=" + e.config, "--min-drain=0s"}, flags...),
	})
	return e
}

// configure replaces the configuration.
func (e *epp) configure(t *testing.T, text string) {
	t.Helper()
	expect.Replaced(t, e.config, "apiVersion: weir.dev/v1alpha1\nkind: EndpointPickerConfig\n"+text)
}

// send sends a request to an Envoy and returns its status, 0 if there was no answer.
func (r *rig) send(ctx context.Context, envoy *envoyrun.Envoy, tenant string, header ...string) int {
	const body = `{"model":"tiny","messages":[{"role":"user","content":"hello"}],"max_tokens":4}`
	return expect.Post(ctx, envoy.URL()+"/v1/chat/completions", body, append([]string{tenantHeader, tenant}, header...)...).Status
}

// load starts clients of a tenant that send one request after the other to the rig's first Envoy, until stop is called
// or the test ends. A client without a served request sends the next one after a pause, like real clients.
func (r *rig) load(clients int, tenant string, header ...string) (stop func()) {
	return r.loadAt(r.envoys[0], clients, tenant, header...)
}

// loadAt is load at another Envoy.
func (r *rig) loadAt(envoy *envoyrun.Envoy, clients int, tenant string, header ...string) (stop func()) {
	ctx, cancel := context.WithCancel(r.ctx)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				if r.send(ctx, envoy, tenant, header...) != http.StatusOK {
					select {
					case <-ctx.Done():
					case <-time.After(100 * time.Millisecond):
					}
				}
			}
		})
	}
	stop = func() { cancel(); all.Wait() }
	r.t.Cleanup(stop)
	return stop
}
