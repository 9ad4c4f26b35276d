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
	proxyAlone   = "Envoy alone"
	proxyNoop    = "no-op processor"
	proxyHeaders = "Weir, headers only"
	proxySmall   = "Weir, 1 KB body"
	proxyLarge   = "Weir, 64 KB body"

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

// proxyRequest returns a chat completion with a body of the given size.
func proxyRequest(model bool, bytes int) loadgen.Template {
	begin := `{"model":"` + modelsim.Instant().Model + `","max_tokens":16,"messages":[{"role":"user","content":"`
	const end = `"}]}`
	content := strings.Repeat("weir ", bytes/5+1)[:bytes-len(begin)-len(end)]
	return loadgen.Template{
		Path: proxyPath, Header: proxyHeader(model), Body: loadgen.FixedBody(begin + content + end),
	}
}

// scenarios returns the scenarios to compare, each with the given number of requests in flight.
func (p *proxySetting) scenarios(concurrency int, length time.Duration) []loadgen.Scenario {
	one := func(name string, envoy *envoyrun.Envoy, processor *scene.Process, request loadgen.Template) loadgen.Scenario {
		return loadgen.Scenario{Name: name, Run: func(ctx context.Context, _ int) (loadgen.Figures, error) {
			return p.load.measure(ctx, envoy, processor, request, concurrency, length)
		}}
	}
	return []loadgen.Scenario{
		one(proxyAlone, p.alone, nil, proxyRequest(true, smallBody)),
		one(proxyNoop, p.idle, p.noop, proxyRequest(true, smallBody)),
		one(proxyHeaders, p.own, p.epp.Process, proxyRequest(true, smallBody)),
		one(proxySmall, p.own, p.epp.Process, proxyRequest(false, smallBody)),
		one(proxyLarge, p.own, p.epp.Process, proxyRequest(false, largeBody)),
		one(proxyHeadersBare, p.bare, p.epp.Process, proxyRequest(true, smallBody)),
		one(proxyLargeBare, p.bare, p.epp.Process, proxyRequest(false, largeBody)),
	}
}
