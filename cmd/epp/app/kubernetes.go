package app

import (
	"cmp"
	"os"
	"sync/atomic"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-epp/weir/internal/names"
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

// poolLabel returns the value of the label pool in the pool's metrics; "" if they have none.
func (o *Options) poolLabel() string { return cmp.Or(o.PoolName, o.EndpointSelector) }

// gatherer returns all metrics of the process.
func (a *App) gatherer() prometheus.Gatherer {
	if !a.options.kubernetes() {
		return a.registry
	}
	return prometheus.Gatherers{a.registry, kube.Gatherer()}
}

// followCluster makes the source of endpoints in Kubernetes, and joins the other replicas there. set is called with the
// conditions synced and leading.
func (p *Pool) followCluster(o *Options, log logr.Logger, set func(condition, bool)) error {
	set(synced, false)
	kube.SetLogger(log)
	cfg, err := kube.Connect(o.Kubeconfig)
	if err != nil {
		return err
	}
	read := make(chan struct{})
	if p.cluster, err = kube.NewCluster(cfg, log, func() {
		set(synced, true)
		close(read)
	}); err != nil {
		return err
	}
	if err := register(p.registerer, p.cluster.Collectors()...); err != nil {
		return err
	}
	if _, err = kube.NewSource(p.cluster, o.kube(), p.store, log); err != nil {
		return err
	}
	var leads atomic.Bool
	leads.Store(true) // without an election
	err = p.replicate(o, cfg, p.log.WithName("leader"), read, func(is bool) {
		leads.Store(is)
		if p.scraper != nil {
			p.scraper.Lead(is)
		}
		set(leading, is)
	})
	if err != nil || o.PoolName == "" {
		return err // without an InferencePool resources have no pool to refer to
	}
	p.naming.pool = names.Pool{Group: o.PoolGroup, Name: o.PoolName}
	p.naming.source = kube.NewNames(p.cluster, kube.NamesConfig{
		Namespace: o.PoolNamespace, Use: p.resourcesChanged, Leads: leads.Load,
	}, log)
	return register(p.registerer, newNameMetrics(&p.naming))
}

// defaultNamespace is the namespace of the pool without a flag: Weir's own pod's.
func defaultNamespace() string { return cmp.Or(os.Getenv("NAMESPACE"), "default") }
