package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// rule is an alert in rendered form.
type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// alerts returns all rendered alerts, and a file with them in Prometheus' form.
func alerts(t *testing.T) (rules []rule, file string) {
	t.Helper()
	return alertsWith(t, "envoy: { mode: sidecar, podMonitor: { enabled: true } }\n")
}

// alertsWith returns the alerts that are rendered with these values.
func alertsWith(t *testing.T, values string) (rules []rule, file string) {
	t.Helper()
	spec := render(t, minimal, "metrics: { prometheusRule: { enabled: true } }\n", values).get(t, "PrometheusRule/llama-weir").at("spec")
	text, err := yaml.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var groups struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(text, &groups); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups.Groups {
		rules = append(rules, g.Rules...)
	}
	file = filepath.Join(t.TempDir(), "alerts.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return rules, file
}

// An alert on Envoy's counters needs the PodMonitor for them, and is absent without it. Otherwise it could never fire,
// and would only seem to work.
func TestBypassIsWatchedWhereEnvoyIsScraped(t *testing.T) {
	all, _ := alerts(t)
	for _, values := range []string{"", "envoy: { mode: sidecar }\n", "envoy: { mode: standalone }\n", "metrics: { podMonitor: { enabled: true }, auth: { enabled: false } }\n"} {
		rules, _ := alertsWith(t, values)
		without := slices.DeleteFunc(slices.Clone(all), func(r rule) bool { return r.Alert == "WeirBypassed" })
		if len(without) != len(all)-1 || !reflect.DeepEqual(rules, without) {
			t.Errorf("%q: there are %d alerts of %d, not all but WeirBypassed", values, len(rules), len(all))
		}
	}
}

var (
	summed = regexp.MustCompile(`by \(([a-z, ]+)\)`)
	named  = regexp.MustCompile(`\$labels\.([a-z]+)`)
)

// The expression of an alert keeps each label in its text. A request that bypasses Weir has the Envoy's.
func TestAlertsKeepTheLabelsTheyName(t *testing.T) {
	rules, _ := alerts(t)
	for _, r := range rules {
		text := r.Annotations["summary"] + r.Annotations["description"]
		for _, by := range summed.FindAllStringSubmatch(r.Expr, -1) {
			for _, label := range named.FindAllStringSubmatch(text, -1) {
				if !slices.Contains(strings.Split(by[1], ", "), label[1]) {
					t.Errorf("%s names the label %s, of which it keeps only %s", r.Alert, label[1], by[1])
				}
			}
		}
		if r.Alert == "WeirBypassed" && !strings.Contains(text, "$labels.pod") {
			t.Errorf("%s does not name the pod: %s", r.Alert, text)
		}
	}
}

// promtool accepts the alerts.
func TestAlertsAreSound(t *testing.T) {
	_, file := alerts(t)
	if out, err := run(t, tool(t, "promtool"), "check", "rules", "--lint=all", "--lint-fatal", file); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

var metricName = regexp.MustCompile(`\b(?:weir|envoy)_[a-z_]+`)

// Every metric in an alert, and in the example for autoscaling, is Weir's, or Envoy's and on its page.
func TestAlertsAskForMetricsThatExist(t *testing.T) {
	page := readFile(t, "../../docs/metrics.md")
	rules, _ := alerts(t)
	texts := map[string]string{"examples/prometheus-adapter.yaml": readFile(t, chartDir+"/examples/prometheus-adapter.yaml")}
	for _, r := range rules {
		texts[r.Alert] = r.Expr
	}
	for name, text := range texts {
		names := metricName.FindAllString(strings.ReplaceAll(text, "weir_demand", ""), -1)
		if len(names) == 0 && name != "WeirDown" {
			t.Errorf("%s asks for no metric", name)
		}
		for _, metric := range names {
			if !strings.Contains(page, "| `"+metric+"` |") {
				t.Errorf("%s asks for %s, which docs/metrics.md does not have", name, metric)
			}
		}
	}
}

// Every alert has a paragraph on the page that it names, with a command or a metric to check, and every paragraph has
// its alert.
func TestAlertsHaveRunbooks(t *testing.T) {
	paragraphs := map[string]string{}
	for _, section := range strings.Split(readFile(t, "../../docs/runbooks.md"), "\n### ")[1:] {
		alert, text, _ := strings.Cut(section, "\n")
		paragraphs[alert] = text
	}
	rules, _ := alerts(t)
	for _, r := range rules {
		text, has := paragraphs[r.Alert]
		delete(paragraphs, r.Alert)
		switch {
		case !has:
			t.Errorf("docs/runbooks.md has no heading %s", r.Alert)
		case !regexp.MustCompile("`(?:kubectl|curl|weir|weir_\\w+)\\b").MatchString(text):
			t.Errorf("%s has no command to look: %s", r.Alert, text)
		}
		if want := "docs/runbooks.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s leads to %q, want %s", r.Alert, r.Annotations["runbook_url"], want)
		}
		if r.Labels["severity"] == "" {
			t.Errorf("%s has no severity", r.Alert)
		}
	}
	for alert := range paragraphs {
		t.Errorf("docs/runbooks.md has a paragraph %s, and there is no such alert", alert)
	}
	published := render(t, minimal, "metrics: { prometheusRule: { enabled: true, runbookURL: https://example.com/t } }\n")
	first := published.get(t, "PrometheusRule/llama-weir").text("spec", "groups", 0, "rules", 0, "annotations", "runbook_url")
	if want := "https://example.com/t#" + strings.ToLower(rules[0].Alert); first != want {
		t.Errorf("with runbookURL the alert leads to %q, want %s", first, want)
	}
}

