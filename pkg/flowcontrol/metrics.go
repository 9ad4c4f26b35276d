package flowcontrol

import (
	"context"
	"errors"
	"math/bits"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weir-epp/weir/internal/printable"
	"github.com/weir-epp/weir/pkg/fairqueue"
)

// metrics are the seed's metrics under the prefix weir_, and Weir's own. Requests' goroutines count their own events,
// outside the lock; a scrape reads the state guarded by the lock.
type metrics struct {
	controller *RequestQueueController

	models  labelled[labels, *series]
	flows   flowMetrics
	classes classMetrics

	outcomes    [NumOutcomes]prometheus.Counter
	requests    *prometheus.CounterVec
	length      *prometheus.GaugeVec
	latency     *prometheus.HistogramVec
	stock       *prometheus.GaugeVec
	bypass      *prometheus.CounterVec
	expired     *prometheus.CounterVec
	cancelled   *prometheus.CounterVec
	pushErrors  *prometheus.CounterVec
	tiers       tierMetrics
	accounts    *accounts
	collectable []prometheus.Collector
}

type labels struct{ model, target string }

// overflow is the label value of everything beyond the limit.
const overflow = "other"

// maxLabelLength bounds one label value, in bytes.
const maxLabelLength = 128

func newMetrics(c *RequestQueueController) *metrics {
	byModel := []string{"model", "target_model"}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "weir", Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "weir", Name: name, Help: help}, byModel)
	}
	m := &metrics{
		controller: c,
		requests: counter("requests_total",
			"Ended requests by outcome; each request is counted once.", "outcome"),
		length: gauge("queue_length", "Requests that wait in the queue now."),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "weir", Name: "queue_latency_seconds",
			Help: "Time in the queue of requests that waited, observed at their end; success: dispatched and " +
				"answered with a status below 500. Bypasses are not observed.",
			Buckets: []float64{
				.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120,
			},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		}, append(byModel, "success")),
		stock:  gauge("stock_level", "Leases held now: requests dispatched and not complete."),
		bypass: counter("bypass_total", "Requests dispatched without waiting in the queue.", byModel...),
		expired: counter("requests_expired_total",
			"Requests whose TTL passed in the queue.", byModel...),
		cancelled: counter("requests_cancelled_total",
			"Requests whose client disconnected, or whose deadline passed, before dispatch.", byModel...),
		pushErrors: counter("queue_push_errors_total",
			"Requests that the queue refused.", append(byModel, "error_type")...),
		tiers:    newTierMetrics(),
		accounts: newAccounts(c),
	}
	m.flows.init(c.config.MaxLabels)
	m.classes.init(c.config.MaxLabels)
	m.models.bound(c.config.MaxLabels)
	m.models.hash = labels.hash
	m.models.add, m.models.drop, m.models.idle = m.newSeries, m.dropSeries, (*series).idle
	m.models.others = sync.OnceValue(func() *series { return m.newSeries(labels{overflow, overflow}) })
	m.models.others() // before the first request: for an autoscaler, a sum over no series is not 0
	for o := range m.outcomes {
		m.outcomes[o] = m.requests.WithLabelValues(Outcome(o).String())
	}
	m.collectable = []prometheus.Collector{
		m.requests, m.length, m.latency, m.stock, m.bypass, m.expired, m.cancelled, m.pushErrors,
		m.flows.actual, m.flows.wrong, m.flows.wait, newFlowHistory(&m.flows),
		m.tiers.requests, m.tiers.wait, m.classes.length, m.classes.tokens, m.classes.backpressure, m.classes.wait,
		m.accounts,
	}
	return m
}

// Collectors returns the controller's metrics, for the wiring's registry.
func (c *RequestQueueController) Collectors() []prometheus.Collector { return c.metrics.collectable }

// series are the metrics of one model and target model.
type series struct {
	metrics                *metrics
	model, target          string
	length, stock          prometheus.Gauge
	bypass                 prometheus.Counter
	expired, cancelled     prometheus.Counter
	latencyOK, latencyFail prometheus.Observer
}

// of returns the series of a model; models beyond the limit share one.
func (m *metrics) of(model, target string) *series {
	return m.models.get(labels{model, target}, labels.presentable)
}

// prune makes room for new label values if there is none.
func (m *metrics) prune(now time.Time) {
	m.models.prune(now)
	m.flows.known.prune(now)
	m.classes.known.prune(now)
}

func (m *metrics) newSeries(l labels) *series {
	return &series{
		metrics: m, model: l.model, target: l.target,
		length:      m.length.WithLabelValues(l.model, l.target),
		stock:       m.stock.WithLabelValues(l.model, l.target),
		bypass:      m.bypass.WithLabelValues(l.model, l.target),
		expired:     m.expired.WithLabelValues(l.model, l.target),
		cancelled:   m.cancelled.WithLabelValues(l.model, l.target),
		latencyOK:   m.latency.WithLabelValues(l.model, l.target, "true"),
		latencyFail: m.latency.WithLabelValues(l.model, l.target, "false"),
	}
}

