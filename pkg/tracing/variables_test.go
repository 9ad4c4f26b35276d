package tracing

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-epp/weir/internal/pki"
)

func reading(variables map[string]string) (*Config, error) {
	return Read(func(name string) string { return variables[name] })
}

// Without variables the configuration has OpenTelemetry's defaults, and the service is weir.
func TestDefaults(t *testing.T) {
	cfg, err := reading(nil)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Protocol != GRPC || cfg.Endpoint != "http://localhost:4317" || cfg.Timeout != 10*time.Second || cfg.ExportTimeout != 30*time.Second ||
		cfg.QueueSize != 2048 || cfg.BatchSize != 512 || cfg.Delay != 5*time.Second || cfg.Gzip || cfg.TLS != nil || len(cfg.Headers) != 0 {
		t.Errorf("got %+v", cfg)
	}
	if got := cfg.Sampler.Description(); !strings.HasPrefix(got, "ParentBased{root:AlwaysOnSampler") {
		t.Errorf("sampler %s", got)
	}
}

// Each variable has its effect. One for traces goes before the one for all signals.
func TestVariables(t *testing.T) {
	cfg, err := reading(map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://other:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": " https://collector:4317 ",
		"OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20abc, x-tenant = a", "OTEL_EXPORTER_OTLP_TIMEOUT": "1500",
		"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25",
		"OTEL_BSP_MAX_QUEUE_SIZE": "100", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "10", "OTEL_BSP_SCHEDULE_DELAY": "200", "OTEL_BSP_EXPORT_TIMEOUT": "3000",
		"OTEL_SERVICE_NAME": "edge", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,zone=a%2Cb", "OTEL_PROPAGATORS": "tracecontext,baggage",
		"OTEL_SDK_DISABLED": "FALSE", "OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc",
	})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Protocol != GRPC || cfg.Endpoint != "https://collector:4317" || cfg.Headers["authorization"] != "Bearer abc" || cfg.Headers["x-tenant"] != "a" ||
		cfg.Timeout != 1500*time.Millisecond || !cfg.Gzip || cfg.Sampler.Description() != "TraceIDRatioBased{0.25}" || cfg.QueueSize != 100 ||
		cfg.BatchSize != 10 || cfg.Delay != 200*time.Millisecond || cfg.ExportTimeout != 3*time.Second {
		t.Errorf("got %+v", cfg)
	}
	last := map[string]string{}
	for _, a := range cfg.Attributes {
		last[string(a.Key)] = a.Value.AsString()
	}
	if last["service.name"] != "edge" || last["zone"] != "a,b" {
		t.Errorf("attributes %v", last)
	}
	if cfg, err := reading(map[string]string{"OTEL_BSP_MAX_QUEUE_SIZE": "100"}); err != nil || cfg.BatchSize != 100 {
		t.Errorf("a queue smaller than the default batch: %+v, %v", cfg, err)
	}
}

// The endpoint is a URL, or for gRPC an address, over TLS unless a variable says otherwise.
func TestEndpoints(t *testing.T) {
	for _, test := range []struct{ protocol, name, value, insecure, want string }{
		{"grpc", "ENDPOINT", "http://c:4317", "", "http://c:4317"},
		{"grpc", "ENDPOINT", "https://c", "", "https://c:4317"},
		{"grpc", "ENDPOINT", "http://[::1]", "", "http://[::1]:4317"},
		{"grpc", "ENDPOINT", "c:4317", "", "https://c:4317"},
		{"grpc", "ENDPOINT", "c:4317", "true", "http://c:4317"},
		{"grpc", "TRACES_ENDPOINT", "https://c:4317", "true", "https://c:4317"},
		{"http/protobuf", "ENDPOINT", "", "", "http://localhost:4318/v1/traces"},
		{"http/protobuf", "ENDPOINT", "http://c:4318", "", "http://c:4318/v1/traces"},
		{"http/protobuf", "ENDPOINT", "http://c:4318/otlp/", "", "http://c:4318/otlp/v1/traces"},
		{"http/protobuf", "TRACES_ENDPOINT", "http://c:4318/here", "", "http://c:4318/here"},
		{"http/protobuf", "TRACES_ENDPOINT", "http://c:4318", "", "http://c:4318/"},
	} {
		cfg, err := reading(map[string]string{
			"OTEL_EXPORTER_OTLP_PROTOCOL": test.protocol, "OTEL_EXPORTER_OTLP_" + test.name: test.value, "OTEL_EXPORTER_OTLP_INSECURE": test.insecure,
		})
		if err != nil || cfg.Endpoint != test.want {
			t.Errorf("%+v: %+v, %v", test, cfg, err)
		}
	}
}

