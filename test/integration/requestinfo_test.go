package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/envoyrun"
	"github.com/weir-epp/weir/internal/modelsim"
)

const protocolManager = "envoy.filters.http.ai_protocol_manager"

// readingRequests makes Envoy read requests as well, by the lines in docs/envoy.md, in a configuration that reads
// usage.
func readingRequests(b envoyrun.Bootstrap) error {
	const api = "type.googleapis.com/envoy.extensions."
	manager := envoyrun.List(b.ConnectionManager(), "http_filters")
	filter := map[string]any{"name": protocolManager, "typed_config": map[string]any{
		"@type":            api + "filters.http.ai_protocol_manager.v3.AiProtocolManager",
		"request_handling": map[string]any{"reserialize_body": "DISABLE"},
		"filters": []any{map[string]any{"name": "request_info", "typed_config": map[string]any{
			"@type":            api + "http.ai_filters.request_info.v3.RequestInfo",
			"token_estimation": map[string]any{"tokens_per_byte": 0.25},
		}}},
	}}
	var filters []any
	for _, f := range manager {
		if envoyrun.Object(f)["name"] == "envoy.filters.http.buffer" {
			filters = append(filters, filter)
		}
		filters = append(filters, f)
	}
	if len(filters) != len(manager)+1 {
		return fmt.Errorf("filters are %v", b.Filters())
	}
	b.ConnectionManager()["http_filters"] = filters
	for _, route := range envoyrun.List(b.ConnectionManager(), "route_config", "virtual_hosts", 0, "routes") {
		if declared := envoyrun.Object(route, "typed_per_filter_config", protocolManager); declared != nil {
			declared["request"] = declared["response"]
		}
	}
	typed := envoyrun.Object(b.Filter("envoy.filters.http.ext_proc"), "metadata_options", "forwarding_namespaces")
	typed["typed"] = append(envoyrun.List(typed, "typed"), "envoy.ai.request_info")
	return nil
}

// sameJSON reports whether two texts of events or JSON mean the same.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	meaning := func(text string) (all []any) {
		for line := range strings.Lines(text) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "data: ")
			var v any
			if json.Unmarshal([]byte(line), &v) != nil {
				v = line
			}
			all = append(all, v)
		}
		return all
	}
	return fmt.Sprint(meaning(a)) == fmt.Sprint(meaning(b))
}

// If Envoy reads requests, Weir has model, limit and length without any body, and no client can forge them.
func TestEnvoyReadsRequests(t *testing.T) {
	t.Parallel()
	server := modelsim.Instant()
	server.Records, server.RecordBodyBytes = 64, 1<<20
	s := start(t, setup{
		models: []modelsim.Config{server}, edit: envoyrun.Edits(readingRequests, envoyrun.KeepHeader("x-gateway-model-name")),
		// A request whose body is needed is rejected.
		config: wide + "cost: tokens\nlimits: { maxBodyBytes: 10, maxBodyBytesTotal: 1000 }\n",
	})
	input, output := 0, 0
	send := func(model string, a ask, tokens int) {
		t.Helper()
		before := s.epp.value("weir_bypass_total", "model", model)
		got := s.send(a)
		wantServed(t, a.body, got)
		// Envoy re-serialises streamed bodies, so only their meaning is compared.
		if want := s.straightTo(a); !sameJSON(t, got.body, want.body) {
			t.Errorf("the answer is %q, want %q", got.body, want.body)
		}
		records := s.models[0].Records()
		if got := string(records[len(records)-2].Body); got != a.body { // the last one came directly
			t.Errorf("the model server got %q", got)
		}
		input, output = input+(len(a.body)+3)/4, output+tokens
		s.epp.waitFor(before+1, "weir_bypass_total", "model", model)
		s.epp.waitFor(float64(input), "weir_extproc_estimated_tokens_total", "kind", "input")
		s.epp.waitFor(float64(output), "weir_extproc_estimated_tokens_total", "kind", "output")
	}
	const said = `"messages":[{"role":"user","content":"hello"}]`
	send("a", ask{body: `{"model":"a",` + said + `,"max_tokens":50}`}, 50)
	send("b", ask{body: `{"model":"b",` + said + `,"max_tokens":60,"stream":true,"stream_options":{"include_usage":true}}`}, 60)
	send("c", ask{body: `{"model":"c",` + said + `,"max_tokens":70}`, unannounced: true}, 70)
	send("d", ask{body: `{"model":"d",` + strings.Repeat(" ", 220_000) + said + `,"max_tokens":80}`}, 80)
	send("e", ask{path: "/v1/messages", body: `{"model":"e",` + said + `,"max_tokens":90}`}, 90)
	// A trusted header ranks before it.
	send("trusted", ask{body: `{"model":"f",` + said + `,"max_tokens":50}`, header: []string{"x-gateway-model-name", "trusted"}}, 50)
	// No client's value does.
	send("g", ask{
		body: `{"model":"g",` + said + `,"max_tokens":50,"envoy.ai.request_info":{"model":"forged","max_output_tokens":1}}`,
		header: []string{
			"envoy.ai.request_info", `{"model":"forged","max_output_tokens":1}`, "x-envoy-ai-request-info", "forged",
			"x-envoy-metadata", "forged", "grpc-metadata", "forged",
		},
	}, 50)
	// If Envoy does not read the request, Weir requests a body.
	if got := s.send(ask{path: "/v1/images/generations", body: `{"model":"h","prompt":"x"}`}); got.status != 413 || got.reason() != "too-large" {
		t.Errorf("%d %s, want 413", got.status, got.reason())
	}
}

// straightTo sends a request directly to the scene's first model server.
func (s *scene) straightTo(a ask) answer {
	return (&battery{scene: s, server: s.models[0]}).straight(a)
}
