package app

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/weir-epp/weir/internal/version"
)

// Run serves until ctx is done, then drains. It returns after all its goroutines have ended: nil after a regular end.
// If a part fails, Run ends all parts and returns the error. Run may be called once.
func (a *App) Run(ctx context.Context) error {
	// The parts work until the drain is complete, and are stopped only then.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	parts, work := errgroup.WithContext(work)
	parts.Go(func() error { return a.pool.Run(work) })
	parts.Go(func() error { return a.files.Run(work) })
	parts.Go(func() error { return serve(a.grpcServer, a.listeners.grpc) })
	parts.Go(func() error { return serve(a.healthServer, a.listeners.health) })
	parts.Go(func() error { return serveHTTP(a.metricsServer, a.listeners.metrics, "metrics") })
	if a.tracer != nil {
		parts.Go(func() error { return a.tracer.Run(work) })
	}
	if a.listeners.debug != nil {
		parts.Go(func() error { return serveHTTP(a.debugServer, a.listeners.debug, "debugging") })
	}
	started := a.started()
	if started == nil {
		select {
		case <-ctx.Done():
			a.drain(work)
		case <-work.Done(): // a part has failed
		}
	}
	a.readiness.set(open, false)
	a.streams.end()
	a.grpcServer.Stop()
	a.healthServer.Stop()
	shutdown := errors.Join(a.metricsServer.Close(), a.debugServer.Close())
	stop()
	return errors.Join(started, parts.Wait(), shutdown)
}

// started logs that all listeners are open.
func (a *App) started() error {
	ports := a.Ports()
	build := version.Info()
	a.log.Info("started", "version", build.Version, "revision", build.Revision, "profile", a.Config().Profile,
		"bind", a.options.BindAddress, "grpc", ports.GRPC, "health", ports.Health, "metrics", ports.Metrics, "debug", ports.Debug,
		"secure", a.options.SecureServing, "endpoints", a.pool.store.Current().Len())
	d := a.Config()
	a.log.Info("the configuration in use", a.inUse(&d)...)
	if t := a.options.Tracing; t != nil {
		a.log.Info("spans of requests go to a collector", "endpoint", t.Endpoint, "protocol", t.Protocol, "sampler", t.Sampler.Description())
	}
	a.readiness.set(listening, true)
	if a.options.PortsFile == "" {
		return nil
	}
	return writePorts(a.options.PortsFile, ports)
}

func serve(server *grpc.Server, listener net.Listener) error {
	if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("app: serving gRPC: %w", err)
	}
	return nil
}
