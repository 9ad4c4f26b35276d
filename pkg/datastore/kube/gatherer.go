package kube

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	libraries "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// withoutProcess removes the process metrics from the libraries' registry, since a program's own registry has them.
var withoutProcess = sync.OnceFunc(func() {
	libraries.Registry.Unregister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	libraries.Registry.Unregister(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)))
})

// Gatherer returns the global metrics of controller-runtime and client-go, without the process metrics.
func Gatherer() prometheus.Gatherer {
	withoutProcess()
	return libraries.Registry
}
