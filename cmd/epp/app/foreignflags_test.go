package app

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Whatever the charts of llm-d and GIE pass is accepted.
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

// Foreign flags that mean nothing here are named in one warning, unless they turn something off.
func TestForeignFlagsWarnOnce(t *testing.T) {
	f := newFlags()
	args := []string{
		"--endpoints=192.0.2.1:8000", "--tracing=false", "--health-checking", "--refresh-metrics-interval=50ms",
		"--total-queued-requests-metric=\"a:b\"", "--lora-info-metric", "",
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
	for _, want := range []string{"--health-checking", "--refresh-metrics-interval", "--total-queued-requests-metric", "--lora-info-metric"} {
		if !strings.Contains(lines[0], want+" (") {
			t.Errorf("%s does not name %s", lines[0], want)
		}
	}
	if strings.Contains(lines[0], "--tracing") {
		t.Errorf("%s names a flag that turns off what is not there", lines[0])
	}
}

// Without a flag of theirs there is no warning.
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

// A flag of theirs that protects something is not passed over.
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
