package browser

import (
	"context"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/binaries"
	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/expect"
	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/scene"
	"github.com/weir-epp/weir/internal/status"
)

func TestMain(m *testing.M) { os.Exit(binaries.Run(m, binaries.EPP)) }

// hostile is the name of a tenant that runs a script where names are not escaped.
const hostile = `<img src=x onerror="document.title='run'">`

// configuration has three tiers, and engines with four places. Each flow may have 8 requests waiting.
const configuration = `
profile: recommended
cost: requests
flows: { discipline: wfq, key: ["header:x-tenant"], weights: { search: 3 } }
criticality: { objectiveHeaders: [x-objective] }
objectives: [{ name: live, priority: 1 }, { name: batch, priority: -1 }]
fairRequestQueue: { flowCapacity: 8 }
requestQueueController: { watermarkPerBackend: 4, lowerBoundPerBackend: 4, upperBoundPerBackend: 4 }
`

// rig is a Weir that tenants share: three engines that work and one that is down.
type rig struct {
	t     *testing.T
	epp   *scene.EPP
	envoy *envoyrun.Envoy
}

func newRig(t *testing.T) *rig {
	t.Helper()
	s := scene.New(context.Background(), t.TempDir())
	t.Cleanup(func() { _ = s.Close() })
	models, err := s.Models(3, modelsim.Fixed(4, 300*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	models = append(models, "127.0.0.1:1") // without a listener
	r := &rig{t: t}
	if r.epp, err = s.EPP(scene.EPPOptions{
		Binary: binaries.Path(binaries.EPP), Endpoints: models, Config: configuration,
		Flags: []string{"--probe-path=/health", "--probe-interval=200ms"},
	}); err != nil {
		t.Fatal(err)
	}
	if r.envoy, err = s.Envoy("envoy", envoyrun.Options{Config: "recommended", Weir: r.epp.Address, ModelServers: models}); err != nil {
		t.Fatal(err)
	}
	return r
}

// load keeps so many requests of a tenant in progress until the test ends.
func (r *rig) load(tenant, objective string, workers int) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				r.ask(ctx, tenant, objective)
			}
		})
	}
	r.t.Cleanup(func() { cancel(); all.Wait() })
}

// ask sends one request. After a rejection it waits as long as a client would.
func (r *rig) ask(ctx context.Context, tenant, objective string) {
	a := expect.Post(ctx, r.envoy.URL()+"/v1/chat/completions",
		`{"model":"tiny","max_tokens":4,"messages":[{"role":"user","content":"hello"}]}`, "x-tenant", tenant, "x-objective", objective)
	if a.Err == nil && a.Status != http.StatusOK {
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// share loads the rig with four tenants, and waits until a document shows it: with shares, rates and rejections.
func (r *rig) share() {
	r.t.Helper()
	r.load("search", "live", 8)
	r.load("assistant", "", 10)
	r.load(hostile, "", 4)
	r.load("crawler", "batch", 14)
	for until := time.Now().Add(soon); ; time.Sleep(200 * time.Millisecond) {
		d := r.document()
		attained := 0
		for i := range d.Flows {
			if d.Flows[i].Attained != nil {
				attained++
			}
		}
		if d.WindowSeconds >= 5 && attained >= 4 && len(d.Rejections) > 0 && d.Pool.ReadyEngines == 3 && d.Pool.Waiting > 0 {
			return
		}
		if time.Now().After(until) {
			r.t.Fatalf("the load does not show within %s: %+v", soon, d)
		}
	}
}

// document reads the status document.
func (r *rig) document() *status.Document {
	r.t.Helper()
	q := status.DefaultQuery()
	answers := status.Fetch(context.Background(), []string{strings.TrimPrefix(r.epp.DebugURL, "http://")}, &q)
	if answers[0].Err != nil {
		r.t.Fatal(answers[0].Err)
	}
	return answers[0].Document
}
