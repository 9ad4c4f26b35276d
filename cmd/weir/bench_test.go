package main

import (
	"strings"
	"testing"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/proto"

	"github.com/weir-epp/weir/internal/loadgen"
)

// The flood in miniature: every part works and nothing is rejected. Its figures have no meaning.
func TestBenchFlood(t *testing.T) {
	c := begin(t, "bench", "flood", "--samples=4", "--warmup=200ms", eppBuilt())
	c.ends(t, 0)
	for _, want := range []string{sceneWith, sceneWithout, "at least 77/s", "at most 220ms", "at most 300ms", "load average"} {
		if !strings.Contains(c.stdout.String(), want) {
			t.Errorf("%q was not written:\n%s", want, c.stdout.String())
		}
	}
	for line := range strings.Lines(c.stdout.String()) {
		if strings.HasPrefix(line, "rejected or failed") && !strings.HasSuffix(line, " met\n") {
			t.Error(line)
		}
	}
}

// The proxy benchmark in miniature: every scenario is served, by every process.
func TestBenchProxy(t *testing.T) {
	c := begin(t, "bench", "proxy", "--rounds=1", "--length=100ms", "--concurrency=8", eppBuilt())
	c.ends(t, 0)
	for _, scenario := range []string{
		proxyAlone, proxyUnseen, proxyNoop, proxyHeaders, proxyOff, proxyNoopSmall, proxySmall, proxyNoopLarge, proxyLarge,
		proxyHeadersBare, proxyLargeBare,
	} {
		if !strings.Contains(c.stdout.String(), "| 8 | "+scenario+" |") {
			t.Errorf("no line for %s:\n%s", scenario, c.stdout.String())
		}
	}
	for _, want := range []string{
		"| 16 streams | " + proxyNoopStream + " |", "| 16 streams | " + proxyStream + " |",
		proxyHeaders + " over " + proxyHeadersBare, "| " + proxyStream + " over " + proxyNoopStream + " | " + figureChunk + " |",
	} {
		if !strings.Contains(c.stdout.String(), want) {
			t.Errorf("%q was not written:\n%s", want, c.stdout.String())
		}
	}
}

// The benchmark of affinity in miniature: every scenario is served, and each figure has its target.
func TestBenchAffinity(t *testing.T) {
	c := begin(t, "bench", "affinity", "--rounds=1", "--length=100ms", eppBuilt())
	c.ends(t, 0)
	for _, want := range []string{
		"| " + affinityNoop + " |", "| " + affinitySmall + " |", "| " + affinityWithout + " |", "| " + affinityWith + " |",
		"| " + affinityLarge + " |", "1 KB, over the no-op", "220 KB, over affinity: off",
		"10/s of 400 KB", "at most 1.05", "at most 1.25", "at most 0.05 cores",
	} {
		if !strings.Contains(c.stdout.String(), want) {
			t.Errorf("%q was not written:\n%s", want, c.stdout.String())
		}
	}
}

// The benchmark of usage in miniature: every scenario is served, and each ratio has its target.
func TestBenchUsage(t *testing.T) {
	c := begin(t, "bench", "usage", "--rounds=1", "--length=100ms", eppBuilt())
	c.ends(t, 0)
	for _, scenario := range []string{
		usageWithout, usageWith, usageSkip,
		usageChunksWithout, usageChunksWith, usageNamedWithout, usageNamedWith,
	} {
		if !strings.Contains(c.stdout.String(), "| "+scenario+" |") {
			t.Errorf("no line for %s:\n%s", scenario, c.stdout.String())
		}
	}
	for _, want := range []string{"at most 1.40", "at most 1.20", "at most 1.10"} {
		if !strings.Contains(c.stdout.String(), want) {
			t.Errorf("%q was not written:\n%s", want, c.stdout.String())
		}
	}
}

// A target met exactly is met. A narrowly missed one is not.
func TestFloodTargets(t *testing.T) {
	quiet := func(median, p99 time.Duration) loadgen.TenantSummary {
		return loadgen.TenantSummary{Tenant: quietTenant, OK: 400, Total: loadgen.Distribution{P50: median, P99: p99}}
	}
	summary := func(rate float64, quiet loadgen.TenantSummary, rejected int) loadgen.Summary {
		return loadgen.Summary{
			Tenants: []loadgen.TenantSummary{quiet},
			All:     loadgen.TenantSummary{Throughput: rate, Rejected: rejected},
		}
	}
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		summary loadgen.Summary
		missed  int
	}{
		"met exactly": {summary(77, quiet(220*ms, 300*ms), 0), 0},
		"throughput":  {summary(76.9, quiet(220*ms, 300*ms), 0), 1},
		"latency":     {summary(77, quiet(220*ms+1, 300*ms+1), 0), 2},
		"rejected":    {summary(77, quiet(220*ms, 300*ms), 1), 1},
		"nobody came": {summary(77, loadgen.TenantSummary{Tenant: quietTenant}, 0), 2},
	} {
		missed := 0
		for _, target := range floodTargets(test.summary) {
			if !target.met {
				missed++
			}
		}
		var text strings.Builder
		if all := writeTargets(&text, floodTargets(test.summary)); missed != test.missed || all != (missed == 0) {
			t.Errorf("%s: %d targets missed, want %d\n%s", name, missed, test.missed, text.String())
		}
	}
}

func TestAnswersFile(t *testing.T) {
	answers := []*extprocv3.ProcessingResponse{emptyResponseHeaders, emptyResponseTrailers}
	text, err := marshalAnswers(answers)
	if err != nil {
		t.Fatal(err)
	}
	read, err := unmarshalAnswers(text)
	if err != nil || len(read) != 2 || !proto.Equal(read[0], answers[0]) || !proto.Equal(read[1], answers[1]) {
		t.Errorf("read %v, %v", read, err)
	}
	for _, bad := range [][]byte{nil, text[:len(text)-1], {0, 0, 0, 1, 0xff}} {
		if _, err := unmarshalAnswers(bad); err == nil {
			t.Errorf("%v was read", bad)
		}
	}
}
