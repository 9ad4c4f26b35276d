package app

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// newRegistry is a registry with the process's own metrics, and the gauge of whether the configuration in use is the
// one that was given.
func newRegistry() (registry *prometheus.Registry, configValid prometheus.Gauge) {
	registry = prometheus.NewRegistry()
	b := buildInfo()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_build_info",
		Help: "What this binary was made from; always 1.",
		ConstLabels: prometheus.Labels{
			"version": b.version, "revision": b.revision, "goversion": b.goVersion,
		},
	})
	info.Set(1)
	configValid = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_config_valid",
		Help: "1 if the configuration that was given is in use, 0 if it is invalid and defaults or an older one are.",
	})
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		info, configValid,
	)
	return registry, configValid
}
