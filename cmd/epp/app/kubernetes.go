package app

import (
	"cmp"
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/pkg/datastore/kube"
)

// kubernetes reports whether the endpoints come from Kubernetes.
func (o *Options) kubernetes() bool { return o.PoolName != "" || o.EndpointSelector != "" }

// kube returns the configuration of the source in Kubernetes.
func (o *Options) kube() kube.Config {
	c := kube.Config{
		Namespace: o.PoolNamespace, Pool: o.PoolName, Selector: o.EndpointSelector, Ports: o.EndpointTargetPorts,
	}
	if c.Pool != "" {
		c.Group = o.PoolGroup
	}
	return c
}

// poolLabel returns the value of the label pool in the metrics of what belongs to the pool; "" if they have none.
func (o *Options) poolLabel() string { return cmp.Or(o.PoolName, o.EndpointSelector) }

// registerer returns where the metrics of what belongs to the pool are registered.
func (a *App) registerer() prometheus.Registerer {
	if !a.options.kubernetes() {
		return a.registry
	}
	return prometheus.WrapRegistererWith(prometheus.Labels{"pool": a.options.poolLabel()}, a.registry)
}

// gatherer returns all metrics of the process.
func (a *App) gatherer() prometheus.Gatherer {
	if !a.options.kubernetes() {
		return a.registry
	}
	return prometheus.Gatherers{a.registry, kube.Gatherer()}
}

// wireKubernetes makes the source of endpoints in Kubernetes, if there is one.
func (a *App) wireKubernetes() error {
	if !a.options.kubernetes() {
		return nil
	}
	log := a.log.WithName("kubernetes")
	kube.SetLogger(log)
	cfg, err := kube.Connect(a.options.Kubeconfig)
	if err != nil {
		return err
	}
	a.readiness.set(synced, false)
	if a.cluster, err = kube.NewCluster(cfg, log, func() { a.readiness.set(synced, true) }); err != nil {
		return err
	}
	for _, c := range a.cluster.Collectors() {
		if err := a.registerer().Register(c); err != nil {
			return fmt.Errorf("app: registering metrics: %w", err)
		}
	}
	_, err = kube.NewSource(a.cluster, a.options.kube(), a.store, log)
	return err
}

// defaultNamespace is the namespace of the pool unless a flag says otherwise: that of Weir's own pod.
func defaultNamespace() string { return cmp.Or(os.Getenv("NAMESPACE"), "default") }
