package app

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/internal/names"
	"github.com/weir-epp/weir/internal/placement"
	"github.com/weir-epp/weir/pkg/datastore"
	"github.com/weir-epp/weir/pkg/decision/sink"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/prefix"
	"github.com/weir-epp/weir/pkg/request"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// newPool makes the options' pool, from the core outwards. It opens nothing that needs closing. Its metrics are
// registered at registry, with the label pool if the endpoints come from Kubernetes. tracer may be nil. set is called
// with the pool's conditions of readiness: at once if they do not hold yet, and when they change.
func newPool(
	o *Options, d *config.Document, registry prometheus.Registerer, log logr.Logger, tracer extproc.Tracer, set func(condition, bool),
) (*Pool, error) {
	p := &Pool{log: log.WithName("pool"), registerer: registry}
	if label := o.poolLabel(); label != "" {
		p.registerer = prometheus.WrapRegistererWith(prometheus.Labels{"pool": label}, registry)
	}
	var err error
	if p.scheduler, err = scheduling.New(d.SchedulingConfig()); err != nil {
		return nil, fmt.Errorf("app: scheduling: %w", err)
	}
	p.board = scheduling.NewBoard(p.scheduler, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	p.prepared.Store(newPrepared(p.scheduler, p.board.Snapshot()))
	p.index = prefix.New(prefix.DefaultConfig())
	p.flow, p.naming.file = o.converted(d)
	if a := &p.naming.file.Affinity; a.Mode != request.AffinityOff && a.Seed == "" {
		p.log.Info("scheduling.affinitySeed is empty, so that replicas hash alike: clients can build different prompts that look alike")
	}
	var named names.Names
	p.streams, named = p.naming.merge(p.naming.file, names.Resources{})
	p.naming.use(named)
	if p.controller, err = flowcontrol.New(p.flow, placement.On(p.board), log.WithName("flowcontrol")); err != nil {
		return nil, fmt.Errorf("app: %w", err)
	}
	if err := p.record(o, d.RecordingConfig()); err != nil {
		return nil, err
	}
	p.records = sink.New(d.SinkConfig(), log.WithName("decisions"))
	if err := register(p.registerer, append(p.controller.Collectors(), p.records.Collector(), newLoadMetrics(p), newAffinityMetrics(p.index), newAdapterMetrics(p))...); err != nil {
		return nil, err
	}
	p.server, err = extproc.NewServer(p.streams, extproc.Dependencies{
		Controller: extproc.Controlled(p.controller),
		Picker:     picker{&p.prepared, &p.lengths, p.index, &p.adapters},
		Log:        log.WithName("extproc"),
		Registerer: p.registerer, NameRequests: p.recording.readable, Records: p.records, Tail: &p.tail, Tracer: tracer,
	})
	if err != nil {
		return nil, fmt.Errorf("app: %w", err)
	}
	if err := p.scrape(o.Scrape, log.WithName("scrape")); err != nil {
		return nil, err
	}
	if err := p.followEvents(o.KVEvents, log.WithName("kvevents")); err != nil {
		return nil, err
	}
	if err := p.openStore(o.datastore(), log.WithName("datastore")); err != nil {
		return nil, err
	}
	if !o.kubernetes() {
		return p, nil
	}
	return p, p.followCluster(o, log.WithName("kubernetes"), set)
}

// openStore makes the store, which passes its snapshots to all other parts.
func (p *Pool) openStore(cfg datastore.Config, log logr.Logger) error {
	if cfg.File != "" {
		file := prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_endpoints_file_valid",
			Help: "1 if the endpoints file is in use; 0 if it is broken, and the last good endpoints are in use.",
		})
		if err := register(p.registerer, file); err != nil {
			return err
		}
		file.Set(1)
		cfg.OnFile = func(err error) {
			if err != nil {
				file.Set(0)
			} else {
				file.Set(1)
			}
		}
	}
	cfg.InUse = p.inUse
	var err error
	if p.store, err = datastore.New(cfg, log); err != nil {
		return fmt.Errorf("--endpoints-file: %w", err) // a problem that Validate could not see
	}
	p.store.Subscribe(p.changed)
	return nil
}

// Run does the pool's work until ctx is done. It returns after its goroutines have ended.
func (p *Pool) Run(ctx context.Context) error {
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return p.controller.Run(ctx) })
	parts.Go(func() error { return p.store.Run(ctx) })
	if p.scraper != nil {
		parts.Go(func() error { p.scraper.Run(ctx); return nil })
	}
	if p.events != nil {
		parts.Go(func() error { p.events.Run(ctx); return nil })
	}
	parts.Go(func() error { p.records.Run(ctx); return nil })
	parts.Go(func() error { p.keepRecordings(ctx); return nil })
	parts.Go(func() error { p.keepEndings(ctx); return nil })
	if p.cluster != nil {
		parts.Go(func() error { return p.cluster.Run(ctx) })
	}
	return parts.Wait()
}

// register registers collectors.
func register(at prometheus.Registerer, collectors ...prometheus.Collector) error {
	for _, c := range collectors {
		if err := at.Register(c); err != nil {
			return fmt.Errorf("app: registering metrics: %w", err)
		}
	}
	return nil
}
