package app

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/internal/expect"
)

// With --metric-aliases only, autoscalers for llm-d's or GIE's metrics find them.
func TestMetricAliases(t *testing.T) {
	for _, on := range []bool{false, true} {
		o := testOptions()
		o.MetricAliases = on
		text := exposed(t, start(t, o).App)
		for _, want := range []string{
			`llm_d_epp_flow_control_queue_size{model_name="other",target_model_name="other"} 0`,
			`inference_extension_flow_control_queue_size{model_name="other",target_model_name="other"} 0`,
			`inference_pool_ready_pods 1`,
			"# TYPE llm_d_epp_flow_control_queue_size gauge",
		} {
			if got := strings.Contains(text, want+"\n"); got != on {
				t.Errorf("with the flag %v: %q is there: %v", on, want, got)
			}
		}
		if !strings.Contains(text, "weir_queue_length{") {
			t.Error("weir_queue_length is gone")
		}
	}
}

// The pool's name is a label under the names in their queries.
func TestMetricAliasesNameThePool(t *testing.T) {
	registry := prometheus.NewRegistry()
	length := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "weir_queue_length", Help: "Length."}, []string{"pool", "model", "target_model"})
	ready := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "weir_ready_backends", Help: "Ready."}, []string{"pool"})
	registry.MustRegister(length, ready)
	length.WithLabelValues("llama", "m", "m-v1").Set(7)
	ready.WithLabelValues("llama").Set(3)
	families, err := aliased(registry).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			got = append(got, fmt.Sprint(f.GetName(), labels, m.GetGauge().GetValue()))
		}
	}
	want := []string{
		"weir_queue_lengthmap[model:m pool:llama target_model:m-v1] 7",
		"weir_ready_backendsmap[pool:llama] 3",
		"llm_d_epp_flow_control_queue_sizemap[inference_pool:llama model_name:m target_model_name:m-v1] 7",
		"inference_extension_flow_control_queue_sizemap[inference_pool:llama model_name:m target_model_name:m-v1] 7",
		"inference_pool_ready_podsmap[name:llama] 3",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The page on metrics lists the aliases.
func TestMetricAliasesAreDocumented(t *testing.T) {
	page, err := os.ReadFile(metricsDoc)
	if err != nil {
		t.Fatal(err)
	}
	for _, alias := range aliases {
		if !strings.Contains(string(page), "| `"+alias.name+"` | `"+alias.of+"` |") {
			t.Errorf("docs/metrics.md has no row for %s, which is %s", alias.name, alias.of)
		}
	}
}

func exposed(t *testing.T, a *App) string {
	t.Helper()
	return expect.Page(t, fmt.Sprintf("http://127.0.0.1:%d/metrics", a.Ports().Metrics))
}
