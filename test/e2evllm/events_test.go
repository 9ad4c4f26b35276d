//go:build e2evllm

package e2evllm

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An engine with a small cache gets prompts until it has removed most of its stored blocks.
const (
	eventsBlocks  = 100
	eventsPrompts = 20
	eventsPrompt  = 1200 // tokens, which are bytes: Weir compares prompts from 1 KiB on
)

// eventsScene checks that the KV events of a real engine give the size of its cache, and clear the index.
func eventsScene(t *testing.T, _ *engine) section {
	e := startEngine(t, "--enable-prefix-caching", "--block-size", strconv.Itoa(affinityBlock),
		"--num-gpu-blocks-override", strconv.Itoa(eventsBlocks),
		"--kv-events-config", `{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:`+eventsPort+`"}`)
	set := throughWith(t, e, "recommended", "profile: recommended\n", []string{fmt.Sprintf("--kv-events-port=+%d", eventsAhead)})
	url := set.epp.MetricsURL
	prompt := func(i int) {
		t.Helper()
		got := post(context.Background(), set.weir.URL(), ask{path: "/v1/completions", body: fmt.Sprintf(
			`{"model":%q,"prompt":%q,"max_tokens":1}`, model, padded(fmt.Sprintf("Prompt %d at %v. ", i, time.Now().UnixNano()), eventsPrompt))})
		if got.err != nil || got.status != http.StatusOK {
			t.Fatalf("status %d, error %v: %.500s", got.status, got.err, got.body)
		}
	}
	awaitMetric := func(name string, enough func(v float64) bool, again func()) float64 {
		t.Helper()
		for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
			if v := metric(t, url, name); enough(v) {
				return v
			} else if time.Now().After(deadline) {
				t.Fatalf("%s is %g", name, v)
			}
			again()
		}
	}
	awaitMetric(`weir_kv_events_blocks_total{event="stored"}`, func(v float64) bool { return v > 0 }, func() { prompt(-1) }) // subscribed
	for i := range eventsPrompts {
		prompt(i)
	}
	size := awaitMetric("weir_endpoint_kv_tokens", func(v float64) bool { return v > 0 }, func() { prompt(-1) })
	whole := float64(eventsBlocks * affinityBlock)
	if size < .8*whole || size > 1.05*whole {
		t.Errorf("the size is %g, want about %g", size, whole)
	}
	stored, removed := metric(t, url, `weir_kv_events_blocks_total{event="stored"}`), metric(t, url, `weir_kv_events_blocks_total{event="removed"}`)
	if nodes := metric(t, url, "weir_affinity_nodes"); nodes == 0 {
		t.Error("the index is empty before the engine's cache is cleared")
	}
	response, err := http.Post("http://"+e.address+"/reset_prefix_cache", "", nil)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("clearing the engine's cache: %v, %v", response, err)
	}
	_ = response.Body.Close()
	prompt(-2) // vLLM publishes with the next step
	awaitMetric(`weir_kv_events_clears_total{reason="cleared"}`, func(v float64) bool { return v == 1 }, func() {})
	awaitMetric("weir_affinity_nodes", func(v float64) bool { return v <= 1 }, func() {})
	for _, name := range []string{`weir_kv_events_clears_total{reason="gap"}`, `weir_kv_events_failures_total{reason="message"}`, `weir_kv_events_failures_total{reason="protocol"}`} {
		if v := metric(t, url, name); v > 0 {
			t.Errorf("%s is %g", name, v)
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, `An engine with a cache of %d tokens publishes its KV events (`+"`--kv-events-config`"+`), and Weir follows them
(`+"`--kv-events-port`"+`). %d prompts of %d tokens: %.0f blocks stored, %.0f removed, and by these the cache has room for **%.0f** tokens.
`+"`POST /reset_prefix_cache`"+` at the engine cleared the index once. No message was missing or could not be read.
`, eventsBlocks*affinityBlock, eventsPrompts, eventsPrompt, stored, removed, size)
	return section{"KV events", text.String()}
}