// dropSeries removes a model's series from the exposition.
func (m *metrics) dropSeries(l labels, _ *series) {
	for _, vec := range []interface{ DeleteLabelValues(...string) bool }{
		m.length, m.stock, m.bypass, m.expired, m.cancelled,
	} {
		vec.DeleteLabelValues(l.model, l.target)
	}
	m.latency.DeleteLabelValues(l.model, l.target, "true")
	m.latency.DeleteLabelValues(l.model, l.target, "false")
	for _, kind := range pushErrorTypes {
		m.pushErrors.DeleteLabelValues(l.model, l.target, kind)
	}
}

// idle reports whether no request of the model is waiting or in flight.
func (s *series) idle() bool { return gaugeOf(s.length) == 0 && gaugeOf(s.stock) == 0 }

func gaugeOf(g prometheus.Gauge) float64 {
	var m dto.Metric
	if err := g.Write(&m); err != nil {
		return 1 // unknown, so it stays
	}
	return m.GetGauge().GetValue()
}

func countOf(c prometheus.Counter) uint64 {
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		return 0
	}
	return uint64(m.GetCounter().GetValue())
}

func (l labels) hash() uint64 { return hashOf(l.model) ^ bits.RotateLeft64(hashOf(l.target), 1) }

func (l labels) presentable() bool { return presentable(l.model) && presentable(l.target) }

// presentable reports whether a name chosen by a client may be a label value. Operators read metrics at a terminal:
// control characters would command it, and bidirectional characters would show other names.
func presentable(name string) bool {
	return name != overflow && len(name) <= maxLabelLength && utf8.ValidString(name) && !strings.ContainsFunc(name, printable.Commands)
}

// dispatched counts a request that has its lease.
func (s *series) dispatched(w *waiter) {
	if w.Bypassed() {
		s.bypass.Inc()
	}
	s.stock.Inc()
	w.flowSeries.dispatched(w)
}

// completed counts the end of a dispatched request.
func (s *series) completed(w *waiter, done *Completion) {
	s.stock.Dec()
	if done.Unsent {
		s.rejected(w, &Rejection{Err: context.Canceled, Outcome: OutcomeClientCancelled})
		return
	}
	s.metrics.outcomes[OutcomeDispatched].Inc()
	w.tier.ended(OutcomeDispatched, w)
	w.flowSeries.ended(OutcomeDispatched, w)
	if w.Bypassed() {
		return
	}
	if done.Status > 0 && done.Status < 500 {
		s.latencyOK.Observe(w.Waited().Seconds())
	} else {
		s.latencyFail.Observe(w.Waited().Seconds())
	}
}

// preempted counts a dispatched request that was preempted; its lease is settled already.
func (s *series) preempted(w *waiter, r *Rejection) {
	s.metrics.outcomes[r.Outcome].Inc()
	w.tier.ended(r.Outcome, w)
	w.flowSeries.ended(r.Outcome, w)
	if !w.Bypassed() {
		s.latencyFail.Observe(w.Waited().Seconds())
	}
}

// rejected counts a request that ended without a lease; w is nil if the request never reached the controller.
func (s *series) rejected(w *waiter, r *Rejection) *Rejection {
	s.metrics.outcomes[r.Outcome].Inc()
	if w != nil {
		w.tier.ended(r.Outcome, w)
		w.flowSeries.ended(r.Outcome, w)
		if w.WasQueued() {
			s.latencyFail.Observe(w.Waited().Seconds())
		}
	}
	switch r.Outcome {
	case OutcomeTTLExpired:
		s.expired.Inc()
	case OutcomeClientCancelled, OutcomeDeadlineExceeded:
		s.cancelled.Inc()
	case OutcomeFlowFull, OutcomeQueueFull, OutcomeInternal:
		s.metrics.classes.countBackpressure(s.model, r.Err)
		s.metrics.pushErrors.WithLabelValues(s.model, s.target, errorType(r.Err)).Inc()
	case OutcomeDispatched, OutcomeShed, OutcomeDisplaced, OutcomePreempted, OutcomeNoEndpoint, OutcomeDraining,
		OutcomeBadRequest, OutcomeTooLarge, OutcomeBodyTimeout, OutcomeNoMemory, OutcomeUnknownModel, OutcomeQuotaExceeded, OutcomeUnsupported:
	}
	return r
}

// pushErrorTypes are all values of errorType.
var pushErrorTypes = []string{"ErrTooManyFlows", "ErrInsufficientFlowCapacity", "internal"}

// errorType returns the seed's name of a push error.
func errorType(err error) string {
	switch {
	case errors.Is(err, fairqueue.ErrTooManyFlows):
		return "ErrTooManyFlows"
	case errors.Is(err, fairqueue.ErrInsufficientFlowCapacity):
		return "ErrInsufficientFlowCapacity"
	default:
		return "internal"
	}
}
