package app

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weir-epp/weir/internal/version"
)

// ownMetrics has the metrics of the wiring itself.
type ownMetrics struct {
	configValid   prometheus.Gauge
	configReloads *prometheus.CounterVec
}

// newRegistry returns a registry with the metrics of the process and of the wiring.
func newRegistry() (*prometheus.Registry, ownMetrics) {
	registry := prometheus.NewRegistry()
	b := version.Info()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_build_info",
		Help: "Version and revision of this binary; always 1.",
		ConstLabels: prometheus.Labels{
			"version": b.Version, "revision": b.Revision, "goversion": b.Go,
		},
	})
	info.Set(1)
	own := ownMetrics{
		configValid: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_config_valid",
			Help: "1 if the newest configuration is in use; 0 if it is invalid, and an older one or the profile's defaults are in use.",
		}),
		configReloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_config_reloads_total",
			Help: "Changes of the configuration file by result.",
		}, []string{"result"}),
	}
	for _, result := range []string{reloadApplied, reloadUnchanged, reloadRefused} {
		own.configReloads.WithLabelValues(result)
	}
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		info, own.configValid, own.configReloads,
	)
	return registry, own
}
