package app

import (
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/dispatch"
	"github.com/weir-epp/weir/pkg/scheduling"
	"github.com/weir-epp/weir/pkg/stock"
)

// load is an endpoint with Weir's requests in flight there.
type load struct {
	scheduling.Endpoint
	scheduling.Share
	engine dispatch.EngineState
}

// endpoints returns the known endpoints, ready or not.
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
		loads[i] = load{Endpoint: snapshot.At(i), Share: shares[i]}
	}
	p.addEngines(loads)
	return loads
}

// addEngines adds the states of the engines. Stock withheld from an endpoint counts there as foreign stock, but belongs
// to no Weir.
func (p *Pool) addEngines(loads []load) {
	engines := p.controller.Engines()
	if len(engines) == 0 {
		return
	}
	at := make(map[scheduling.EndpointID]int, len(loads))
	for i := range loads {
		at[loads[i].ID] = i
	}
	for _, e := range engines {
		if i, known := at[e.Endpoint]; known {
			loads[i].engine = e
			loads[i].Foreign = max(0, loads[i].Foreign-e.Withheld)
		}
	}
}

// circuit returns the state of the endpoint's circuit, or the reason why it gets no requests.
func (l *load) circuit() string {
	switch {
	case l.engine.Busy:
		return "busy"
	case l.engine.Circuit != stock.CircuitClosed:
		return l.engine.Circuit.String()
	case l.engine.Held > 0:
		return fmt.Sprintf("closed, failures hold %d", l.engine.Held)
	}
	return "closed"
}

// oldest returns the time of the oldest request in flight at the endpoint; 0 if there is none.
func (l *load) oldest(now time.Time) time.Duration {
	if l.engine.Oldest.IsZero() {
		return 0
	}
	return max(0, now.Sub(l.engine.Oldest))
}

// inUse returns those of the endpoints with requests in flight. They need not be in the pool.
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

// maxEndpointLabels is the largest number of endpoints with series of their own; the rest is summed as "other". Clients
// cannot add endpoints, so this is the largest designed pool plus some room.
const maxEndpointLabels = 4096

// loadMetrics collects the load of each endpoint. Endpoints that have left the pool have no series.
type loadMetrics struct {
	pool                       *Pool
	inFlight, bound, foreign   *prometheus.Desc
	running, waiting, age, kvs *prometheus.Desc
	answers, kvSize            *prometheus.Desc
	circuit, service, oldest   *prometheus.Desc
	unread                     *prometheus.Desc
}

func newLoadMetrics(p *Pool) *loadMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("weir_endpoint_"+name, help, []string{"endpoint"}, nil)
	}
	return &loadMetrics{
		pool:     p,
		inFlight: desc("in_flight", "Requests in flight at an endpoint, by Weir's own count."),
		bound:    desc("bound", "The endpoint's share of the upper bound; 0 if it is not ready."),
		foreign:  desc("foreign", "Requests of others at an endpoint that count as stock there, by the records of other replicas or by its engine's metrics."),
		running:  desc("running", "Requests that an endpoint's engine runs, for all clients, by its newest metrics."),
		waiting:  desc("waiting", "Requests that wait for room inside an endpoint's engine, by its newest metrics."),
		kvs:      desc("kv_usage", "The used share of an endpoint's KV cache, by its newest metrics."),
		answers: prometheus.NewDesc("weir_endpoint_answers_total", "Answers of an endpoint by the class of their status, with requestQueueController.circuits.",
			[]string{"endpoint", "class"}, nil),
		circuit: desc("circuit_open", "1 while an endpoint gets no request, or only one as a trial, because its engine fails or has answered 429 with Retry-After, "+
			"or Envoy has served eight of its requests in a row elsewhere."),
		service: desc("service_seconds", "Mean time from dispatch to end of an endpoint's successful requests; the last eight count most."),
		oldest:  desc("oldest_seconds", "Time since the oldest request in flight at an endpoint was dispatched; 0 without one."),
		unread:  desc("unread_tokens", "Uncached tokens of prompts that an endpoint still has to read, for streams whose first token Weir will see."),
		kvSize:  desc("kv_tokens", "Size of an endpoint's KV cache in tokens, inferred from the blocks stored and removed in its KV events."),
		age:     desc("scrape_age_seconds", "Time since the metrics of an endpoint's engine were read."),
	}
}

// Describe implements prometheus.Collector.
func (m *loadMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.inFlight, m.bound, m.foreign, m.running, m.waiting, m.kvs, m.kvSize, m.age, m.answers, m.circuit, m.service, m.oldest, m.unread} {
		out <- d
	}
}

// classes are the classes of statuses, by their first digit.
var classes = [...]string{"other", "1xx", "2xx", "3xx", "4xx", "5xx"}

// collectEngine collects the answers of an endpoint's engine.
func (m *loadMetrics) collectEngine(out chan<- prometheus.Metric, l *load, now time.Time) {
	gauge := func(d *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, l.Address)
	}
	for i, n := range l.engine.Answers {
		if n > 0 {
			out <- prometheus.MustNewConstMetric(m.answers, prometheus.CounterValue, float64(n), l.Address, classes[i])
		}
	}
	gauge(m.circuit, float64(one(l.engine.Busy || l.engine.Circuit != stock.CircuitClosed)))
	gauge(m.service, l.engine.Service.Seconds())
	gauge(m.oldest, l.oldest(now).Seconds())
}

// Collect implements prometheus.Collector.
func (m *loadMetrics) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, endpoint string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, endpoint)
	}
	loads, now := m.pool.loads(), time.Now()
	own := loads[:min(len(loads), maxEndpointLabels)]
	for _, l := range own {
		gauge(m.inFlight, float64(l.InFlight), l.Address)
		gauge(m.bound, l.upper(), l.Address)
		gauge(m.foreign, float64(l.Foreign), l.Address)
		gauge(m.unread, float64(l.Unread), l.Address)
		m.collectEngine(out, &l, now)
		if e, known := m.pool.engineOf(l.ID); known {
			gauge(m.running, float64(e.Running), l.Address)
			gauge(m.waiting, float64(e.Lacking), l.Address)
			gauge(m.kvs, float64(e.CacheUsed)/scheduling.Millionths, l.Address)
			gauge(m.age, time.Since(e.At).Seconds(), l.Address)
		}
		if p := m.pool; p.events != nil {
			if tokens := p.events.Size(l.ID); tokens > 0 {
				gauge(m.kvSize, float64(tokens), l.Address)
			}
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
