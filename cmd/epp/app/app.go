package app

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/pkg/datastore"
	"github.com/weir-epp/weir/pkg/datastore/kube"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/recording"
	"github.com/weir-epp/weir/pkg/scheduling"
)

// App is the whole program, wired. New makes it; Run runs it once.
type App struct {
	options       Options
	configuration configuration
	log           logr.Logger

	registry   *prometheus.Registry
	metrics    ownMetrics
	store      *datastore.Store
	files      *datastore.Files // configuration, endpoints, certificate: those that are files and followed
	controller *flowcontrol.RequestQueueController
	server     *extproc.Server
	pool       *pool
	recorder   *recording.Recorder // nil: none

	readingRecording sync.Mutex // held while a reader takes it

	listeners     listeners
	followed      []func(*datastore.Files) error // certificates and authorities
	streams       *streamEnd
	grpcServer    *grpc.Server
	healthServer  *grpc.Server
	metricsServer *http.Server
	debugServer   *http.Server

	health    *health.Server
	readiness *readiness
	cluster   *kube.Cluster // nil: the endpoints do not come from Kubernetes

	receiveLimit int    // of the gRPC server, in bytes
	loaded       []byte // the configuration file's text at the start; then of the files' goroutine
	watched      bool   // of the files' goroutine: the file has been looked at
}

// New wires the program and opens its listeners, but serves nothing yet. On an error nothing stays open. The error for
// an invalid configuration names every problem.
func New(options Options) (*App, error) {
	if err := options.Validate(); err != nil {
		return nil, fmt.Errorf("invalid options:\n%w", err)
	}
	a := &App{options: options, log: options.Log}
	d, text, invalid, err := loadConfig(&a.options, a.log)
	if err != nil {
		return nil, err
	}
	a.loaded = text
	a.configuration.source, a.configuration.hashed = a.options.configName(), a.options.HashFlowKeys
	a.configuration.use(d, time.Now())
	a.registry, a.metrics = newRegistry()
	if invalid == nil {
		a.metrics.configValid.Set(1)
	}
	a.configuration.refuse(invalid)
	if a.listeners, err = listen(&a.options); err != nil {
		return nil, err
	}
	if err := a.wire(&d); err != nil {
		return nil, errors.Join(err, a.listeners.close())
	}
	advise(&d, a.options.HashFlowKeys, a.log) // not before everything is accepted: advice above an error would be taken for its reason
	return a, nil
}

// wire makes the parts, from the core outwards. It opens nothing that would have to be closed.
func (a *App) wire(d *config.Document) error {
	scheduler, err := scheduling.New(d.SchedulingConfig())
	if err != nil {
		return fmt.Errorf("app: scheduling: %w", err)
	}
	board := scheduling.NewBoard(scheduler, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	flow, streamConfig := a.options.converted(d)
	a.controller, err = flowcontrol.New(flow, placer{board}, a.log.WithName("flowcontrol"))
	if err != nil {
		return fmt.Errorf("app: %w", err)
	}
	if err := a.record(board); err != nil {
		return err
	}
	for _, c := range a.controller.Collectors() {
		if err := a.registerer().Register(c); err != nil {
			return fmt.Errorf("app: registering metrics: %w", err)
		}
	}
	a.pool = &pool{log: a.log.WithName("pool"), board: board, controller: a.controller, scheduler: scheduler, flow: flow}
	a.pool.prepared.Store(&prepared{scheduler, board.Snapshot()})
	a.registerer().MustRegister(newLoadMetrics(a.pool))
	a.server, err = extproc.NewServer(streamConfig, extproc.Dependencies{
		Controller: extproc.Controlled(a.controller),
		Picker:     picker{&a.pool.prepared},
		Log:        a.log.WithName("extproc"),
		Registerer: a.registerer(), NameRequests: a.recorder != nil,
	})
	if err != nil {
		return fmt.Errorf("app: %w", err)
	}
	a.pool.server, a.pool.streams = a.server, streamConfig
	if err := a.wireStore(); err != nil {
		return err
	}
	if err := a.wireServers(d); err != nil {
		return err
	}
	if err := a.wireKubernetes(); err != nil {
		return err
	}
	return a.wireFiles()
}

// wireFiles follows every file that may change.
func (a *App) wireFiles() error {
	a.files = datastore.NewFiles(a.log.WithName("files"))
	var err error
	if a.options.ConfigFile != "" {
		err = a.files.Follow(a.options.ConfigFile, a.configChanged)
	}
	err = errors.Join(err, a.store.Follow(a.files))
	if a.options.CertReload {
		for _, follow := range a.followed {
			err = errors.Join(err, follow(a.files))
		}
	}
	if err != nil {
		return fmt.Errorf("app: %w", err)
	}
	if a.files.Len() > 0 {
		a.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "weir_files_followed",
			Help: "1 if changes of the files that Weir was given are seen, 0 if the system gives no watch and they are read at SIGHUP only.",
		}, func() float64 {
			if a.files.Err() != nil {
				return 0
			}
			return 1
		}))
	}
	return nil
}

