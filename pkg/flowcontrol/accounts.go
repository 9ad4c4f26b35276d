package flowcontrol

import (
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/dispatch"
)

// accounts collects the metrics of values guarded by the lock, and takes the lock once per scrape.
type accounts struct {
	controller                       *RequestQueueController
	upper, lower, watermark          *prometheus.Desc
	ready, flows, capacity           *prometheus.Desc
	attempts, successes, panics      *prometheus.Desc
	displaced, promotions, preempted *prometheus.Desc
	entitled, utilisation            *prometheus.Desc
	gap, bound                       *prometheus.Desc
	tierReserved, tierLimit          *prometheus.Desc
	tierPressure, tierWaits          *prometheus.Desc
	tierQueued, tierInflight         *prometheus.Desc
	deficit                          *prometheus.Desc
	quotas                           *prometheus.Desc
	mu                               sync.Mutex
	tiers                            []dispatch.TierState
}

// entitledFlows bounds the label values of one scrape.
const entitledFlows = 100

func newAccounts(c *RequestQueueController) *accounts {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("weir_"+name, help, labels, nil)
	}
	return &accounts{
		controller: c,
		upper:      desc("upper_bound", "Stock below which an arrival may bypass the queue, summed over the ready backends."),
		lower:      desc("lower_bound", "Stock below which waiting requests are released, summed over the ready backends."),
		watermark:  desc("watermark", "Target stock over the ready backends."),
		ready:      desc("ready_backends", "Backends that are ready."),
		flows:      desc("active_flows", "Flows with waiting requests."),
		capacity:   desc("stock_capacity", "The upper bound rounded up, in leases."),
		attempts:   desc("popper_dequeue_attempts_total", "Attempts to release a waiting request."),
		successes:  desc("popper_dequeue_successes_total", "Waiting requests released."),
		panics:     desc("decision_panics_total", "Panics under the controller's lock; each ended at most one request."),
		displaced:  desc("displaced_total", "Waiting requests displaced by a more entitled one.", "tier"),
		promotions: desc("starvation_promotions_total",
			"Starved waiting requests released out of order.", "tier"),
		entitled: desc("flow_entitled_share",
			"Entitled share of the tier of a flow with waiting requests, 0 to 1; at most 100 flows.", "flow", "tier"),
		gap: desc("fairness_gap", "Largest difference, in cost over weight, between the service of two flows of a tier that always "+
			"waited, by the last 1,024 requests that ended; with the disciplines vtc and fairshare.", "tier"),
		bound: desc("fairness_bound", "Limit of that gap, from the costs, the wrong estimates and the requests in flight of these "+
			"two flows.", "tier"),
		preempted: desc("preempted_total", "Requests in flight preempted in favour of a higher tier.",
			"victim_tier", "by_tier"),
		quotas:       desc("quota_tenants", "Tenants whose use of a quota is known."),
		tierQueued:   desc("tier_queue_length", "Requests that wait in a tier.", "tier"),
		tierInflight: desc("tier_inflight", "Leases that a tier holds.", "tier"),
		deficit: desc("class_deficit", "Cost that a class may still serve in its turn; below 0: its debt. The label ring is the model of a "+
			"class for one model only.", "tier", "ring", "class"),
		utilisation:  desc("stock_utilisation", "Leases held divided by the stock's capacity; above 1 after backends have left."),
		tierReserved: desc("tier_reserved", "Stock reserved for a tier at the present capacity, in leases.", "tier"),
		tierLimit:    desc("tier_queue_limit", "The largest number of requests that may wait in a tier.", "tier"),
		tierWaits: desc("tier_queue_wait_quantile_seconds", "Quantiles of the time in the queue of requests that waited in a tier, whatever their "+
			"outcome, and ended in the last five minutes, within 7 %; no value without such requests.", "tier", "quantile"),
		tierPressure: desc("tier_pressure", "How near a tier is to the limits of its queue and its stock, 0 to 1.", "tier"),
	}
}

// Describe implements prometheus.Collector.
func (a *accounts) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		a.upper, a.lower, a.watermark, a.ready, a.flows, a.capacity, a.attempts, a.successes, a.displaced, a.promotions,
		a.panics, a.preempted, a.entitled, a.gap, a.bound, a.utilisation, a.tierQueued, a.tierInflight, a.tierReserved, a.tierLimit, a.tierPressure, a.tierWaits, a.deficit,
		a.quotas,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (a *accounts) Collect(out chan<- prometheus.Metric) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.controller.metrics.prune(time.Now())
	state := a.controller.State()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge(a.upper, state.UpperBound)
	gauge(a.lower, state.LowerBound)
	gauge(a.quotas, float64(state.Metered))
	gauge(a.watermark, state.Watermark)
	gauge(a.ready, float64(state.Ready))
	gauge(a.flows, float64(state.Flows))
	capacity := float64(state.Capacity)
	if state.Unbounded {
		capacity = math.Inf(1)
	}
	gauge(a.capacity, capacity)
	counter(a.panics, state.Panics)
	gauge(a.utilisation, float64(state.Stock)/max(1, capacity))
	counter(a.attempts, state.Attempts)
	counter(a.successes, state.Successes)
	for of, share := range a.entitledShares() {
		gauge(a.entitled, share, of.flow, of.tier)
	}
	for _, f := range a.controller.Fairness() {
		gauge(a.gap, f.Gap, f.Tier)
		gauge(a.bound, f.Bound, f.Tier)
	}
	for _, s := range a.controller.Classes() {
		if s.Class != "" {
			gauge(a.deficit, float64(s.Deficit), s.Tier, s.Ring, s.Class)
		}
	}
	var preempted map[[2]string]uint64
	a.tiers, preempted = a.controller.tierAccounts(a.tiers[:0])
	for pair, n := range preempted {
		counter(a.preempted, n, pair[0], pair[1])
	}
	reservedHigher := 0
	for _, t := range a.tiers {
		gauge(a.tierQueued, float64(t.Queued), t.Name)
		gauge(a.tierInflight, float64(t.InFlight), t.Name)
		gauge(a.tierReserved, float64(t.Reserved), t.Name)
		gauge(a.tierLimit, float64(t.Limit), t.Name)
		gauge(a.tierPressure, pressure(t.Queued, t.Limit, t.InFlight, t.Reserved, state.Capacity, reservedHigher), t.Name)
		counter(a.displaced, t.Displaced, t.Name)
		counter(a.promotions, t.Promotions, t.Name)
		reservedHigher += t.Reserved
		if waits := a.controller.RecentWaits(t.Name); waits.N > 0 {
			gauge(a.tierWaits, waits.Median.Seconds(), t.Name, "0.5")
			gauge(a.tierWaits, waits.P90.Seconds(), t.Name, "0.9")
			gauge(a.tierWaits, waits.P99.Seconds(), t.Name, "0.99")
		}
	}
}

// flowInTier identifies a flow of a tier.
type flowInTier struct{ flow, tier string }

// entitledShares returns the entitled shares of flows with waiting requests, by label. For a flow in several classes it
// is the sum of the shares.
func (a *accounts) entitledShares() map[flowInTier]float64 {
	shares := map[flowInTier]float64{}
	for _, f := range a.controller.Flows(entitledFlows) {
		shares[flowInTier{a.controller.metrics.flows.labelOf(f.Flow), f.Tier}] += f.Entitled
	}
	return shares
}
