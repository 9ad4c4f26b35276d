package kube

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	libraries "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// withoutProcess removes the metrics from the libraries' registry that a program's own registry has anyway.
var withoutProcess = sync.OnceFunc(func() {
	libraries.Registry.Unregister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	libraries.Registry.Unregister(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)))
})

// Gatherer returns the metrics of controller-runtime and client-go, which are global, without those of the process.
func Gatherer() prometheus.Gatherer {
	withoutProcess()
	return libraries.Registry
}
