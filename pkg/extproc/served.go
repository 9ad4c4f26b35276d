package extproc

import (
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// servedKey is the field in the metadata of the response headers in which Envoy's override_host policy names the
// serving endpoint (selected_host_key). After a retry it is not the picked one.
const servedKey = "x-gateway-destination-endpoint-served"

// move moves a lease to the endpoint that served its request, so that the stock is counted where the work is. It
// returns that endpoint's address, or "" if it is the picked one or unknown.
func (e *servedElsewhere) move(metadata *corev3.Metadata, picked string, lease Lease, status int) (elsewhere string) {
	if lease == nil || picked == "" {
		return ""
	}
	fields := metadata.GetFilterMetadata()[destinationNamespace].GetFields()
	address := fields[servedKey].GetStringValue()
	if address == "" || address == picked {
		return ""
	}
	e.count(picked, address)
	endpoint, ok := e.picker.Locate(address)
	if !ok {
		endpoint = flowcontrol.NoEndpoint
	}
	lease.OnServed(endpoint, status)
	return address
}

// maxElsewhere is the number of endpoints counted separately; the rest is "other". It is twice the largest pool that
// Weir is designed for.
const maxElsewhere = 4096

// servedElsewhere counts, by picked endpoint, the requests that another endpoint served. It is a Prometheus collector.
// Endpoints that have left the pool are dropped at a scrape.
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
			"Requests served by another endpoint than the picked one, by the picked one.", []string{"endpoint"}, nil),
	}
}

// count counts one request, and warns of the first one of each endpoint.
func (e *servedElsewhere) count(picked, served string) {
	if !e.add(picked) {
		return
	}
	e.log.Info("WARNING: Envoy served a request elsewhere than at the endpoint that Weir picked, although Weir counts with the "+
		"capacity of that endpoint. Either Envoy's cluster of model servers lacks it: list it there, or take it out of "+
		"--endpoints or --endpoints-file. Or Envoy could not reach it: then probing (--probe-path) keeps it out of the pool. "+
		"With requestQueueController.circuits it gets nothing for 30 s after eight such requests in a row",
		"picked", picked, "served", served)
}

// add counts one request and reports whether it is the endpoint's first.
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

// of returns the count of one endpoint.
func (e *servedElsewhere) of(picked string) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.counts[picked]
}

// prune drops the endpoints that have left the pool. The caller holds e.mu.
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