// Traces can be turned off by the variables that are there for it.
func TestTurnedOff(t *testing.T) {
	for name, value := range map[string]string{"OTEL_SDK_DISABLED": "True", "OTEL_TRACES_EXPORTER": "none"} {
		if cfg, err := reading(map[string]string{name: value}); cfg != nil || err != nil {
			t.Errorf("%s: %+v, %v", name, cfg, err)
		}
	}
}

// Nonsense is an error that names the variable and the value, and every one of them at once.
func TestNonsense(t *testing.T) {
	for name, values := range map[string][]string{
		"OTEL_SDK_DISABLED":                     {"yes"},
		"OTEL_TRACES_EXPORTER":                  {"zipkin"},
		"OTEL_PROPAGATORS":                      {"b3", "tracecontext,jaeger"},
		"OTEL_EXPORTER_OTLP_PROTOCOL":           {"http/json", "GRPC"},
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL":    {"udp"},
		"OTEL_EXPORTER_OTLP_ENDPOINT":           {"ftp://c:1", "http://", "http://c:99999", "http://c:x", "://", "http://c:1/?a=b", "c:4317:1"},
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT":    {"http:///v1"},
		"OTEL_EXPORTER_OTLP_INSECURE":           {"1"},
		"OTEL_EXPORTER_OTLP_TIMEOUT":            {"10s", "0", "-1", "99999999999"},
		"OTEL_EXPORTER_OTLP_COMPRESSION":        {"zstd"},
		"OTEL_EXPORTER_OTLP_CERTIFICATE":        {"/nowhere/ca.crt"},
		"OTEL_EXPORTER_OTLP_CLIENT_KEY":         {"/nowhere/tls.key"},
		"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": {"/nowhere/tls.crt"},
		"OTEL_TRACES_SAMPLER":                   {"often", "parentbased_jaeger_remote"},
		"OTEL_BSP_MAX_QUEUE_SIZE":               {"0", "65537", "many"},
		"OTEL_BSP_MAX_EXPORT_BATCH_SIZE":        {"2049"},
		"OTEL_BSP_SCHEDULE_DELAY":               {"5s", "0"},
		"OTEL_BSP_EXPORT_TIMEOUT":               {"3600001"},
		"OTEL_RESOURCE_ATTRIBUTES":              {"service.name", "=x", "a=%zz"},
	} {
		for _, value := range values {
			cfg, err := reading(map[string]string{name: value})
			if err == nil || !strings.HasPrefix(err.Error(), name+`: "`+value+`": `) || cfg != nil {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		}
	}
	_, err := reading(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://me:secret@c"})
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), `OTEL_EXPORTER_OTLP_ENDPOINT: "…@c"`) {
		t.Errorf("a password in the endpoint: %v", err)
	}
	for _, ratio := range []string{"1.1", "-0.1", "half", "NaN"} {
		_, err := reading(map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": ratio})
		if err == nil || err.Error() != `OTEL_TRACES_SAMPLER_ARG: "`+ratio+`": must be a number from 0 to 1` {
			t.Errorf("%s: %v", ratio, err)
		}
	}
	_, err = reading(map[string]string{"OTEL_TRACES_SAMPLER": "often", "OTEL_EXPORTER_OTLP_TIMEOUT": "x"})
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("two problems: %v", err)
	}
}

// Headers are secrets: an error names the variable and the part, not the value.
func TestSecretHeaders(t *testing.T) {
	for _, value := range []string{"a=1,token secret", "a=1,tok en=secret", "a=1,token=secret%0a"} {
		_, err := reading(map[string]string{"OTEL_EXPORTER_OTLP_TRACES_HEADERS": value})
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_TRACES_HEADERS") ||
			!strings.Contains(err.Error(), "part 2") {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// The collector's authority and the client's certificate come from files.
func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	certificate, key := pki.NewAuthority(t).Issue("collector", nil)
	crt, pem := write("tls.crt", certificate), write("tls.key", key)
	cfg, err := reading(map[string]string{
		"OTEL_EXPORTER_OTLP_CERTIFICATE": crt, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": crt, "OTEL_EXPORTER_OTLP_CLIENT_KEY": pem,
	})
	if err != nil || cfg.TLS == nil || cfg.TLS.RootCAs == nil || len(cfg.TLS.Certificates) != 1 {
		t.Errorf("%+v, %v", cfg, err)
	}
	if _, err := reading(map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": pem}); err == nil || !strings.Contains(err.Error(), pem) {
		t.Errorf("no certificate: %v", err)
	}
}
