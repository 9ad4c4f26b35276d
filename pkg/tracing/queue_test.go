package tracing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/weir-epp/weir/pkg/extproc"
)

// fake is an exporter that takes, fails or hangs.
type fake struct {
	mu      sync.Mutex    // guards the next three
	batches []int         // their sizes
	err     error         // of each export
	hangs   bool          // until its context is done
	takes   time.Duration // of an export
	ended   bool
	unready error
}

func (f *fake) Start(context.Context) error { return f.unready }

func (f *fake) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	f.mu.Lock()
	f.batches = append(f.batches, len(spans))
	hangs, err := f.hangs, f.err
	f.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	select {
	case <-time.After(f.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	return err
}

// heal has the exporter take spans from the next export on.
func (f *fake) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hangs, f.err = false, nil
}

// taken returns the sizes of the batches so far.
func (f *fake) taken() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.batches)
}

func (f *fake) Shutdown(context.Context) error { f.ended = true; return nil }

// bench is a tracer with a queue of 10 spans, which go in batches of 4 or after 5 s.
type bench struct {
	*Tracer
	t     *testing.T
	fake  *fake
	lines []string
	stop  context.CancelFunc
	done  chan error
}

func inBubble(t *testing.T, f *fake, play func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, fake: f, done: make(chan error, 1)}
		cfg := DefaultConfig()
		cfg.QueueSize, cfg.BatchSize = 10, 4
		b.Tracer = New(cfg, f, funcr.New(func(_, args string) { b.lines = append(b.lines, args) }, funcr.Options{}))
		ctx, stop := context.WithCancel(t.Context())
		b.stop = stop
		go func() { b.done <- b.Run(ctx) }()
		synctest.Wait()
		play(b)
		stop()
		if err := <-b.done; err != nil {
			t.Error(err)
		}
		if !f.ended {
			t.Error("the exporter was not shut down")
		}
	})
}

// span ends n requests that have one span each.
func (b *bench) span(n int) {
	for range n {
		r := rejected()
		r.Parent = extproc.Parent{}
		b.Ended(r)
	}
	synctest.Wait()
}

// counts checks the metrics.
func (b *bench) counts(exported, full, lost, failures float64) {
	b.t.Helper()
	got := fmt.Sprint(testutil.ToFloat64(b.queue.exported), testutil.ToFloat64(b.queue.dropped.WithLabelValues("queue-full")),
		testutil.ToFloat64(b.queue.dropped.WithLabelValues("export-failed")), testutil.ToFloat64(b.queue.failures))
	if want := fmt.Sprint(exported, full, lost, failures); got != want {
		b.t.Errorf("exported, queue-full, export-failed, failures: %s, want %s", got, want)
	}
}

// A batch goes when it is full, or when its first span has waited for the delay.
func TestBatches(t *testing.T) {
	f := &fake{}
	inBubble(t, f, func(b *bench) {
		b.span(1)
		time.Sleep(3 * time.Second)
		b.span(2)
		time.Sleep(2*time.Second - time.Nanosecond)
		synctest.Wait()
		if len(f.taken()) != 0 {
			t.Errorf("batches of %v before the delay was over", f.taken())
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !slices.Equal(f.taken(), []int{3}) {
			t.Errorf("batches of %v after the delay", f.taken())
		}
		b.span(4)
		if !slices.Equal(f.taken(), []int{3, 4}) {
			t.Errorf("batches of %v: a full one waited", f.taken())
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(f.taken()) != 2 {
			t.Errorf("batches of %v: an empty one", f.taken())
		}
		b.span(1)
		time.Sleep(5*time.Second - time.Nanosecond)
		synctest.Wait()
		if len(f.taken()) != 2 {
			t.Errorf("batches of %v: the delay began before the span", f.taken())
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		b.counts(8, 0, 0, 0)
	})
}

// A collector that hangs delays nobody: spans beyond the queue are dropped and counted, and its batch after the timeout.
func TestCollectorHangs(t *testing.T) {
	f := &fake{hangs: true}
	inBubble(t, f, func(b *bench) {
		begun := time.Now()
		b.span(4) // under way
		b.span(10)
		b.counts(0, 0, 0, 0)
		b.span(7)
		if time.Since(begun) != 0 {
			t.Errorf("requests waited for %s", time.Since(begun))
		}
		b.counts(0, 7, 0, 0)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		b.counts(0, 7, 4, 1)
		f.heal()
		time.Sleep(35 * time.Second) // the batch that hangs, and the delay of the last one
		synctest.Wait()
		b.counts(6, 7, 8, 2)
	})
}

// A collector that fails is told in the log once, and once when it takes spans again.
func TestCollectorFails(t *testing.T) {
	f := &fake{err: errors.New("connection refused")}
	inBubble(t, f, func(b *bench) {
		b.span(4)
		b.span(4)
		b.counts(0, 0, 8, 2)
		f.heal()
		b.span(4)
		b.span(4)
		b.counts(8, 0, 8, 2)
		log := strings.Join(b.lines, "\n")
		if strings.Count(log, "WARNING") != 1 || !strings.Contains(log, "connection refused") || !strings.Contains(log, "http://localhost:4317") ||
			strings.Count(log, "again") != 1 || len(b.lines) != 2 {
			t.Errorf("log:\n%s", log)
		}
	})
}

// At the end the rest is exported, for 2 s at most.
func TestLastSpans(t *testing.T) {
	f := &fake{takes: 1500 * time.Millisecond}
	inBubble(t, f, func(b *bench) {
		b.span(10)
		begun := time.Now()
		b.stop()
		err := <-b.done
		b.done <- err
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("the end took %s", took)
		}
		b.counts(4, 0, 6, 2) // the first batch took 1.5 s, which leaves the others half a second
	})
	f = &fake{}
	inBubble(t, f, func(b *bench) {
		b.span(7)
		b.stop()
		b.done <- <-b.done
		b.counts(7, 0, 0, 0)
	})
	f = &fake{hangs: true}
	inBubble(t, f, func(b *bench) {
		b.span(4)
		b.span(10)
		time.Sleep(10 * time.Second)
		begun := time.Now()
		b.stop()
		b.done <- <-b.done
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("the end took %s", took)
		}
		b.counts(0, 0, 14, 4)
	})
}

// An exporter that cannot start is an error.
func TestExporterDoesNotStart(t *testing.T) {
	tracer := New(DefaultConfig(), &fake{unready: errors.New("bad address")}, funcr.New(func(string, string) {}, funcr.Options{}))
	if err := tracer.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "bad address") {
		t.Errorf("got %v", err)
	}
}

// Spans that nobody takes fill the queue, and no more memory.
func TestQueueIsBounded(t *testing.T) {
	cfg := DefaultConfig()
	tracer := New(cfg, &fake{}, funcr.New(func(string, string) {}, funcr.Options{}))
	for range 2 * cfg.QueueSize {
		tracer.Ended(served())
	}
	if got := len(tracer.queue.spans); got != cfg.QueueSize {
		t.Errorf("%d spans wait", got)
	}
	if got := testutil.ToFloat64(tracer.queue.dropped.WithLabelValues(queueFull)); got != float64(3*cfg.QueueSize) {
		t.Errorf("%v were dropped", got)
	}
}
