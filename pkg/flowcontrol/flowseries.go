package flowcontrol

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/fairqueue"
)

// flowMetrics are the metrics by flow, for a bounded number of flows with at most seriesOfFlow series each. The client
// library keeps the metrics made here; flowHistory collects the others from the flows' own counters.
type flowMetrics struct {
	known  labelled[string, *flowSeries]
	beyond atomic.Pointer[flowSeries] // the series of flows beyond the limit; nil: there are none yet
	actual *prometheus.CounterVec
	wrong  *prometheus.CounterVec
	wait   *prometheus.SummaryVec // without quantiles: sum and count only
}

func (m *flowMetrics) init(limit int) {
	m.actual = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "weir", Name: "flow_actual_cost_total",
		Help: "Real cost of a flow's requests that have ended, if it became known.",
	}, []string{"flow"})
	m.wrong = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "weir", Name: "flow_misestimated_cost_total",
		Help: "Overcharge (direction over) or undercharge (under) of the same requests at dispatch.",
	}, []string{"flow", "direction"})
	m.wait = prometheus.NewSummaryVec(prometheus.SummaryOpts{
		Namespace: "weir", Name: "flow_queue_wait_seconds",
		Help: "Time in the queue of a flow's requests that waited, whatever their outcome, observed at their end.",
	}, []string{"flow"})
	m.known.bound(limit)
	m.known.strict = true
	m.known.hash = hashOf
	m.known.add = m.series
	m.known.drop = m.drop
	m.known.idle = (*flowSeries).idle
	m.known.others = sync.OnceValue(func() *flowSeries {
		s := m.series(overflow)
		m.beyond.Store(s)
		return s
	})
}

// of returns the series of a flow; flows beyond the limit share one.
func (m *flowMetrics) of(flow string) *flowSeries { return m.known.get(flow, presentable) }

// labelOf returns the label of a flow, without giving it series.
func (m *flowMetrics) labelOf(flow string) string {
	if m.known.find(flow) == nil {
		return overflow
	}
	return flow
}

// flowSeries are the series of one flow.
type flowSeries struct {
	// Immutable.
	flow                string
	wait                prometheus.Observer
	actual, over, under prometheus.Counter
	others              func() *flowSeries // the series of flows beyond the limit

	// The counts changed by each request, together in one cache line.
	waiting, inFlight atomic.Int64  // requests of the flow
	requests          atomic.Uint64 // requests that have ended
	served            servedInTier  // the cost in the first tier, and a list with the others

	// Guarded by mu.
	mu      sync.Mutex
	dropped bool // a request of the flow may outlive its series
	further furtherSeries
}

func (m *flowMetrics) series(flow string) *flowSeries {
	return &flowSeries{
		flow: flow, others: m.known.others,
		wait:   m.wait.WithLabelValues(flow),
		actual: m.actual.WithLabelValues(flow),
		over:   m.wrong.WithLabelValues(flow, "over"), under: m.wrong.WithLabelValues(flow, "under"),
	}
}

func (m *flowMetrics) drop(flow string, s *flowSeries) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped = true
	m.actual.DeleteLabelValues(flow)
	m.wrong.DeleteLabelValues(flow, "over")
	m.wrong.DeleteLabelValues(flow, "under")
	m.wait.DeleteLabelValues(flow)
}

// idle reports whether no request of the flow is waiting or in flight.
func (s *flowSeries) idle() bool { return s.waiting.Load() == 0 && s.inFlight.Load() == 0 }

// ended counts the end of a request that was offered.
func (s *flowSeries) ended(o Outcome, w *waiter) {
	if w.WasQueued() {
		s.wait.Observe(w.Waited().Seconds())
	}
	s.count(o)
}

// count counts the end of a request. A rejection may make a new series. If the flow's series were dropped, a new one
// would never be shown, so the rejection is counted for the flows beyond the limit.
func (s *flowSeries) count(o Outcome) {
	if o == OutcomeDispatched {
		s.requests.Add(1)
		return
	}
	if !s.countRejection(o) {
		s.others().count(o)
	}
}

