package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The example for prometheus-adapter makes the HPA's metric: waiting and running requests, of all replicas and models
// of a pool, and of no other one.
func TestAdapterMakesTheMetricOfTheHPA(t *testing.T) {
	var values struct {
		Rules struct {
			External []struct {
				SeriesQuery, MetricsQuery string
				Name                      struct{ As string }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(strings.NewReplacer("seriesQuery:", "seriesquery:", "metricsQuery:", "metricsquery:").
		Replace(readFile(t, chartDir+"/examples/prometheus-adapter.yaml"))), &values); err != nil {
		t.Fatal(err)
	}
	rule := values.Rules.External[0]
	hpa := render(t, minimal, "autoscaling: { enabled: true, target: { name: llama } }\n").get(t, "HorizontalPodAutoscaler/llama-weir-model-servers")
	metric := object(hpa.at("spec", "metrics", 0, "external", "metric").(map[string]any))
	if metric.text("name") != rule.Name.As {
		t.Errorf("the HPA asks for %s, the adapter makes %s", metric.text("name"), rule.Name.As)
	}
	// In the adapter's form for this HPA.
	query := strings.NewReplacer(
		"<<.LabelMatchers>>", `pool="`+metric.text("selector", "matchLabels", "pool")+`",namespace="inference"`,
		"<<.GroupBy>>", "namespace",
	).Replace(rule.MetricsQuery)
	demandIs18(t, query, `'{namespace="inference"}'`)
}

// KEDA's query is the same, divided by the same number of requests.
func TestKEDAAsksForTheSame(t *testing.T) {
	const scaled = "autoscaling: { enabled: true, kind: ScaledObject, prometheusAddress: \"http://prometheus:9090\", target: { name: llama }, requestsPerReplica: 40 }\n"
	all := render(t, minimal, scaled)
	trigger := object(all.get(t, "ScaledObject/llama-weir-model-servers").at("spec", "triggers", 0, "metadata").(map[string]any))
	if got := trigger.text("threshold"); got != "40" {
		t.Errorf("the threshold is %q", got)
	}
	if all["HorizontalPodAutoscaler/llama-weir-model-servers"] != nil {
		t.Error("there are two autoscalers for one Deployment")
	}
	demandIs18(t, trigger.text("query"), "'{}'")
}

// demandIs18 evaluates a query by promtool on the metrics of a pool with 18 waiting and running requests, with others
// beside it.
func demandIs18(t *testing.T, query, labels string) {
	t.Helper()
	test := `evaluation_interval: 1m
tests:
- interval: 1m
  input_series:
  - { series: 'weir_queue_length{namespace="inference",pod="weir-0",pool="llama",model="a"}', values: '3' }
  - { series: 'weir_queue_length{namespace="inference",pod="weir-0",pool="llama",model="b"}', values: '4' }
  - { series: 'weir_queue_length{namespace="inference",pod="weir-1",pool="llama",model="other"}', values: '0' }
  - { series: 'weir_stock_level{namespace="inference",pod="weir-0",pool="llama",model="a"}', values: '10' }
  - { series: 'weir_stock_level{namespace="inference",pod="weir-1",pool="llama",model="a"}', values: '1' }
  - { series: 'weir_queue_length{namespace="inference",pod="x",pool="mistral",model="a"}', values: '100' }
  - { series: 'weir_stock_level{namespace="other",pod="x",pool="llama",model="a"}', values: '100' }
  promql_expr_test:
  - expr: '` + query + `'
    exp_samples: [ { labels: ` + labels + `, value: 18 } ]
`
	path := filepath.Join(t.TempDir(), "test.yaml")
	if err := os.WriteFile(path, []byte(test), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, tool(t, "promtool"), "test", "rules", path); err != nil {
		t.Error(err)
	}
}
