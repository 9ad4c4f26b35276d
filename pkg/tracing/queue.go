package tracing

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// lastExports is the longest time that exports take at the end.
const lastExports = 2 * time.Second

// The values of the label reason of dropped spans.
const (
	queueFull    = "queue-full"
	exportFailed = "export-failed"
)

// queue is the bounded queue of spans that wait for export. It implements sdktrace.SpanProcessor.
type queue struct {
	// Immutable.
	cfg      Config
	exporter sdktrace.SpanExporter
	log      logr.Logger
	spans    chan sdktrace.ReadOnlySpan

	exported, failures prometheus.Counter
	dropped            *prometheus.CounterVec
	full, lost         prometheus.Counter

	// Used by run's goroutine only.
	batch []sdktrace.ReadOnlySpan
	fails bool // the last export failed
}

func newQueue(cfg Config, exporter sdktrace.SpanExporter, log logr.Logger) *queue {
	q := &queue{
		cfg: cfg, exporter: exporter, log: log, spans: make(chan sdktrace.ReadOnlySpan, cfg.QueueSize),
		batch: make([]sdktrace.ReadOnlySpan, 0, cfg.BatchSize),
		exported: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_tracing_spans_exported_total", Help: "Spans that the collector has accepted.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_tracing_export_failures_total", Help: "Batches of spans that the collector did not accept completely.",
		}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_tracing_spans_dropped_total",
			Help: "Spans dropped by reason: queue-full (the collector was too slow) or export-failed (the collector did not accept their batch).",
		}, []string{"reason"}),
	}
	q.full, q.lost = q.dropped.WithLabelValues(queueFull), q.dropped.WithLabelValues(exportFailed)
	return q
}

// OnStart implements sdktrace.SpanProcessor.
func (*queue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd takes a span, or drops it if the queue is full. It never waits.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	select {
	case q.spans <- s:
	default:
		q.full.Inc()
	}
}

// Shutdown implements sdktrace.SpanProcessor. The end of Run's context ends the queue.
func (*queue) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (*queue) ForceFlush(context.Context) error { return nil }

// run exports batches in the context exports until ctx is done, and then the rest. After lastExports it calls cut,
// which ends the context exports.
func (q *queue) run(ctx, exports context.Context, cut func()) {
	due := time.NewTimer(q.cfg.Delay)
	due.Stop()
	defer due.Stop()
	var last *time.Timer
	ending := make(chan struct{})
	forget := context.AfterFunc(ctx, func() {
		last = time.AfterFunc(lastExports, cut)
		close(ending)
	})
	defer forget()
	for {
		select {
		case s := <-q.spans:
			if q.batch = append(q.batch, s); len(q.batch) == 1 {
				due.Reset(q.cfg.Delay)
			}
			if len(q.batch) == q.cfg.BatchSize {
				q.export(exports)
				due.Stop()
			}
		case <-due.C:
			q.export(exports)
		case <-ending:
			q.rest(exports)
			last.Stop()
			return
		}
	}
}

// rest exports the remaining spans.
func (q *queue) rest(ctx context.Context) {
	for {
		select {
		case s := <-q.spans:
			if q.batch = append(q.batch, s); len(q.batch) == q.cfg.BatchSize {
				q.export(ctx)
			}
		default:
			if len(q.batch) > 0 {
				q.export(ctx)
			}
			return
		}
	}
}

// export exports the batch, and empties it.
func (q *queue) export(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, q.cfg.ExportTimeout)
	defer cancel()
	err := q.exporter.ExportSpans(ctx, q.batch)
	n := float64(len(q.batch))
	clear(q.batch)
	q.batch = q.batch[:0]
	switch {
	case err != nil:
		q.failures.Inc()
		q.lost.Add(n)
		if !q.fails {
			q.log.Info("WARNING: spans are lost, because the collector does not accept them", "endpoint", q.cfg.Endpoint, "error", err.Error())
		}
	default:
		q.exported.Add(n)
		if q.fails {
			q.log.Info("the collector accepts spans again", "endpoint", q.cfg.Endpoint)
		}
	}
	q.fails = err != nil
}
