package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
)

// Run serves until ctx is done, then drains; it returns when all its goroutines have: nil after a regular end. A part
// that fails meanwhile ends everything, and its error is returned. Run may be called once.
func (a *App) Run(ctx context.Context) error {
	// The parts work until everything has drained; only then are they stopped.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	parts, work := errgroup.WithContext(work)
	parts.Go(func() error { return a.controller.Run(work) })
	parts.Go(func() error { return a.store.Run(work) })
	if a.certificate != nil && a.certificate.crt != "" && a.options.CertReload {
		parts.Go(func() error { return a.certificate.watch(work) })
	}
	parts.Go(func() error { return serve(a.grpcServer, a.listeners.grpc) })
	parts.Go(func() error { return serve(a.healthServer, a.listeners.health) })
	parts.Go(func() error {
		if err := a.debugServer.Serve(a.listeners.metrics); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("app: serving metrics: %w", err)
		}
		return nil
	})
	started := a.started()
	if started == nil {
		select {
		case <-ctx.Done():
			a.drain(work)
		case <-work.Done(): // a part has failed
		}
	}
	a.setReady(false)
	a.streams.end()
	a.grpcServer.Stop()
	a.healthServer.Stop()
	shutdown := a.debugServer.Close()
	stop()
	return errors.Join(started, parts.Wait(), shutdown)
}

// started says that everything listens.
func (a *App) started() error {
	ports := a.Ports()
	build := buildInfo()
	a.log.Info("started", "version", build.version, "revision", build.revision, "profile", a.document.Profile,
		"bind", a.options.BindAddress, "grpc", ports.GRPC, "health", ports.Health, "metrics", ports.Metrics,
		"secure", a.options.SecureServing, "endpoints", a.store.Current().Len())
	a.setReady(true)
	if a.options.PortsFile == "" {
		return nil
	}
	return writePorts(a.options.PortsFile, ports)
}

func (a *App) setReady(ready bool) {
	a.ready.Store(ready)
	setReady(a.health, ready)
}

func serve(server *grpc.Server, listener net.Listener) error {
	if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("app: serving gRPC: %w", err)
	}
	return nil
}

// drainLook is how often a draining process looks whether somebody still waits. It is the only thing that polls, and
// only at the very end.
const drainLook = 20 * time.Millisecond

// drain stops taking requests in, in the order that doc.go tells. It returns when nothing is in flight, when the
// drain timeout is over, or when work is done.
func (a *App) drain(work context.Context) {
	begun := time.Now()
	a.setReady(false)
	window := min(a.document.RequestQueueController.DrainWindow.Std(), a.options.DrainTimeout)
	a.log.Info("draining: queued and new requests are still served", "window", window.String(),
		"timeout", a.options.DrainTimeout.String(), "queued", a.controller.State().Queued, "streams", a.server.Streams())
	waitUntil(work, window, func() bool { return a.server.Streams() == 0 && a.controller.State().Queued == 0 })
	queued := a.controller.State().Queued
	a.controller.Drain()
	a.log.Info("drained: what waits and what comes is rejected", "after", time.Since(begun).String(),
		"rejected", queued, "streams", a.server.Streams())
	// Envoy is told to open its streams elsewhere; those in flight run on.
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		a.grpcServer.GracefulStop()
	}()
	timeout := time.NewTimer(max(0, a.options.DrainTimeout-time.Since(begun)))
	defer timeout.Stop()
	select {
	case <-gone:
	case <-work.Done():
	case <-timeout.C:
		a.log.Info("the drain timeout is over: ending the streams in flight, their answers go on unobserved",
			"streams", a.streams.end())
		a.grace(gone)
	}
	a.grpcServer.Stop()
	<-gone
	a.log.Info("stopped", "after", time.Since(begun).String(), "stock", a.controller.State().Stock)
}

// grace lets the ends of the streams reach Envoy before the connections are closed.
func (a *App) grace(gone <-chan struct{}) {
	const atMost = time.Second
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-gone:
	case <-timer.C:
	}
}

// waitUntil waits for a condition, at most for a time or until ctx is done.
func waitUntil(ctx context.Context, atMost time.Duration, condition func() bool) {
	timeout := time.NewTimer(atMost)
	defer timeout.Stop()
	look := time.NewTicker(drainLook)
	defer look.Stop()
	for !condition() {
		select {
		case <-look.C:
		case <-timeout.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
