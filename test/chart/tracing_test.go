package chart

import (
	"strings"
	"testing"

	"github.com/weir-epp/weir/internal/binaries"
)

// The values of tracing become the variables of OpenTelemetry, with which epp starts. Without them it has none.
func TestTracing(t *testing.T) {
	variables := func(values string) map[string]string {
		found := map[string]string{}
		list, _ := render(t, values).epp(t).at("env").([]any)
		for _, v := range list {
			if o := v.(map[string]any); strings.HasPrefix(o["name"].(string), "OTEL_") {
				found[o["name"].(string)] = o["value"].(string)
			}
		}
		return found
	}
	if got := variables(minimal); len(got) != 0 {
		t.Errorf("without tracing: %v", got)
	}
	got := variables(matrix["traces over HTTP"])
	for name, want := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
		"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.1",
		"OTEL_SERVICE_NAME":        render(t, minimal).deployment(t).name(),
		"OTEL_RESOURCE_ATTRIBUTES": "k8s.namespace.name=$(NAMESPACE),k8s.pod.name=$(POD_NAME)",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
		t.Setenv(name, got[name])
	}
	out, err := run(t, binaries.Path(binaries.EPP), "--endpoints=192.0.2.1:8000", "--tracing", "--validate")
	if err != nil || !strings.Contains(out, "valid") {
		t.Errorf("%s, %v", out, err)
	}
}