// unprovoked are the alerts without a test that causes their fault in a real replica, with the reason. Another test
// then shows the metric.
var unprovoked = map[string]string{
	"WeirPanics": "No input is known from which Weir panics, and a switch for it would be one. TestPanicIsContained in pkg/extproc and " +
		"TestAPoisonedWaiterEndsAlone in pkg/flowcontrol have parts that do.",
	"WeirUnfair": "Nothing is known that makes Weir unfair, and a switch for it would. TestFairnessGap in pkg/fairqueue has disciplines " +
		"that are.",
	"WeirCertificateExpires": "The clock of promtool begins in 1970, when no real certificate expires. TestDoCertificatesHold in " +
		"test/observe has one that does, for a real Prometheus.",
	"WeirInternalErrors": "As for panics: nothing else ends a request as internal.",
}

// Every other alert fires from a real replica's metrics, which promtool extends to the alert's time.
func TestAlertsAreProvoked(t *testing.T) {
	provoked := readFile(t, "realalerts_test.go") + readFile(t, "trafficalerts_test.go")
	rules, _ := alerts(t)
	for _, r := range rules {
		if is := strings.Contains(provoked, `"`+r.Alert+`"`); is == (unprovoked[r.Alert] != "") {
			t.Errorf("%s is provoked: %t, and said not to be: %q", r.Alert, is, unprovoked[r.Alert])
		}
	}
}

// healthy is a replica without a fault, but without the metrics of the Go runtime. TestAlertsOnARealRun compares it
// with a real one's export.
const healthy = `up 1
weir_ready_backends{pool="llama"} 2
weir_leader{pool="llama"} 1
weir_pool_missing{pool="llama"} 0
weir_kubernetes_apiserver_up 1
weir_kubernetes_synced 1
weir_kubernetes_permission_missing{verb="list",resource="pods",namespace="inference"} 0
weir_config_valid 1
weir_files_followed 1
weir_tls_certificate_expiry_timestamp_seconds 1000000
weir_extproc_panics_total 0
weir_decision_panics_total 0
weir_requests_total{outcome="dispatched"} 1000+100x
weir_requests_total{outcome="internal"} 0
weir_requests_total{outcome="queue-full"} 0
weir_requests_total{outcome="no-endpoint"} 0
weir_flow_requests_total{flow="a"} 0+50x
weir_flow_requests_total{flow="b"} 0+50x
weir_flow_requests_total{flow="c"} 0+5x
weir_flow_rejections_total{flow="a",outcome="ttl-expired"} 0+1x
weir_flow_rejections_total{flow="b",outcome="flow-full"} 0+1x
weir_extproc_streams 12
weir_fairness_gap{tier="critical"} 900
weir_fairness_bound{tier="critical"} 1000
weir_extproc_usage_unknown_total 0+19x
weir_served_elsewhere_total{endpoint="10.0.0.1:8000"} 0
weir_extproc_placed_before_total 0
` + quietEnvoy

