package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/weir-epp/weir/pkg/datastore/kube"
	"github.com/weir-epp/weir/pkg/leader"
)

// resignTime is the time for which a stopping process waits, at the end of its drain, for its Lease to be given up.
const resignTime = 3 * time.Second

// Pod is the program's own pod, from its environment.
type Pod struct {
	// Name is the pod's name; empty: the program is in no pod (POD_NAME).
	Name string
	// UID is the pod's UID; empty: unknown (POD_UID).
	UID string
	// Namespace is the pod's namespace; empty: the pool's (NAMESPACE).
	Namespace string
	// IP is the pod's IP; empty: unknown (POD_IP).
	IP string
}

// ownPod returns the pod from the environment.
func ownPod() Pod {
	return Pod{Name: os.Getenv("POD_NAME"), UID: os.Getenv("POD_UID"), Namespace: os.Getenv("NAMESPACE"), IP: os.Getenv("POD_IP")}
}

// replication is this replica's connection to the other replicas of its pool.
type replication struct {
	cluster         *kube.Cluster
	namespace, pool string // of the Leases, and the value of their label
	needs           []kube.Permission
	metrics         *replicationMetrics
	replicas        *leader.Replicas
	log             logr.Logger
	leads           atomic.Bool         // this replica leads, or there is no election
	handsOver       atomic.Bool         // it has led, and stays ready until proxies have seen its successor
	elector         *leader.Elector     // nil: every replica is ready
	publication     *leader.Publication // nil: no election, or no EndpointSlice for the leader
	synced          <-chan struct{}     // closed: all sources have been read, so this replica could serve
}

// replicate makes the part that keeps this replica's Leases. synced is closed when the replica could serve; before that
// it does not lead. leads is called with whether this replica leads: at once with false if there is an election, and
// after each change, but not after a handover: it then stays ready for a while beside its successor.
func (p *Pool) replicate(o *Options, connection *rest.Config, log logr.Logger, synced <-chan struct{}, leads func(bool)) error {
	me := leader.NewIdentity(o.Pod.Name, o.Pod.UID)
	if me.Pod == "" {
		hostname, _ := os.Hostname() // empty: it has some name all the same
		me.Pod = leader.PodOf(hostname)
	}
	connection = rest.CopyConfig(connection)
	connection.QPS = -1 // the retry period paces the requests
	r := &replication{
		cluster: p.cluster, namespace: cmp.Or(o.Pod.Namespace, o.PoolNamespace), pool: leader.SelectorLabelOf(o.EndpointSelector),
		metrics: newReplicationMetrics(p), synced: synced, log: log,
	}
	if o.PoolName != "" {
		r.pool = leader.PoolLabelOf(o.PoolName)
	}
	leases, err := leader.NewLeases(connection, r.namespace)
	if err != nil {
		return fmt.Errorf("app: %w", err)
	}
	r.need(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, "", "get", "list", "create", "update", "delete")
	r.replicas = leader.NewReplicas(o.Leader, me, r.pool, leases, leader.Part{
		InFlight: p.tellInFlight, Changed: p.foreignChanged, Failed: r.metrics.failed("replica"),
	}, log)
	if o.LeaderElection {
		if err := r.elect(o, connection, me, leases, log, leads); err != nil {
			return err
		}
	}
	p.cluster.Add("replicas", r.run)
	p.replication = r
	return register(p.registerer, r.metrics.collectors()...)
}

// elect makes the elector and the publication.
func (r *replication) elect(
	o *Options, connection *rest.Config, me leader.Identity, leases leader.Leases, log logr.Logger, leads func(bool),
) error {
	leads(false)
	if name := o.LeaderEndpointSlice; name != "" && (o.Pod.Name == "" || o.Pod.UID == "" || o.Pod.IP == "") {
		log.Info("WARNING: POD_NAME, POD_UID or POD_IP is not set: the leader cannot enter itself in the EndpointSlice", "endpointSlice", name)
	} else if name != "" {
		me.Address = o.Pod.IP
		slice, err := leader.NewSlice(connection, r.namespace, name)
		if err != nil {
			return fmt.Errorf("app: %w", err)
		}
		r.need(schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}, name, "get", "patch")
		r.publication = leader.NewPublication(
			o.Leader, me, r.namespace, slice, r.metrics.failed("publication"), log.WithValues("endpointSlice", name))
	}
	r.metrics.elects()
	r.elector = leader.NewElector(o.Leader, leader.ElectionLease(r.pool), me, leases, func(is bool) {
		r.leads.Store(is)
		r.replicas.Look() // so that the last leader's newest dispatches are known
		r.metrics.leads(is)
		if is || !r.handsOver.Load() {
			leads(is)
		}
		if r.publication != nil {
			r.publication.Lead(is)
		}
	}, r.metrics.failed("election"), log)
	return nil
}

// need requests permissions for objects of its own namespace; with a name only for that object.
func (r *replication) need(resource schema.GroupResource, name string, verbs ...string) {
	for _, verb := range verbs {
		r.needs = append(r.needs, kube.Permission{Verb: verb, GroupResource: resource, Namespace: r.namespace, Name: name})
	}
}

// run keeps the Leases until ctx is done. It is a source of the cluster: requests come here only after the other
// replicas' requests in flight are known.
func (r *replication) run(ctx context.Context, synced func()) error {
	granted := make([]<-chan struct{}, len(r.needs))
	for i, p := range r.needs {
		granted[i] = r.cluster.Need(p)
	}
	for _, g := range granted {
		select {
		case <-g:
		case <-ctx.Done():
			return nil
		}
	}
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return r.replicas.Run(ctx, synced) })
	if r.elector != nil {
		parts.Go(func() error {
			select {
			case <-r.synced:
			case <-ctx.Done():
			}
			return r.elector.Run(ctx)
		})
	}
	if r.publication != nil {
		parts.Go(func() error { return r.publication.Run(ctx) })
	}
	return parts.Wait()
}

// replicationMetrics show the leadership and the other replicas' work.
type replicationMetrics struct {
	foreign  prometheus.GaugeFunc
	tokens   prometheus.GaugeFunc
	failures *prometheus.CounterVec
	leader   prometheus.Gauge // nil: there is no election
}

func newReplicationMetrics(p *Pool) *replicationMetrics {
	return &replicationMetrics{
		foreign: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "weir_foreign_stock",
			Help: "Requests in flight of other replicas, or of earlier processes of this one, at the ready endpoints, by their " +
				"records. They count as stock here.",
		}, func() float64 { return float64(p.foreignTotal.Load()) }),
		tokens: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "weir_foreign_stock_tokens",
			Help: "Tokens of the stock that these requests hold, if both replicas bound tokens.",
		}, func() float64 { return float64(p.foreignTokens.Load()) }),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_lease_failures_total",
			Help: "Failed requests to the apiserver: for the election, for the records of replicas, or " +
				"to publish the leader.",
		}, []string{"of"}),
	}
}

// elects adds the gauge of the leadership.
func (m *replicationMetrics) elects() {
	m.leader = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_leader", Help: "1 while this replica is the leader, else 0. Only with --ha-enable-leader-election.",
	})
}

func (m *replicationMetrics) leads(leads bool) {
	m.leader.Set(float64(one(leads)))
}

// failed returns the counter of failures of one kind.
func (m *replicationMetrics) failed(of string) func() { return m.failures.WithLabelValues(of).Inc }

// collectors returns all of them.
func (m *replicationMetrics) collectors() []prometheus.Collector {
	all := []prometheus.Collector{m.foreign, m.tokens, m.failures}
	if m.leader != nil {
		all = append(all, m.leader)
	}
	return all
}
