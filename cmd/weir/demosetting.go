package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/scene"
)

// The load. The flood keeps eight times as many requests in flight as there are slots, so that without Weir a new
// request waits behind about seven batches.
const (
	demoServers  = 2
	demoSlots    = 8 // modelsim.TinyVLLM's
	noisyTenant  = "noisy"
	quietTenant  = "quiet"
	noisyWorkers = 8 * demoServers * demoSlots
	quietRate    = 5.0 // per second
)

// fairnessHeader names the tenant, and so the flow, in Go's canonical form.
const fairnessHeader = "X-Llm-D-Inference-Fairness-Id"

// demoConfig keeps the slots full and the backlog out of the engines: the watermark and both bounds equal the slots.
// The queue has room for all requests, since the demo is about waiting, not about rejection.
var demoConfig = fmt.Sprintf(`
profile: recommended
scheduling: { fallbacks: 2 }
requestQueueController: { watermarkPerBackend: %d, lowerBoundPerBackend: %[1]d, upperBoundPerBackend: %[1]d }
`, demoSlots)

// demoBodies are the bodies that all tenants but bulk send in turn.
var demoBodies = newBodies("What is a weir? Answer in one sentence, as if to a child of eight years.")

// newBodies returns requests for answers of 8 to 56 tokens, 32 on average, in random order, forced by ignore_eos. With
// equal lengths, whole batches would begin and end together, unlike real traffic.
func newBodies(prompt string) [][]byte {
	const shortest, longest = 8, 56
	bodies := make([][]byte, longest-shortest+1)
	for i, n := range rand.New(rand.NewPCG(1, 0)).Perm(len(bodies)) {
		bodies[i] = fmt.Appendf(nil, `{"model":"%s","stream":true,"max_tokens":%d,"ignore_eos":true,"messages":[`+
			`{"role":"user","content":"%s"}]}`, demoModel, shortest+n, prompt)
	}
	return bodies
}

const demoModel = "tiny"

// demoSetting has all processes of the demo.
type demoSetting struct {
	direct, weir *envoyrun.Envoy // without and with Weir
	epp          *scene.EPP

	gate        *envoyrun.Envoy // with the first-token gate, and a Weir with priorities
	priorityEPP *scene.EPP
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
	if d.epp, err = s.EPP(scene.EPPOptions{Binary: epp, Config: demoConfig, Endpoints: servers, Flags: demoFlags}); err != nil {
		return nil, err
	}
	d.weir, err = s.Envoy("envoy", tenantsNamed(envoyrun.Options{
		Config: "recommended", Weir: d.epp.Address, ModelServers: servers,
	}))
	if err != nil {
		return nil, err
	}
	priority := scene.EPPOptions{Name: "epp-priority", Binary: epp, Config: priorityConfig, Endpoints: servers, Flags: demoFlags}
	if d.priorityEPP, err = s.EPP(priority); err != nil {
		return nil, err
	}
	d.gate, err = s.Envoy("envoy-gate", tenantsNamed(envoyrun.Options{
		Config: "gate", Weir: d.priorityEPP.Address, ModelServers: servers,
	}))
	return d, err
}

// tenantsNamed returns options that keep the client's tenant header, which the shipped files remove: the demo plays a
// gateway that knows its tenants.
func tenantsNamed(options envoyrun.Options) envoyrun.Options {
	options.Edit = envoyrun.Edits(envoyrun.KeepHeader(strings.ToLower(fairnessHeader)), options.Edit)
	return options
}

const demoKeep = `
Everything keeps running, for %[4]v at most; Ctrl-C ends it.

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
curl -s %[6]s/debug/config

# what it has decided, and that it would decide the same again
curl -sf %[6]s/debug/recording > weir.recording && %[7]s replay weir.recording
`

// demoFlags are further flags of the demo's epps.
var demoFlags = []string{"--record=16"}

// keep prints commands to try, and waits.
func (d *demoSetting) keep(ctx context.Context, length time.Duration, w io.Writer) error {
	_, _ = fmt.Fprintf(w, demoKeep, d.weir.URL(), d.epp.MetricsURL, strings.ToLower(fairnessHeader), length, demoModel, d.epp.DebugURL,
		os.Args[0])
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		if cause := context.Cause(ctx); errors.Is(cause, scene.ErrUnasked) {
			return cause
		}
		return nil // Ctrl-C ends it, as announced
	}
}