func (s *flowSeries) countRejection(o Outcome) (shown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped {
		return false
	}
	s.requests.Add(1)
	*s.further.rejections(o)++
	return true
}

// dispatched counts a request that has its lease.
func (s *flowSeries) dispatched(w *waiter) {
	s.inFlight.Add(1)
	s.served.in(w.tier).Add(uint64(w.Cost()))
}

// used counts the reported tokens of the answer to a request for a model.
func (s *flowSeries) used(model string, u Usage) {
	if u == (Usage{}) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.further.tokens(model).add(u)
}

// cost counts a request's real cost, once, and the error of the charge at its dispatch.
func (s *flowSeries) cost(charged, actual fairqueue.Cost) {
	s.actual.Add(float64(actual))
	s.over.Add(float64(max(0, charged-actual)))
	s.under.Add(float64(max(0, actual-charged)))
}

// servedInTier is the cost of a flow's requests dispatched in a tier. A flow's tiers are a list that only grows,
// usually to one tier.
type servedInTier struct {
	tier atomic.Pointer[tierSeries] // nil: none yet
	cost atomic.Uint64
	next atomic.Pointer[servedInTier]
}

// in returns the cost of the flow's requests in a tier.
func (s *servedInTier) in(tier *tierSeries) *atomic.Uint64 {
	for {
		switch is := s.tier.Load(); {
		case is == tier, is == nil && s.tier.CompareAndSwap(nil, tier):
			return &s.cost
		case is == nil: // another goroutine has just taken it
			continue
		}
		if s.next.Load() == nil {
			s.next.CompareAndSwap(nil, &servedInTier{})
		}
		s = s.next.Load()
	}
}

// all yields the tiers with their costs.
func (s *servedInTier) all(yield func(tier string, cost uint64) bool) {
	for ; s != nil; s = s.next.Load() {
		if tier := s.tier.Load(); tier != nil && !yield(tier.name, s.cost.Load()) {
			return
		}
	}
}

// counted adds a waiter to the counts of its model and its flow, or with -1 removes it.
func (w *waiter) counted(by int64) {
	w.series.length.Add(float64(by))
	w.flowSeries.waiting.Add(by)
}

// OtherFlows is the name of all flows beyond the limit together.
const OtherFlows = overflow

// FlowCounts are counts of a flow since its series began; the flows beyond the limit are counted together as
// OtherFlows.
type FlowCounts struct {
	Flow              string
	Waiting, InFlight int64 // now
	// Requests is the number of ended requests, Rejections the number of them that were not served.
	Requests, Rejections uint64
	// NoRoom is the number of rejections for want of room or of an endpoint, and of those with the outcome "other".
	NoRoom uint64
	// Served is the cost of its dispatched requests, by tier.
	Served map[string]uint64
}

// FlowCounts returns the counts of the flows with series of their own, in no order, and then of all others together. It
// does not take a lock used by decisions.
func (c *RequestQueueController) FlowCounts() []FlowCounts {
	all := c.metrics.flows.shown()
	counts := make([]FlowCounts, 0, len(all))
	for _, s := range all {
		of := FlowCounts{Flow: s.flow, Waiting: s.waiting.Load(), InFlight: s.inFlight.Load(), Served: map[string]uint64{}}
		of.Rejections, of.NoRoom = s.rejections()
		of.Requests = s.requests.Load() // after the rejections, so that it is never less
		for tier, cost := range s.served.all {
			of.Served[tier] += cost
		}
		counts = append(counts, of)
	}
	return counts
}

// shown returns all series that a scrape shows.
func (m *flowMetrics) shown() []*flowSeries {
	all := m.known.shown(make([]*flowSeries, 0, m.known.n.Load()+1))
	if beyond := m.beyond.Load(); beyond != nil {
		all = append(all, beyond)
	}
	return all
}

func (s *flowSeries) rejections() (all, noRoom uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.further.outcomes {
		all += r.n
		if r.outcome == NumOutcomes || slices.Contains(NoRoom, r.outcome) {
			noRoom += r.n
		}
	}
	return all, noRoom
}
