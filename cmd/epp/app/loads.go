package app

import (
	"math"

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
	pool            *Pool
	inFlight, bound *prometheus.Desc
}

func newLoadMetrics(p *Pool) *loadMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("weir_endpoint_"+name, help, []string{"endpoint"}, nil)
	}
	return &loadMetrics{
		pool:     p,
		inFlight: desc("in_flight", "Requests in flight at an endpoint, by Weir's own count."),
		bound:    desc("bound", "Requests in flight below which an endpoint may get one past the queue: its share of the upper bound, 0 if it is not ready."),
	}
}

// Describe implements prometheus.Collector.
func (m *loadMetrics) Describe(out chan<- *prometheus.Desc) { out <- m.inFlight; out <- m.bound }

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
	}
	if len(own) == len(loads) {
		return
	}
	inFlight, bound := 0, 0.0
	for _, l := range loads[len(own):] {
		inFlight += l.InFlight
		bound += l.upper()
	}
	gauge(m.inFlight, float64(inFlight), "other")
	gauge(m.bound, bound, "other")
}
