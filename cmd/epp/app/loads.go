package app

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/scheduling"
)

// load is an endpoint with what Weir has in flight there.
type load struct {
	scheduling.Endpoint
	scheduling.Share
}

// endpoints returns the endpoints that are known, ready or not.
func (p *Pool) endpoints() []scheduling.Endpoint {
	snapshot := p.store.Current()
	all := make([]scheduling.Endpoint, snapshot.Len())
	for i := range all {
		all[i] = snapshot.At(i)
	}
	return all
}

// loads returns the load of every endpoint of the pool, in order. Under the lock it only copies the shares.
func (p *Pool) loads() []load { return p.loadsAnd(func() {}) }

// loadsAnd is loads that also calls a function under the controller's lock.
func (p *Pool) loadsAnd(look func()) []load {
	shares := make([]scheduling.Share, 0, p.prepared.Load().snapshot.Len())
	var snapshot *scheduling.Snapshot
	p.controller.Look(func() {
		snapshot = p.board.Snapshot()
		shares = p.board.Shares(shares)
		look()
	})
	loads := make([]load, snapshot.Len())
	for i := range loads {
		loads[i] = load{snapshot.At(i), shares[i]}
	}
	return loads
}

// inUse returns which of the endpoints have requests in flight. They need not be in the pool.
func (p *Pool) inUse(ids []scheduling.EndpointID) (inUse []scheduling.EndpointID) {
	p.controller.Look(func() {
		for _, id := range ids {
			if p.board.Stock(id) > 0 {
				inUse = append(inUse, id)
			}
		}
	})
	return inUse
}

// lower returns the endpoint's share of the lower bound in requests.
func (l *load) lower() float64 { return l.inRequests(l.LowerBound) }

// upper returns the endpoint's share of the upper bound in requests.
func (l *load) upper() float64 { return l.inRequests(l.UpperBound) }

func (l *load) inRequests(millionths int64) float64 {
	if l.Unbounded {
		return math.Inf(1)
	}
	return float64(millionths) / scheduling.Millionths
}

// maxEndpointLabels is the largest number of endpoints with series of their own; the rest is summed as "other". The
// operator lists endpoints, not clients, so this is the largest pool of the design plus some room.
const maxEndpointLabels = 4096

// loadMetrics collects how full each endpoint is. Endpoints that have left the pool have no series.
type loadMetrics struct {
	pool                       *Pool
	inFlight, bound, foreign   *prometheus.Desc
	running, waiting, age, kvs *prometheus.Desc
}

func newLoadMetrics(p *Pool) *loadMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("weir_endpoint_"+name, help, []string{"endpoint"}, nil)
	}
	return &loadMetrics{
		pool:     p,
		inFlight: desc("in_flight", "Requests in flight at an endpoint, by Weir's own count."),
		bound:    desc("bound", "Requests in flight below which an endpoint may get one past the queue: its share of the upper bound, 0 if it is not ready."),
		foreign:  desc("foreign", "Requests of others at an endpoint that count as stock there, by the records of other replicas or by its engine's metrics."),
		running:  desc("running", "Requests that an endpoint's engine runs, from all senders, by its newest metrics."),
		waiting:  desc("waiting", "Requests that wait for room inside an endpoint's engine, by its newest metrics."),
		kvs:      desc("kv_usage", "The used share of an endpoint's KV cache, by its newest metrics."),
		age:      desc("scrape_age_seconds", "Time since the metrics of an endpoint's engine were read."),
	}
}

// Describe implements prometheus.Collector.
func (m *loadMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.inFlight, m.bound, m.foreign, m.running, m.waiting, m.kvs, m.age} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *loadMetrics) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, endpoint string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, endpoint)
	}
	loads := m.pool.loads()
	own := loads[:min(len(loads), maxEndpointLabels)]
	for _, l := range own {
		gauge(m.inFlight, float64(l.InFlight), l.Address)
		gauge(m.bound, l.upper(), l.Address)
		gauge(m.foreign, float64(l.Foreign), l.Address)
		if e, known := m.pool.engineOf(l.ID); known {
			gauge(m.running, float64(e.Running), l.Address)
			gauge(m.waiting, float64(e.Lacking), l.Address)
			gauge(m.kvs, float64(e.CacheUsed)/scheduling.Millionths, l.Address)
			gauge(m.age, time.Since(e.At).Seconds(), l.Address)
		}
	}
	if len(own) == len(loads) {
		return
	}
	inFlight, foreign, bound := 0, 0, 0.0
	for _, l := range loads[len(own):] {
		inFlight += l.InFlight
		foreign += l.Foreign
		bound += l.upper()
	}
	gauge(m.inFlight, float64(inFlight), "other")
	gauge(m.bound, bound, "other")
	gauge(m.foreign, float64(foreign), "other")
}
