package flowcontrol

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// tierMetrics are the metrics by tier, counted by requests' own goroutines.
type tierMetrics struct {
	requests *prometheus.CounterVec
	wait     *prometheus.HistogramVec
	known    *sync.Map // *tierSeries by tier's name
}

func newTierMetrics() tierMetrics {
	return tierMetrics{
		known: &sync.Map{},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "weir", Name: "tier_requests_total",
			Help: "Requests offered to a tier, by outcome.",
		}, []string{"tier", "outcome"}),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "weir", Name: "tier_queue_wait_seconds",
			Help:    "Time in the queue of requests that waited in a tier, whatever their outcome.",
			Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300},
		}, []string{"tier"}),
	}
}

// tierSeries are the series of one tier; a nil one counts nothing.
type tierSeries struct {
	name     string
	outcomes [NumOutcomes]prometheus.Counter
	wait     prometheus.Observer
	recent   recentWaits
}

// of returns the series of a tier; it looks up labels only the first time. In the explorer, which has no metrics, it
// returns nil.
func (m *tierMetrics) of(name string) *tierSeries {
	if m.known == nil {
		return nil
	}
	if s, ok := m.known.Load(name); ok {
		return s.(*tierSeries)
	}
	s := &tierSeries{name: name, wait: m.wait.WithLabelValues(name)}
	for o := range s.outcomes {
		s.outcomes[o] = m.requests.WithLabelValues(name, Outcome(o).String())
	}
	first, _ := m.known.LoadOrStore(name, s)
	return first.(*tierSeries)
}

// ended counts the end of a request that was offered to the tier.
func (s *tierSeries) ended(o Outcome, w *waiter) {
	if s == nil {
		return
	}
	s.outcomes[o].Inc()
	if w.WasQueued() {
		s.wait.Observe(w.Waited().Seconds())
		s.recent.observe(w.Waited())
	}
}

// nameTiers gives each tier its series, because the tiers have changed.
func (c *RequestQueueController) nameTiers() {
	for _, t := range c.machine.Tiers(nil) {
		c.tierSeries[t.ID] = c.metrics.tiers.of(t.Name)
	}
}

// RecentWaits returns the quantiles of the recent waits in a tier. It does not take a lock used by decisions.
func (c *RequestQueueController) RecentWaits(tier string) WaitQuantiles {
	return c.metrics.tiers.of(tier).recent.quantiles(time.Now())
}

// pressure returns how close a tier is to the limits of its queue and of the stock not reserved for higher tiers, from
// 0 to 1, by SMG's formula:
//
//	min(1, max(depth/limit, max(0, inflight − reserved)/max(1, capacity − Σ reserved_higher)))
//
// Without a limit of its own (0 or less) the first term is left out.
func pressure(depth, limit, inflight, reserved, capacity, reservedHigher int) float64 {
	queue := 0.0
	if limit > 0 {
		queue = float64(depth) / float64(limit)
	}
	return min(1, max(queue, float64(max(0, inflight-reserved))/float64(max(1, capacity-reservedHigher))))
}

// tierAccounts returns the state of every tier, by rank, and the preemptions.
func (c *RequestQueueController) tierAccounts(tiers []dispatch.TierState) (
	[]dispatch.TierState, map[[2]string]uint64,
) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine.Tiers(tiers), c.machine.Preemptions()
}
