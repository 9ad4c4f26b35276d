package kube

import "github.com/prometheus/client_golang/prometheus"

// metrics are the state of the apiserver, for alerts.
type metrics struct {
	synced, up, poolMissing prometheus.Gauge
	missing                 *prometheus.GaugeVec
}

func newMetrics() *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	return &metrics{
		synced: gauge("weir_kubernetes_synced",
			"1 once everything that is taken from Kubernetes has been read for the first time."),
		up: gauge("weir_kubernetes_apiserver_up",
			"1 while the apiserver answers; 0 after a request to it failed, until one succeeds. The last known state stays in use."),
		poolMissing: gauge("weir_pool_missing",
			"1 while there is no InferencePool of the given name. The last known pods stay in use."),
		missing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_kubernetes_permission_missing",
			Help: "1 for each permission in Kubernetes that Weir lacks, 0 for each needed permission that it has.",
		}, []string{"verb", "resource", "namespace"}),
	}
}

func (m *metrics) collectable() []prometheus.Collector {
	return []prometheus.Collector{m.synced, m.up, m.poolMissing, m.missing}
}
