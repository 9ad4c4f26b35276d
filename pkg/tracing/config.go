package tracing

import (
	"crypto/tls"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/credentials"
)

// The protocols of OTLP.
const (
	GRPC = "grpc"
	HTTP = "http/protobuf"
)

// Config configures the spans and their export. The comments name the environment variables; Read returns a valid
// Config.
type Config struct {
	// Protocol is GRPC or HTTP (OTEL_EXPORTER_OTLP_PROTOCOL).
	Protocol string
	// Endpoint is the URL of the collector (OTEL_EXPORTER_OTLP_ENDPOINT).
	Endpoint string
	// Headers go with each export; they may be secrets (OTEL_EXPORTER_OTLP_HEADERS).
	Headers map[string]string
	// TLS has the certificates for an https Endpoint; nil: the system's (OTEL_EXPORTER_OTLP_CERTIFICATE, _CLIENT_KEY,
	// _CLIENT_CERTIFICATE).
	TLS *tls.Config
	// Gzip compresses exports (OTEL_EXPORTER_OTLP_COMPRESSION).
	Gzip bool
	// Timeout bounds one attempt and its repetitions (OTEL_EXPORTER_OTLP_TIMEOUT), and ExportTimeout a batch
	// (OTEL_BSP_EXPORT_TIMEOUT).
	Timeout, ExportTimeout time.Duration
	// Sampler decides which requests have spans (OTEL_TRACES_SAMPLER).
	Sampler sdktrace.Sampler
	// QueueSize is the most spans that wait for export, at most MostQueued (OTEL_BSP_MAX_QUEUE_SIZE).
	QueueSize int
	// BatchSize is the number of spans in an export, at most QueueSize (OTEL_BSP_MAX_EXPORT_BATCH_SIZE).
	BatchSize int
	// Delay is the longest time that a span waits for its batch (OTEL_BSP_SCHEDULE_DELAY).
	Delay time.Duration
	// Attributes are the process's attributes, service.name among them (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES).
	Attributes []attribute.KeyValue
	// Version is the version of Weir.
	Version string
}

// MostQueued is the largest QueueSize. A span takes about 2 KB, and at most 6 KB.
const MostQueued = 1 << 16

// DefaultConfig returns OpenTelemetry's defaults, with the service name weir.
func DefaultConfig() Config {
	return Config{
		Protocol:      GRPC,
		Endpoint:      "http://localhost:4317",
		Timeout:       10 * time.Second,
		ExportTimeout: 30 * time.Second,
		Sampler:       sdktrace.ParentBased(sdktrace.AlwaysSample()),
		QueueSize:     2048,
		BatchSize:     512,
		Delay:         5 * time.Second,
		Attributes:    []attribute.KeyValue{attribute.String(serviceName, "weir")},
	}
}

// NewExporter returns an exporter for a valid configuration. It does not connect before Start.
func NewExporter(cfg *Config) Exporter {
	secure := cfg.TLS
	if !strings.HasPrefix(cfg.Endpoint, "https:") {
		secure = nil // it would override the scheme
	}
	if cfg.Protocol == HTTP {
		options := []otlptracehttp.Option{
			otlptracehttp.WithEndpointURL(cfg.Endpoint), otlptracehttp.WithHeaders(cfg.Headers), otlptracehttp.WithTimeout(cfg.Timeout),
			otlptracehttp.WithCompression(otlptracehttp.NoCompression),
		}
		if secure != nil {
			options = append(options, otlptracehttp.WithTLSClientConfig(secure))
		}
		if cfg.Gzip {
			options = append(options, otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
		}
		return otlptrace.NewUnstarted(otlptracehttp.NewClient(options...))
	}
	options := []otlptracegrpc.Option{
		otlptracegrpc.WithEndpointURL(cfg.Endpoint), otlptracegrpc.WithHeaders(cfg.Headers), otlptracegrpc.WithTimeout(cfg.Timeout),
	}
	if secure != nil {
		options = append(options, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(secure)))
	}
	if cfg.Gzip {
		options = append(options, otlptracegrpc.WithCompressor("gzip"))
	}
	return otlptrace.NewUnstarted(otlptracegrpc.NewClient(options...))
}
