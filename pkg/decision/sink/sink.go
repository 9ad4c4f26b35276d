package sink

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/decision"
)

// mostRecords is the number of records in the buffer.
const mostRecords = 1024

// retryAfter is the time before the next attempt after the file could not be written.
const retryAfter = time.Second

// lastWrites is the longest time that writing takes at the end.
const lastWrites = time.Second

// Sink takes decision records, and writes them in the goroutine of Run.
type Sink struct {
	log    logr.Logger
	buffer chan *decision.Record
	config atomic.Pointer[Config]
	result *prometheus.CounterVec

	written, dropped, failed prometheus.Counter
	failure                  atomic.Pointer[error] // of the last record; nil: it was written

	// Used by Run's goroutine only.
	file  *file     // nil: none is open
	tried time.Time // when a file last failed
}

// New returns a sink for a valid configuration. Its metrics are in Collector.
func New(cfg Config, log logr.Logger) *Sink {
	s := &Sink{log: log, buffer: make(chan *decision.Record, mostRecords)}
	s.result = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "weir", Name: "decision_records_total",
		Help: "Decision records by result: written, dropped (the sink was too slow) or failed (the file could not be written).",
	}, []string{"result"})
	s.written, s.dropped, s.failed = s.result.WithLabelValues("written"), s.result.WithLabelValues("dropped"), s.result.WithLabelValues("failed")
	s.Reconfigure(cfg)
	return s
}

// Collector returns the sink's metrics.
func (s *Sink) Collector() prometheus.Collector { return s.result }

// Reconfigure changes the configuration for records written from now on.
func (s *Sink) Reconfigure(cfg Config) { s.config.Store(&cfg) }

// Put takes a record, which must not change afterwards. It never waits, and may be called by any goroutine.
func (s *Sink) Put(r *decision.Record) {
	select {
	case s.buffer <- r:
	default:
		s.dropped.Inc()
	}
}

// Run writes records until ctx is done, and then the rest of the buffer, for at most lastWrites.
func (s *Sink) Run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.loop(ctx)
	}()
	<-ctx.Done()
	select {
	case <-done:
	case <-time.After(lastWrites): // the disk hangs
	}
}

func (s *Sink) loop(ctx context.Context) {
	defer s.closeFile()
	for {
		select {
		case r := <-s.buffer:
			s.write(r)
		case <-ctx.Done():
			s.rest()
			return
		}
	}
}

// rest writes the records in the buffer.
func (s *Sink) rest() {
	for {
		select {
		case r := <-s.buffer:
			s.write(r)
		default:
			return
		}
	}
}

// write writes one record.
func (s *Sink) write(r *decision.Record) {
	cfg := s.config.Load()
	if cfg.Kind == Log {
		s.closeFile()
		s.log.Info("decision", "record", r)
		s.failure.Store(nil)
		s.written.Inc()
		return
	}
	if err := s.toFile(cfg, append(r.JSON(), '\n')); err != nil {
		s.failed.Inc()
		return
	}
	s.failure.Store(nil)
	s.written.Inc()
}

// Failure returns the reason why the last record was lost; nil if it was written.
func (s *Sink) Failure() error {
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// toFile appends a line to the file of a configuration.
func (s *Sink) toFile(cfg *Config, line []byte) error {
	if s.file != nil && s.file.path != cfg.Path {
		s.closeFile()
	}
	if s.file == nil {
		if time.Since(s.tried) < retryAfter {
			return errNotOpen
		}
		f, err := open(cfg.Path)
		if err != nil {
			return s.fails(err)
		}
		s.file = f
	}
	if err := s.file.append(line, cfg.MaxBytes); err != nil {
		s.closeFile()
		return s.fails(err)
	}
	return nil
}

// fails logs the reason why the file could not be written, at most once in retryAfter.
func (s *Sink) fails(err error) error {
	s.tried = time.Now()
	s.failure.Store(&err)
	s.log.Error(err, "decisions.file cannot be written: records are lost until it can")
	return err
}

func (s *Sink) closeFile() {
	if s.file != nil {
		_ = s.file.Close() // each record was written when it came
		s.file = nil
	}
}