// quietEnvoy is an Envoy that passed requests by Weir some time ago.
const quietEnvoy = `up{job="llama/envoy",pod="envoy-0"} 1
envoy_http_ext_proc_failure_mode_allowed{job="llama/envoy",pod="envoy-0",envoy_http_conn_manager_prefix="inference"} 7
`

// faultless is another replica beside the healthy one, which has just ended, and the state of a busy gateway.
const faultless = `up{pod="weir-1"} 0
weir_ready_backends{pool="llama",pod="weir-1"} 0
weir_leader{pool="llama",pod="weir-1"} 0
weir_pool_missing{pool="llama",pod="weir-1"} 0
weir_requests_total{outcome="queue-full",pod="weir-1"} 0+4x
weir_requests_total{outcome="client-cancelled",pod="weir-1"} 0+50x
weir_extproc_streams{pod="weir-1"} 1023
`

// Each alert fires from each of its faults, and none fires without a fault.
func TestEachAlertFiresOnce(t *testing.T) {
	faults := map[string][]string{ // changed samples, each in the changed form
		"WeirDown":                 {"up 0"},
		"WeirBypassed":             {`envoy_http_ext_proc_failure_mode_allowed{job="llama/envoy",pod="envoy-0",envoy_http_conn_manager_prefix="inference"} 7+1x`},
		"WeirNoReadyBackends":      {`weir_ready_backends{pool="llama"} 0`},
		"WeirNoLeader":             {`weir_leader{pool="llama"} 0`},
		"WeirTwoLeaders":           {`weir_leader{pool="llama",pod="weir-1"} 1`},
		"WeirPoolMissing":          {`weir_pool_missing{pool="llama"} 1`},
		"WeirAPIServerUnreachable": {"weir_kubernetes_apiserver_up 0"},
		"WeirNotSynced":            {"weir_kubernetes_synced 0"},
		"WeirPermissionMissing":    {`weir_kubernetes_permission_missing{verb="list",resource="pods",namespace="inference"} 1`},
		"WeirConfigInvalid":        {"weir_config_valid 0"},
		"WeirFilesNotFollowed":     {"weir_files_followed 0"},
		"WeirCertificateExpires":   {"weir_tls_certificate_expiry_timestamp_seconds 600000"},
		"WeirPanics":               {"weir_decision_panics_total 0+1x", "weir_extproc_panics_total 0+1x"},
		"WeirUnfair":               {`weir_fairness_gap{tier="critical"} 1001`},
		"WeirUsageUnknown":         {"weir_extproc_usage_unknown_total 0+21x"},
		"WeirInternalErrors":       {`weir_requests_total{outcome="internal"} 0+1x`},
		"WeirRejecting": {
			`weir_requests_total{outcome="queue-full"} 0+10x`, `weir_requests_total{outcome="flow-full"} 0+10x`,
			`weir_requests_total{outcome="shed"} 0+10x`, `weir_requests_total{outcome="displaced"} 0+10x`,
			`weir_requests_total{outcome="ttl-expired"} 0+10x`, `weir_requests_total{outcome="no-endpoint"} 0+10x`,
		},
		"WeirStreamsLimited":  {"weir_extproc_streams 1024"},
		"WeirServedElsewhere": {`weir_served_elsewhere_total{endpoint="10.0.0.1:8000"} 0+1x`},
		"WeirPlacedBefore":    {"weir_extproc_placed_before_total 0+1x"},
	}
	rules, _ := alerts(t)
	for _, r := range rules {
		if faults[r.Alert] == nil {
			t.Errorf("no fault makes %s fire", r.Alert)
		}
	}
	firing(t, "nothing", healthy)
	firing(t, "nothing, beside another replica,", healthy+faultless)
	firing(t, "one tenant beyond its limit, of three,", strings.ReplaceAll(healthy, `weir_flow_rejections_total{flow="b",outcome="flow-full"} 0+1x`,
		`weir_requests_total{outcome="flow-full"} 0+50x`))
	for alert, changes := range faults {
		for _, change := range changes {
			t.Run(alert, func(t *testing.T) {
				t.Parallel()
				name := change[:strings.LastIndex(change, " ")]
				line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` .*\n`)
				series := healthy
				if found := line.FindString(series); found == change+"\n" {
					t.Fatalf("%s is healthy", change)
				} else if found == "" {
					series += change + "\n"
				} else {
					series = line.ReplaceAllLiteralString(series, change+"\n")
				}
				if alert == "WeirPoolMissing" { // one that has it is enough
					series += "weir_pool_missing{pool=\"llama\",pod=\"weir-1\"} 0\n"
				}
				firing(t, alert, series, alert)
			})
		}
	}
}

