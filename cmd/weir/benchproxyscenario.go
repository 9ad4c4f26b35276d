package main

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/loadgen"
	"github.com/weir-epp/weir/internal/modelsim"
	"github.com/weir-epp/weir/internal/scene"
)

// The scenarios' names.
const (
	proxyAlone      = "Envoy alone"
	proxyUnseen     = "no-op, headers only, without usage"
	proxyNoop       = "no-op, headers only"
	proxyHeaders    = "Weir, headers only"
	proxyOff        = "Weir, headers only, no recording"
	proxyNoopSmall  = "no-op, 1 KB body"
	proxySmall      = "Weir, 1 KB body"
	proxyNoopLarge  = "no-op, 64 KB body"
	proxyLarge      = "Weir, 64 KB body"
	proxyNoopStream = "no-op, 200 chunks"
	proxyStream     = "Weir, 200 chunks"

	proxyHeadersBare = "Weir, headers only, no buffer filter"
	proxyLargeBare   = "Weir, 64 KB body, no buffer filter"
)

// The figures' names.
const (
	figureRate      = "req/s"
	figureP50       = "p50 ms"
	figureP99       = "p99 ms"
	figureEnvoy     = "Envoy µs/req"
	figureProcessor = "processor µs/req"
	figureBoth      = "Envoy + processor µs/req"
	figureModels    = "models µs/req"
	figureClient    = "client µs/req"
	figureChunk     = "processor µs/chunk"
)

const (
	modelHeader = "x-gateway-model-name"
	proxyPath   = "/v1/chat/completions"
	smallBody   = 1 << 10 // bytes
	largeBody   = 64 << 10
)

// proxyHeader returns the headers of the requests, with or without the model in a trusted header.
func proxyHeader(model bool) http.Header {
	header := http.Header{fairnessHeader: {"tenant-a"}, "Content-Type": {"application/json"}}
	if model {
		header[http.CanonicalHeaderKey(modelHeader)] = []string{modelsim.Instant().Model}
	}
	return header
}

// proxyBody returns a chat completion of the given size.
func proxyBody(bytes int) string {
	begin := `{"model":"` + modelsim.Instant().Model + `","max_tokens":16,"messages":[{"role":"user","content":"`
	const end = `"}]}`
	return begin + strings.Repeat("weir ", bytes/5+1)[:bytes-len(begin)-len(end)] + end
}

// proxyRequest returns a chat completion with a body of the given size.
func proxyRequest(model bool, bytes int) loadgen.Template {
	return loadgen.Template{Path: proxyPath, Header: proxyHeader(model), Body: loadgen.FixedBody(proxyBody(bytes))}
}

// scenarios returns the scenarios to compare, each with the given number of requests in flight. Each scenario of Weir
// follows the no-op's scenario that it is compared with.
func (p *proxySetting) scenarios(concurrency int, length time.Duration) []loadgen.Scenario {
	one := func(name string, envoy *envoyrun.Envoy, processor *scene.Process, request loadgen.Template) loadgen.Scenario {
		return p.load.scenario(name, envoy, processor, request, concurrency, length)
	}
	return []loadgen.Scenario{
		one(proxyAlone, p.alone, nil, proxyRequest(true, smallBody)),
		one(proxyUnseen, p.unseen.envoy, p.unseen.process, proxyRequest(true, smallBody)),
		one(proxyNoop, p.headers.envoy, p.headers.process, proxyRequest(true, smallBody)),
		one(proxyHeaders, p.own, p.epp.Process, proxyRequest(true, smallBody)),
		one(proxyOff, p.off, p.forgetful.Process, proxyRequest(true, smallBody)),
		one(proxyNoopSmall, p.bodies.envoy, p.bodies.process, proxyRequest(false, smallBody)),
		one(proxySmall, p.own, p.epp.Process, proxyRequest(false, smallBody)),
		one(proxyNoopLarge, p.bodies.envoy, p.bodies.process, proxyRequest(false, largeBody)),
		one(proxyLarge, p.own, p.epp.Process, proxyRequest(false, largeBody)),
		one(proxyHeadersBare, p.bare, p.epp.Process, proxyRequest(true, smallBody)),
		one(proxyLargeBare, p.bare, p.epp.Process, proxyRequest(false, largeBody)),
	}
}

// streams returns the scenarios of streams, which run concurrently: a stream takes longer than the other scenarios'
// turns.
func (p *proxySetting) streams(length time.Duration) []loadgen.Scenario {
	one := func(name string, envoy *envoyrun.Envoy, processor *scene.Process) loadgen.Scenario {
		return loadgen.Scenario{Name: name, Run: func(ctx context.Context, _ int) (loadgen.Figures, error) {
			figures, err := p.slow.measure(ctx, envoy, processor, usageStream(), usageStreams, length)
			if err == nil {
				figures[figureChunk] = figures[figureProcessor] / usageChunks
			}
			return figures, err
		}}
	}
	return loadgen.Together(
		one(proxyNoopStream, p.streamed.envoy, p.streamed.process), one(proxyStream, p.duplex, p.slow.epp.Process),
	)
}
