package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/loadgen"
	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/scene"
)

// Who sends how much to what. The flood is eight times what the slots take, so that without Weir whoever comes waits
// behind about seven batches.
const (
	demoServers  = 2
	demoSlots    = 8 // modelsim.TinyVLLM's
	noisyTenant  = "noisy"
	quietTenant  = "quiet"
	noisyWorkers = 8 * demoServers * demoSlots
	quietRate    = 5.0 // per second
)

// fairnessHeader names the tenant, and so the flow; in Go's canonical form, as an http.Header wants it.
const fairnessHeader = "X-Llm-D-Inference-Fairness-Id"

// demoConfig keeps the slots full and the backlog out of the engines: watermark and both bounds are the slots. The noisy
// flow has room for all its workers, since the demo is about waiting and not about rejection.
var demoConfig = fmt.Sprintf(`
flows: { key: ["header:%s", "model"] }
fairRequestQueue: { totalCapacity: %d, flowCapacity: %d }
requestQueueController: { watermarkPerBackend: %d, lowerBoundPerBackend: %[4]d, upperBoundPerBackend: %[4]d }
`, fairnessHeader, 8*noisyWorkers, 2*noisyWorkers, demoSlots)

// demoBodies is what both tenants ask for, in turn: answers of 8 to 56 tokens, 32 on average, in no order. ignore_eos
// makes them that long. Were they all alike, whole batches would begin and end together, as no real traffic does.
var demoBodies = func() [][]byte {
	const shortest, longest = 8, 56
	bodies := make([][]byte, longest-shortest+1)
	for i, n := range rand.New(rand.NewPCG(1, 0)).Perm(len(bodies)) {
		bodies[i] = fmt.Appendf(nil, `{"model":"%s","stream":true,"max_tokens":%d,"ignore_eos":true,"messages":[`+
			`{"role":"user","content":"What is a weir? Answer in one sentence, as if to a child of eight years."}]}`,
			demoModel, shortest+n)
	}
	return bodies
}()

const demoModel = "tiny"

// demoSetting is what runs during the demo.
type demoSetting struct {
	direct, weir *envoyrun.Envoy // without Weir, and with it
	epp          *scene.EPP
}

func newDemoSetting(s *scene.Scene, epp string) (*demoSetting, error) {
	model := modelsim.TinyVLLM()
	model.Model = demoModel
	servers, err := s.Models(demoServers, model)
	if err != nil {
		return nil, err
	}
	d := &demoSetting{}
	if d.direct, err = s.Envoy("envoy-alone", envoyrun.Options{Config: "direct", ModelServers: servers}); err != nil {
		return nil, err
	}
	if d.epp, err = s.EPP(scene.EPPOptions{Binary: epp, Config: demoConfig, Endpoints: servers}); err != nil {
		return nil, err
	}
	d.weir, err = s.Envoy("envoy", envoyrun.Options{Config: "recommended", Weir: d.epp.Address, ModelServers: servers})
	return d, err
}

// noisyBegin is when the flood begins, from the start of a scene of that length.
func noisyBegin(length time.Duration) time.Duration { return length / 5 }

// run sends both tenants' requests to an Envoy. The figures are of the time of the flood, from when its first requests
// have filled the slots and the queue.
func (d *demoSetting) run(
	ctx context.Context, url string, options demoOptions, progress loadgen.Progress,
) (*loadgen.Report, error) {
	client, err := loadgen.NewClient(loadgen.ClientConfig{BaseURL: url})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	begin := noisyBegin(options.length)
	flood := options.length - begin
	settle := min(flood/10, time.Second)
	return loadgen.Run(ctx, client, loadgen.Plan{
		Workloads: []loadgen.Workload{
			{
				Tenant:   quietTenant,
				Arrivals: loadgen.OpenLoop{Rate: quietRate, Poisson: true, Seed: options.seed},
				Request:  demoRequest(quietTenant), Requests: 10_000, Duration: options.length,
			},
			{
				Tenant:   noisyTenant,
				Arrivals: loadgen.ClosedLoop{Workers: noisyWorkers, Stagger: settle / noisyWorkers},
				Request:  demoRequest(noisyTenant), Requests: 100_000, Begin: begin, Duration: flood,
			},
		},
		Warmup: begin + settle,
		Drain:  10 * time.Second,
	}, progress)
}

func demoRequest(tenant string) loadgen.Template {
	return loadgen.Template{
		Path:   "/v1/chat/completions",
		Header: http.Header{fairnessHeader: {tenant}, "Content-Type": {"application/json"}},
		Body:   func(i int) []byte { return demoBodies[i%len(demoBodies)] },
		Stream: true,
	}
}

const demoKeep = `
All of it still runs, for %[4]v at most; Ctrl-C ends it.

# a streamed answer, through Envoy and Weir
curl -N %[1]s/v1/chat/completions -H 'content-type: application/json' -H '%[3]s: me' \
  -d '{"model":"%[5]s","stream":true,"max_tokens":64,"messages":[{"role":"user","content":"What is a weir?"}]}'

# the same, whole, with the headers
curl -i %[1]s/v1/chat/completions -H 'content-type: application/json' -H '%[3]s: me' \
  -d '{"model":"%[5]s","max_tokens":64,"messages":[{"role":"user","content":"What is a weir?"}]}'

# a flood of 200 requests from another tenant; try the first one meanwhile
seq 200 | xargs -P 64 -I{} curl -s -o /dev/null %[1]s/v1/chat/completions -H 'content-type: application/json' \
  -H '%[3]s: noisy' -d '{"model":"%[5]s","max_tokens":64,"messages":[{"role":"user","content":"{}"}]}'

# what Weir says: its metrics, and the configuration in use
curl -s %[2]s/metrics | grep ^weir_
curl -s %[2]s/debug/config
`

// keep prints what to try, and waits.
func (d *demoSetting) keep(ctx context.Context, length time.Duration, w io.Writer) error {
	_, _ = fmt.Fprintf(w, demoKeep, d.weir.URL(), d.epp.MetricsURL, strings.ToLower(fairnessHeader), length, demoModel)
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		if cause := context.Cause(ctx); errors.Is(cause, scene.ErrUnasked) {
			return cause
		}
		return nil // Ctrl-C: as announced
	}
}