// threshold makes an alert of a query: without it, the query has a result without a fault, too.
var threshold = regexp.MustCompile(` (==|>|<) [0-9.]+$`)

// sample is a line of a scrape: name, labels, value.
var sample = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? (\S+)$`)

// firing checks by promtool the alerts after half an hour of these samples: exactly the named ones, each once. A value
// may be promtool's own (0+1x grows by 1 a minute).
func firing(t *testing.T, what, samples string, want ...string) {
	t.Helper()
	const steps = 30
	rules, file := alerts(t)
	var test strings.Builder
	fmt.Fprintf(&test, "rule_files: [%q]\nevaluation_interval: 30s\ntests:\n- interval: 1m\n  input_series:\n", file)
	for line := range strings.Lines(samples) {
		m := sample.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			t.Fatalf("%q is no sample", line)
		}
		labels := []string{fmt.Sprintf("namespace=%q", namespace)}
		if !strings.Contains(m[2], "job=") {
			labels = append(labels, fmt.Sprintf("job=%q", release))
		}
		if !strings.Contains(m[2], "pod=") {
			labels = append(labels, `pod="weir-0"`)
		}
		// As in Prometheus, the target's label wins.
		if own := strings.ReplaceAll(m[2], "namespace=", "exported_namespace="); own != "" {
			labels = append(labels, own)
		}
		values := m[3] + "x" + fmt.Sprint(steps)
		if strings.HasSuffix(m[3], "x") {
			values = m[3] + fmt.Sprint(steps)
		}
		fmt.Fprintf(&test, "  - series: '%s{%s}'\n    values: '%s'\n", m[1], strings.Join(labels, ","), values)
	}
	test.WriteString("  promql_expr_test:\n")
	for _, r := range rules {
		fmt.Fprintf(&test, "  - expr: 'count(%s) > bool 0'\n    eval_time: %dm\n    exp_samples: [{ labels: '{}', value: 1 }]\n",
			threshold.ReplaceAllString(strings.ReplaceAll(r.Expr, "'", "''"), ""), steps)
		fires := 0
		if slices.Contains(want, r.Alert) {
			fires = 1
		}
		fmt.Fprintf(&test, "  - expr: 'count(ALERTS{alertname=%q,alertstate=\"firing\"}) or vector(0)'\n    eval_time: %dm\n"+
			"    exp_samples: [{ labels: '{}', value: %d }]\n", r.Alert, steps, fires)
	}
	path := filepath.Join(t.TempDir(), "test.yaml")
	if err := os.WriteFile(path, []byte(test.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, tool(t, "promtool"), "test", "rules", path); err != nil {
		t.Errorf("with %s wrong, not exactly %v fire: %v", what, want, err)
	}
}
