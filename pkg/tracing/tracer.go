package tracing

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// scope names the library that makes the spans.
const scope = "github.com/weir-epp/weir"

// Tracer makes spans, and exports them in the goroutine of Run. Make it with New.
type Tracer struct {
	tracer   trace.Tracer
	queue    *queue
	exporter Exporter
}

// Exporter sends spans to a collector. *otlptrace.Exporter is one.
type Exporter interface {
	sdktrace.SpanExporter
	// Start is called once, before the first export.
	Start(ctx context.Context) error
}

// New returns a tracer whose spans go to the exporter. It starts nothing.
func New(cfg Config, exporter Exporter, log logr.Logger) *Tracer {
	t := &Tracer{queue: newQueue(cfg, exporter, log), exporter: exporter}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(cfg.Sampler),
		sdktrace.WithResource(resource.NewSchemaless(cfg.resource()...)),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{
			AttributeValueLengthLimit: -1, AttributeCountLimit: 32, // span.go bounds the values
		}),
		sdktrace.WithSpanProcessor(t.queue),
	)
	t.tracer = provider.Tracer(scope, trace.WithInstrumentationVersion(cfg.Version))
	return t
}

// Collectors returns the tracer's metrics.
func (t *Tracer) Collectors() []prometheus.Collector {
	return []prometheus.Collector{t.queue.exported, t.queue.dropped, t.queue.failures}
}

// Run exports spans until ctx is done, and then the rest of the queue, for at most lastExports. It returns after its
// goroutines have ended.
func (t *Tracer) Run(ctx context.Context) error {
	exports, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	if err := t.exporter.Start(exports); err != nil { // even if ctx is done already
		return fmt.Errorf("tracing: %w", err)
	}
	t.queue.run(ctx, exports, cut)
	if err := t.exporter.Shutdown(exports); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("tracing: %w", err)
	}
	return nil
}

// resource returns the attributes of the process.
func (c *Config) resource() []attribute.KeyValue {
	return append([]attribute.KeyValue{
		attribute.String("telemetry.sdk.name", "opentelemetry"), attribute.String("telemetry.sdk.language", "go"),
		attribute.String("service.version", c.Version),
	}, c.Attributes...)
}