func (a *App) wireStore() error {
	file := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_endpoints_file_valid",
		Help: "1 if the endpoints file is in use as it is, 0 if it is broken and the last good endpoints are.",
	})
	cfg := a.options.datastore()
	if cfg.File != "" {
		a.registry.MustRegister(file)
		file.Set(1)
		cfg.OnFile = func(err error) {
			if err != nil {
				file.Set(0)
			} else {
				file.Set(1)
			}
		}
	}
	cfg.InUse = a.pool.inUse
	store, err := datastore.New(cfg, a.log.WithName("datastore"))
	if err != nil {
		return fmt.Errorf("--endpoints-file: %w", err) // what Validate has not seen
	}
	a.store = store
	a.store.Subscribe(a.pool.changed)
	return nil
}

func (a *App) wireServers(d *config.Document) error {
	secure, err := a.wireTLS()
	if err != nil {
		return err
	}
	a.streams = newStreamEnd()
	if a.receiveLimit, err = a.options.receiveLimit(d.Limits); err != nil {
		return err
	}
	a.grpcServer = newGRPCServer(a.receiveLimit, secure, a.streams)
	extprocv3.RegisterExternalProcessorServer(a.grpcServer, a.server)
	a.healthServer, a.health = newHealthServer()
	a.readiness = newReadiness(a.health)
	healthv1.RegisterHealthServer(a.grpcServer, a.health) // for Envoy's own health checks of the cluster
	a.debugServer = newDebugServer(a)
	a.metricsServer, err = newMetricsServer(a)
	return err
}

// wireTLS returns the credentials of the ext_proc server, nil for plaintext.
func (a *App) wireTLS() (credentials.TransportCredentials, error) {
	o := &a.options
	if !o.SecureServing {
		return nil, nil
	}
	cert, err := newCertificate(o.CertPath, "secure-serving", "cert-path", a.log.WithName("certificate"))
	if err != nil {
		return nil, err
	}
	a.followed = append(a.followed, cert.follow)
	var authorities *clientCA
	if o.ClientCAFile != "" {
		if authorities, err = newClientCA(o.ClientCAFile, a.log.WithName("certificate")); err != nil {
			return nil, err
		}
		a.followed = append(a.followed, authorities.follow)
	}
	secure := newHandshakes(credentials.NewTLS(serverTLS(cert, tlsVersions[o.TLSMinVersion], authorities)), a.log.WithName("tls"))
	a.registry.MustRegister(secure.failed)
	return secure, nil
}

// Reload reads every followed file again and applies it. It returns immediately.
func (a *App) Reload() {
	if a.files.Len() == 0 {
		a.log.Info("there is no file to read again: the configuration is made of the profile and the flags")
		return
	}
	a.files.Reread()
}

// Ports returns the ports that the program listens on, also if it was started with port 0.
func (a *App) Ports() Ports { return a.listeners.ports() }

// Config returns the configuration in use.
func (a *App) Config() config.Document { return a.configuration.current() }
