package flowcontrol

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// flowMetrics are the metrics by flow, for a bounded number of flows. A flow costs five series, and one for each kind of
// rejection; a histogram would cost twenty.
type flowMetrics struct {
	known      labelled[string, *flowSeries]
	cost       *prometheus.CounterVec
	actual     *prometheus.CounterVec
	wrong      *prometheus.CounterVec
	wait       *prometheus.SummaryVec // without quantiles: sum and count only
	rejections *prometheus.CounterVec
}

func (m *flowMetrics) init(limit int) {
	m.cost = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "weir", Name: "flow_served_cost_total",
		Help: "Cost of the requests dispatched, by flow, as charged then: with cost: tokens, the estimates.",
	}, []string{"flow"})
	m.actual = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "weir", Name: "flow_actual_cost_total",
		Help: "Real cost of a flow's requests that have ended, where it became known.",
	}, []string{"flow"})
	m.wrong = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "weir", Name: "flow_misestimated_cost_total",
		Help: "How much the same requests were charged too much (direction over) or too little (under) at dispatch.",
	}, []string{"flow", "direction"})
	m.wait = prometheus.NewSummaryVec(prometheus.SummaryOpts{
		Namespace: "weir", Name: "flow_queue_wait_seconds",
		Help: "Time in the queue of a flow's requests that waited there, with any outcome, observed at their end.",
	}, []string{"flow"})
	m.rejections = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "weir", Name: "flow_rejections_total",
		Help: "Requests of a flow that were not served, by how they ended; flow is empty where it was not yet known.",
	}, []string{"flow", "outcome"})
	m.known.bound(limit)
	m.known.hash = hashOf
	m.known.add = m.series
	m.known.drop = func(flow string, s *flowSeries) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dropped = true
		m.cost.DeleteLabelValues(flow)
		m.actual.DeleteLabelValues(flow)
		m.wrong.DeletePartialMatch(prometheus.Labels{"flow": flow})
		m.wait.DeleteLabelValues(flow)
		m.rejections.DeletePartialMatch(prometheus.Labels{"flow": flow})
	}
	m.known.idle = func(*flowSeries) bool { return true }
	m.known.others = sync.OnceValue(func() *flowSeries { return m.series(overflow) })
}

// of returns the series of a flow; flows beyond the limit share one.
func (m *flowMetrics) of(flow string) *flowSeries { return m.known.get(flow, presentable) }

// flowSeries are the series of one flow. In the explorer, which has no metrics, only the served cost exists.
type flowSeries struct {
	flow       string
	served     prometheus.Counter
	wait       prometheus.Observer
	rejections *prometheus.CounterVec

	actual, over, under prometheus.Counter

	others  func() *flowSeries // the series of flows beyond the limit
	mu      sync.Mutex
	dropped bool // guarded by mu; a request of the flow may be there longer than its series
}

func (m *flowMetrics) series(flow string) *flowSeries {
	return &flowSeries{
		flow: flow, others: m.known.others,
		served: m.cost.WithLabelValues(flow), wait: m.wait.WithLabelValues(flow), rejections: m.rejections,
		actual: m.actual.WithLabelValues(flow),
		over:   m.wrong.WithLabelValues(flow, "over"), under: m.wrong.WithLabelValues(flow, "under"),
	}
}

// ended counts the end of a request that was offered. A request that was dispatched at once is not counted here.
func (m *flowMetrics) ended(o Outcome, w *waiter) {
	if o == OutcomeDispatched && !w.WasQueued() {
		return
	}
	s := w.flowSeries
	if s == nil {
		s = m.of(w.Flow())
	}
	if w.WasQueued() {
		s.waited(w.Waited())
	}
	s.rejected(o)
}

func (s *flowSeries) waited(d time.Duration) {
	if s.wait != nil {
		s.wait.Observe(d.Seconds())
	}
}

// rejected counts a rejection, which makes a series: where those of the flow were dropped, that of the flows beyond the
// limit, since nobody would drop it again.
func (s *flowSeries) rejected(o Outcome) {
	if o == OutcomeDispatched || s.rejections == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped {
		s.others().rejected(o)
		return
	}
	s.rejections.WithLabelValues(s.flow, o.String()).Inc()
}

// cost counts what a request has really cost, once, and how wrong the charge at its dispatch was.
func (s *flowSeries) cost(charged, actual fairqueue.Cost) {
	if s == nil || s.actual == nil {
		return
	}
	s.actual.Add(float64(actual))
	s.over.Add(float64(max(0, charged-actual)))
	s.under.Add(float64(max(0, actual-charged)))
}
