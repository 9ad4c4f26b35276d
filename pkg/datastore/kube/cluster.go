package kube

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Cluster is the connection of one pool to the apiserver, for all its sources: pods, the pool itself, objectives and
// models. Sources are added before Run.
type Cluster struct {
	// Immutable.
	log         logr.Logger
	config      *rest.Config
	manager     manager.Manager
	permissions *permissions
	telling     *telling
	metrics     *metrics
	onSynced    func()
	sources     []source

	mu      sync.Mutex
	waiting map[string]bool // the names of the sources that have not synced yet
}

type source struct {
	name string
	run  func(ctx context.Context, synced func()) error
}

// NewCluster returns a cluster and sends no request: it succeeds without the apiserver. onSynced is called once, when
// every source has synced.
func NewCluster(cfg *rest.Config, log logr.Logger, onSynced func()) (*Cluster, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	c := &Cluster{log: log, onSynced: onSynced, metrics: newMetrics(), waiting: map[string]bool{}}
	c.config, err = outermost(cfg, func(next http.RoundTripper) http.RoundTripper {
		return newPatience(next, log, c.metrics.up, c.doubt)
	})
	if err != nil {
		return nil, err
	}
	c.manager, err = manager.New(c.config, manager.Options{
		Scheme: scheme, Logger: log.V(1),
		// Weir has its own of all these.
		LeaderElection: false, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", PprofBindAddress: "0",
		GracefulShutdownTimeout: new(forever),
		// Several pools may live in one process.
		Controller: config.Controller{SkipNameValidation: new(true)},
		NewClient: func(cfg *rest.Config, o client.Options) (client.Client, error) {
			o.Cache = nil // each source has a cache of its own, with only the objects it needs
			return client.New(cfg, o)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("kube: %w", err)
	}
	c.permissions = newPermissions(c.manager.GetClient(), log, c.metrics.missing)
	c.telling = newTelling(c.manager.GetClient(), log)
	return c, nil
}

// Client returns a client that reads from the apiserver instead of a cache; while the apiserver is away, reads wait for
// it.
func (c *Cluster) Client() client.Client { return c.manager.GetClient() }

// Add adds a source. run follows it until ctx is done, and calls synced when it is complete for the first time; an
// error ends the program. Add must be called before Run.
func (c *Cluster) Add(name string, run func(ctx context.Context, synced func()) error) {
	c.sources = append(c.sources, source{name, run})
	c.waiting[name] = true
}

// Run follows all sources until ctx is done, and returns after its goroutines have ended. An apiserver that does not
// answer, or forbids a request, is not an error: Run asks it again.
func (c *Cluster) Run(ctx context.Context) error {
	err := c.manager.Add(manager.RunnableFunc(func(ctx context.Context) error {
		parts, ctx := errgroup.WithContext(ctx)
		parts.Go(func() error { c.permissions.run(ctx); return nil })
		parts.Go(func() error { c.telling.run(ctx); return nil })
		for _, s := range c.sources {
			parts.Go(func() error { return s.run(ctx, sync.OnceFunc(func() { c.synced(s.name) })) })
		}
		return parts.Wait()
	}))
	if err == nil {
		err = c.manager.Start(ctx)
	}
	if err != nil {
		return fmt.Errorf("kube: %w", err)
	}
	return nil
}

// synced notes that a source has synced.
func (c *Cluster) synced(name string) {
	c.mu.Lock()
	delete(c.waiting, name)
	left := len(c.waiting)
	c.mu.Unlock()
	c.log.Info("synced", "source", name, "left", left)
	if left == 0 {
		c.metrics.synced.Set(1)
		c.onSynced()
	}
}

// Waiting lists the sources that have not synced yet.
func (c *Cluster) Waiting() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.waiting))
}

// Collectors returns the cluster's metrics, for the wiring's registry.
func (c *Cluster) Collectors() []prometheus.Collector { return c.metrics.collectable() }
