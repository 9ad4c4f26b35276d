package flowcontrol

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// metrics are the seed's names under the prefix weir_, and ours. What the requests' own goroutines know is counted by
// them, outside the lock; what the lock guards is read when it is scraped.
type metrics struct {
	limit int

	mu sync.Mutex // to add to the maps, which are replaced whole: they are read with each request

	labels atomic.Pointer[map[labels]*series]
	flows  atomic.Pointer[map[string]prometheus.Counter] // of served, by flow
	others prometheus.Counter                            // of served, for all flows beyond the limit

	outcomes    [NumOutcomes]prometheus.Counter
	requests    *prometheus.CounterVec
	length      *prometheus.GaugeVec
	latency     *prometheus.HistogramVec
	stock       *prometheus.GaugeVec
	bypass      *prometheus.CounterVec
	expired     *prometheus.CounterVec
	cancelled   *prometheus.CounterVec
	pushErrors  *prometheus.CounterVec
	served      *prometheus.CounterVec
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
		limit: c.config.MaxLabels,
		requests: counter("requests_total",
			"Requests by how they ended; each request is counted once.", "outcome"),
		length: gauge("queue_length", "Requests that wait in the queue now."),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "weir", Name: "queue_latency_seconds",
			Help: "Time in the queue of requests that waited there, observed at their end; success: dispatched and " +
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
			"Requests whose client went away, or whose deadline passed, before dispatch.", byModel...),
		pushErrors: counter("queue_push_errors_total",
			"Requests that the queue did not take.", append(byModel, "error_type")...),
		served: counter("flow_served_cost_total",
			"Cost of the requests dispatched, by flow: what each flow got.", "flow"),
		tiers:    newTierMetrics(),
		accounts: newAccounts(c),
	}
	m.others = m.served.WithLabelValues(overflow)
	m.labels.Store(&map[labels]*series{})
	m.flows.Store(&map[string]prometheus.Counter{})
	for o := range m.outcomes {
		m.outcomes[o] = m.requests.WithLabelValues(Outcome(o).String())
	}
	m.collectable = []prometheus.Collector{
		m.requests, m.length, m.latency, m.stock, m.bypass, m.expired, m.cancelled, m.pushErrors, m.served,
		m.tiers.requests, m.tiers.wait,
		m.accounts,
	}
	return m
}

// Collectors are the controller's metrics, for the registry of the wiring.
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

// of finds the series of a model; beyond the limit all share one.
func (m *metrics) of(model, target string) *series {
	key := labels{model, target}
	if s := (*m.labels.Load())[key]; s != nil {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := *m.labels.Load()
	if len(known) >= m.limit || !presentable(model) || !presentable(target) {
		key = labels{overflow, overflow}
	}
	s := known[key]
	if s != nil {
		return s
	}
	s = &series{
		metrics: m, model: key.model, target: key.target,
		length:      m.length.WithLabelValues(key.model, key.target),
		stock:       m.stock.WithLabelValues(key.model, key.target),
		bypass:      m.bypass.WithLabelValues(key.model, key.target),
		expired:     m.expired.WithLabelValues(key.model, key.target),
		cancelled:   m.cancelled.WithLabelValues(key.model, key.target),
		latencyOK:   m.latency.WithLabelValues(key.model, key.target, "true"),
		latencyFail: m.latency.WithLabelValues(key.model, key.target, "false"),
	}
	more := maps.Clone(known)
	more[key] = s
	m.labels.Store(&more)
	return s
}

// presentable says whether a name that a client chose may be a label value.
func presentable(name string) bool {
	return len(name) <= maxLabelLength && strings.ToValidUTF8(name, "") == name
}

// servedTo is the counter of a flow; beyond the limit all share one.
func (m *metrics) servedTo(flow string) prometheus.Counter {
	known := *m.flows.Load()
	if c := known[flow]; c != nil {
		return c
	}
	if len(known) >= m.limit || !presentable(flow) {
		return m.others
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known = *m.flows.Load()
	if c := known[flow]; c != nil {
		return c
	}
	if len(known) >= m.limit {
		return m.others
	}
	c := m.served.WithLabelValues(flow)
	more := maps.Clone(known)
	more[flow] = c
	m.flows.Store(&more)
	return c
}

func (s *series) waiting(n float64) { s.length.Add(n) }

func (s *series) bypassed(l *Lease) {
	s.bypass.Inc()
	s.granted(l)
}

func (s *series) granted(l *Lease) {
	s.stock.Inc()
	s.metrics.servedTo(l.queued.Flow).Add(float64(l.queued.Cost))
}

// completed counts the end of a dispatched request.
func (s *series) completed(l *Lease, done Completion) {
	s.stock.Dec()
	if done.Unsent {
		s.rejected(l, &Rejection{Err: context.Canceled, Outcome: OutcomeClientCancelled})
		return
	}
	s.metrics.outcomes[OutcomeDispatched].Inc()
	l.tier.ended(OutcomeDispatched, l)
	if l.bypass {
		return
	}
	if done.Status > 0 && done.Status < 500 {
		s.latencyOK.Observe(l.waited.Seconds())
	} else {
		s.latencyFail.Observe(l.waited.Seconds())
	}
}

// preempted counts a dispatched request that was preempted; its stock is given back already.
func (s *series) preempted(l *Lease, r *Rejection) {
	s.metrics.outcomes[r.Outcome].Inc()
	l.tier.ended(r.Outcome, l)
	if !l.bypass {
		s.latencyFail.Observe(l.waited.Seconds())
	}
}

// rejected counts a request that ended without a lease; l is nil or was not queued, or has waited.
func (s *series) rejected(l *Lease, r *Rejection) *Rejection {
	s.metrics.outcomes[r.Outcome].Inc()
	if l != nil {
		l.tier.ended(r.Outcome, l)
		if l.waited > 0 {
			s.latencyFail.Observe(l.waited.Seconds())
		}
	}
	switch r.Outcome {
	case OutcomeTTLExpired:
		s.expired.Inc()
	case OutcomeClientCancelled, OutcomeDeadlineExceeded:
		s.cancelled.Inc()
	case OutcomeFlowFull, OutcomeQueueFull, OutcomeInternal:
		s.metrics.pushErrors.WithLabelValues(s.model, s.target, errorType(r.Err)).Inc()
	case OutcomeDispatched, OutcomeShed, OutcomeDisplaced, OutcomePreempted, OutcomeNoEndpoint, OutcomeDraining,
		OutcomeBadRequest, OutcomeTooLarge:
	}
	return r
}

// errorType is the seed's name of a push error.
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
