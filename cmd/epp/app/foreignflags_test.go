package app

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/weir-epp/weir/pkg/datastore/scrape"
)

// epp accepts all flags that the charts of llm-d and GIE pass.
func TestChartsOfOthers(t *testing.T) {
	var charts []struct {
		Chart, Source string
		Args          []string
	}
	readYAML(t, "testdata/chartargs.yaml", &charts)
	for _, c := range charts {
		t.Run(c.Chart, func(t *testing.T) {
			if c.Source == "" {
				t.Error("has no source")
			}
			if err := newFlags().parse(c.Args); err != nil {
				t.Errorf("%v:\n%v", c.Args, err)
			}
		})
	}
}

// One warning names the foreign flags without a meaning here, unless they turn something off.
func TestForeignFlagsWarnOnce(t *testing.T) {
	f := newFlags()
	args := []string{
		"--endpoints=192.0.2.1:8000", "--zap-devel=false", "--health-checking", "--metrics-staleness-threshold=2s",
		"--engine-label-key=\"a:b\"",
	}
	if err := f.parse(args); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log, flush := newLogger(&out, encoderJSON, 0)
	f.warnForeign(log)
	flush()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 1 || !strings.Contains(lines[0], `"level":"warn"`) {
		t.Fatalf("got %q, want one warning", lines)
	}
	for _, want := range []string{"--health-checking", "--metrics-staleness-threshold", "--engine-label-key"} {
		if !strings.Contains(lines[0], want+" (") {
			t.Errorf("%s does not name %s", lines[0], want)
		}
	}
	if strings.Contains(lines[0], "--zap-devel") {
		t.Errorf("%s names a flag that turns off a missing feature", lines[0])
	}
}

// Foreign flags about the metrics of model servers keep their meaning, with the quotes of those charts. Weir's own
// flags have priority.
func TestForeignScrapeFlags(t *testing.T) {
	f := newFlags()
	args := []string{
		"--endpoints=192.0.2.1:8000", "--model-server-metrics-path=\"/prometheus/metrics\"", "--model-server-metrics-port=9400",
		"--model-server-metrics-scheme=https", "--model-server-metrics-https-insecure-skip-verify=false",
		"--refresh-metrics-interval=5s", "--total-queued-requests-metric", "a{b=c}", "--total-running-requests-metric=\"d\"",
		"--kv-cache-usage-percentage-metric=e", "--cache-info-metric", "f", "--lora-info-metric=\"g\"",
	}
	if err := f.parse(args); err != nil {
		t.Fatal(err)
	}
	want := scrape.DefaultConfig()
	want.Path, want.Port, want.Scheme, want.Insecure, want.Interval = "/prometheus/metrics", 9400, "https", false, 5*time.Second
	want.Names = scrape.Names{Running: "d", Waiting: "a{b=c}", CacheUsed: "e", CacheInfo: "f", Adapters: "g"}
	if !reflect.DeepEqual(f.Scrape, want) {
		t.Errorf("got %+v, want %+v", f.Scrape, want)
	}
	for args, want := range map[string]string{
		"--refresh-metrics-interval=50ms":                             "1s /metrics",
		"--scrape-path=/own --model-server-metrics-path=/theirs":      "1s /own",
		"--scrape-path= --model-server-metrics-path=/theirs":          "1s ",
		"--model-server-metrics-https-insecure-skip-verify":           "1s /metrics",
		"--model-server-metrics-path=  --refresh-metrics-interval=2m": "--refresh-metrics-interval: 2m: must be from 100ms to 1m",
		"--model-server-metrics-path=x":                               `--scrape-path: "x": must begin with a slash`,
		"--model-server-metrics-port=x":                               `--model-server-metrics-port: "x": must be`,
		"--model-server-metrics-port=70000":                           "--model-server-metrics-port: 70000: must be",
		"--model-server-metrics-scheme=ftp":                           `--model-server-metrics-scheme: "ftp": must be`,
		"--refresh-metrics-interval=often":                            `--refresh-metrics-interval: "often": must be`,
		"--total-queued-requests-metric=a{b":                          `--total-queued-requests-metric: "a{b": must end with }`,
		"--lora-info-metric=":                                         "1s /metrics",
		"--lora-info-metric=a{b":                                      `--lora-info-metric: "a{b": must end with }`,
	} {
		f := newFlags()
		err := f.parse(append([]string{"--endpoints=192.0.2.1:8000"}, strings.Fields(args)...))
		got := fmt.Sprint(f.Scrape.Interval, " ", f.Scrape.Path)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
}

// Without a foreign flag there is no warning.
func TestNoForeignFlags(t *testing.T) {
	f := newFlags()
	if err := f.parse([]string{"--endpoints=192.0.2.1:8000", "--v=0"}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log, flush := newLogger(&out, encoderJSON, 0)
	f.warnForeign(log)
	flush()
	if out.Len() > 0 {
		t.Errorf("the log has %s", out.String())
	}
}

// llm-d's flag for the certificate of the metrics turns TLS on.
func TestForeignMetricsCertificate(t *testing.T) {
	f := newFlags()
	if err := f.parse([]string{"--endpoints=192.0.2.1:8000", "--metrics-cert-dir=/certs"}); err != nil {
		t.Fatal(err)
	}
	if f.MetricsCertPath != "/certs" || !f.MetricsSecureServing {
		t.Errorf("certificate %q, TLS %v, want /certs and TLS", f.MetricsCertPath, f.MetricsSecureServing)
	}
}

// A foreign flag that protects something is not ignored.
func TestForeignProtectionIsRefused(t *testing.T) {
	err := newFlags().parse([]string{"--endpoints=192.0.2.1:8000", "--metrics-client-ca-file=/ca.crt"})
	if err == nil || !strings.Contains(err.Error(), "--metrics-client-ca-file: /ca.crt: the metrics port asks for no client") {
		t.Errorf("got %v", err)
	}
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatal(err)
	}
}
