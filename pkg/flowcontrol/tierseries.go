package flowcontrol

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// tierMetrics are the metrics by tier of what the requests' own goroutines know.
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
			Help: "Requests that were offered to a tier, by how they ended.",
		}, []string{"tier", "outcome"}),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "weir", Name: "tier_queue_wait_seconds",
			Help:    "Time in the queue of requests that waited there, whatever became of them.",
			Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300},
		}, []string{"tier"}),
	}
}

// tierSeries are those of one tier; nil counts nothing.
type tierSeries struct {
	outcomes [NumOutcomes]prometheus.Counter
	wait     prometheus.Observer
}

// of finds the series of a tier; only the first time it looks labels up. Explored without metrics, there are none.
func (m *tierMetrics) of(name string) *tierSeries {
	if m.known == nil {
		return nil
	}
	if s, ok := m.known.Load(name); ok {
		return s.(*tierSeries)
	}
	s := &tierSeries{wait: m.wait.WithLabelValues(name)}
	for o := range s.outcomes {
		s.outcomes[o] = m.requests.WithLabelValues(name, Outcome(o).String())
	}
	m.known.Store(name, s) // another one would count in the same metrics
	return s
}

// ended counts the end of a request that was offered to the tier.
func (s *tierSeries) ended(o Outcome, l *Lease) {
	if s == nil {
		return
	}
	s.outcomes[o].Inc()
	if l.queuedUp {
		s.wait.Observe(l.waited.Seconds())
	}
}

// nameTiers gives each tier its series; the tiers have changed.
func (c *RequestQueueController) nameTiers() {
	if c.metrics == nil {
		return // being built
	}
	for _, t := range c.queue.Tiers() {
		c.tierSeries[t.ID] = c.metrics.tiers.of(t.Name)
	}
}

// pressure is how near a tier is to its limits, 0 to 1: of its queue, and of the stock that is not held back for
// higher tiers. SMG's formula:
//
//	min(1, max(depth/limit, max(0, inflight − reserved)/max(1, capacity − Σ reserved_higher)))
//
// limit 0 or less (no limit of its own) leaves the first term out.
func pressure(depth, limit, inflight, reserved, capacity, reservedHigher int) float64 {
	queue := 0.0
	if limit > 0 {
		queue = float64(depth) / float64(limit)
	}
	return min(1, max(queue, float64(max(0, inflight-reserved))/float64(max(1, capacity-reservedHigher))))
}

// tierAccounts looks at every tier, by rank.
func (c *RequestQueueController) tierAccounts(tiers []tierAccount) []tierAccount {
	c.mu.Lock()
	defer c.unlock()
	limits := map[string]int{}
	for _, t := range c.config.Queue.Tiers {
		limits[t.Name] = t.QueueSize
	}
	reservedHigher := 0
	for _, t := range c.queue.Tiers() {
		limit, listed := limits[t.Name]
		if !listed || limit < 0 {
			limit = c.config.Queue.TotalCapacity
		}
		a := tierAccount{
			name: t.Name, queued: t.Queued, inflight: c.ledger.Inflight(t.ID), reserved: c.ledger.Reserved(t.ID),
			limit:     limit,
			displaced: c.counts.displaced[t.ID], promotions: c.counts.promotions[t.ID],
		}
		a.pressure = pressure(a.queued, limit, a.inflight, a.reserved, c.ledger.Capacity(), reservedHigher)
		reservedHigher += a.reserved
		tiers = append(tiers, a)
	}
	return tiers
}
