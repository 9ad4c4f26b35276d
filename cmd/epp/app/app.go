package app

import (
	"errors"
	"fmt"
	"net/http"
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
	"github.com/weir-epp/weir/pkg/tracing"
)

// App is the whole program, wired. New makes it; Run runs it once.
type App struct {
	options       Options
	configuration configuration
	log           logr.Logger

	registry *prometheus.Registry
	metrics  ownMetrics
	files    *datastore.Files // the followed files: configuration, endpoints, certificates
	pool     *Pool
	tracer   *tracing.Tracer // nil: none

	reading recordingReading
	rates   rates

	listeners     listeners
	followed      []func(*datastore.Files) error // certificates and authorities
	handshakes    *tellings                      // nil without TLS
	streams       *streamEnd
	grpcServer    *grpc.Server
	healthServer  *grpc.Server
	metricsServer *http.Server
	debugServer   *http.Server

	health    *health.Server
	readiness *readiness

	receiveLimit int    // of the gRPC server, in bytes
	loaded       []byte // the configuration file's text at the start; then of the files' goroutine
	watched      bool   // of the files' goroutine: the file has been read once
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
	advise(&d, a.pool.endpoints(), a.options.HashFlowKeys, a.log) // last: above an error it would look like its reason
	return a, nil
}

// wire makes the parts. It opens nothing that needs closing.
func (a *App) wire(d *config.Document) error {
	a.healthServer, a.health = newHealthServer()
	a.readiness = newReadiness(a.health)
	err := a.trace()
	if err != nil {
		return err
	}
	a.pool, err = newPool(&a.options, d, a.registry, a.log, a.spans(), a.readiness.set)
	if err != nil {
		return err
	}
	if err := a.wireServers(d); err != nil {
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
	err = errors.Join(err, a.pool.store.Follow(a.files))
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
			Help: "1 if Weir follows its files; 0 if the system grants no watch, and Weir reads them again only at SIGHUP.",
		}, func() float64 {
			if a.files.Err() != nil {
				return 0
			}
			return 1
		}))
	}
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
	extprocv3.RegisterExternalProcessorServer(a.grpcServer, a.pool.server)
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
	secure := newHandshakes(credentials.NewTLS(serverTLS(cert, o.spoken(), authorities)), a.log.WithName("tls"))
	a.registry.MustRegister(secure.failed, cert.expiry())
	a.handshakes = secure.told
	return secure, nil
}

// Reload reads every followed file again and applies it. It returns immediately.
func (a *App) Reload() {
	if a.files.Len() == 0 {
		a.log.Info("no file to read again: the configuration comes from the profile and the flags")
		return
	}
	a.files.Reread()
}

// Ports returns the ports that the program listens on, even if it was started with port 0.
func (a *App) Ports() Ports { return a.listeners.ports() }

// Config returns the configuration in use.
func (a *App) Config() config.Document { return a.configuration.current() }
