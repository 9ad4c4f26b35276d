package extproc

import (
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// maxElsewhere is the most endpoints that are counted by themselves; the rest is "other". It is twice the design's pool.
const maxElsewhere = 4096

// servedElsewhere counts, by the endpoint that was picked, the requests that Envoy says were served at another one. It is a
// collector; an endpoint that the pool has no more is forgotten at a scrape.
type servedElsewhere struct {
	// Immutable.
	log    logr.Logger
	picker Picker
	desc   *prometheus.Desc

	mu     sync.Mutex
	counts map[string]uint64
	others uint64
}

func newElsewhere(log logr.Logger, picker Picker) *servedElsewhere {
	return &servedElsewhere{
		log: log, picker: picker, counts: map[string]uint64{},
		desc: prometheus.NewDesc("weir_served_elsewhere_total",
			"Requests that Envoy served at another endpoint than the one picked, by the one picked.", []string{"endpoint"}, nil),
	}
}

// count counts one request, and the first time for an endpoint says what it means.
func (e *servedElsewhere) count(picked, served string) {
	if !e.add(picked) {
		return
	}
	e.log.Info("WARNING: Envoy served a request elsewhere than at the endpoint that Weir picked, although Weir counts with the "+
		"capacity of that endpoint. Either Envoy's cluster of model servers lacks it: list it there, or take it out of "+
		"--endpoints or --endpoints-file. Or Envoy could not reach it: then probing (--probe-path) keeps it out of the pool",
		"picked", picked, "served", served)
}

// add reports whether it is the endpoint's first.
func (e *servedElsewhere) add(picked string) (first bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.counts[picked] == 0 && len(e.counts) >= maxElsewhere {
		if e.prune(); len(e.counts) >= maxElsewhere {
			e.others++
			return false
		}
	}
	e.counts[picked]++
	return e.counts[picked] == 1
}

// of is the count of one endpoint.
func (e *servedElsewhere) of(picked string) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.counts[picked]
}

// prune forgets the endpoints that are gone. The caller has the lock.
func (e *servedElsewhere) prune() {
	for address := range e.counts {
		if _, known := e.picker.Locate(address); !known {
			delete(e.counts, address)
		}
	}
}

// Describe implements prometheus.Collector.
func (e *servedElsewhere) Describe(out chan<- *prometheus.Desc) { out <- e.desc }

// Collect implements prometheus.Collector.
func (e *servedElsewhere) Collect(out chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.prune()
	for address, n := range e.counts {
		out <- prometheus.MustNewConstMetric(e.desc, prometheus.CounterValue, float64(n), address)
	}
	if e.others > 0 {
		out <- prometheus.MustNewConstMetric(e.desc, prometheus.CounterValue, float64(e.others), "other")
	}
}

// ServedElsewhere is how many requests that were sent to the endpoint at this address Envoy says were served at another.
func (s *Server) ServedElsewhere(address string) uint64 { return s.elsewhere.of(address) }
