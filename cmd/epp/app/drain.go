package app

import (
	"context"
	"time"
)

// drainLook is the interval at which a draining process checks for waiting requests. Nothing else polls, and this only
// at the very end.
const drainLook = 20 * time.Millisecond

// answerTime is the longest time in which rejections and the ends of streams reach Envoy.
const answerTime = time.Second

// drain stops accepting requests, in the order of doc.go. It returns when nothing is in flight, when the drain timeout
// is over, or when work is done.
func (a *App) drain(work context.Context) {
	begun := time.Now()
	// Requests rejected at the end of the window must get their replies before the drain timeout.
	answering := min(answerTime, a.options.DrainTimeout/4)
	window := min(a.Config().RequestQueueController.DrainWindow.Std(), a.options.DrainTimeout-answering)
	// Proxies keep opening streams here until they have seen that readiness is down.
	least := min(a.Config().RequestQueueController.MinDrain.Std(), window)
	left := a.pool.replication.handOver(work, least, window-least)
	notReady := time.Now()
	a.readiness.set(open, false)
	a.log.Info("draining: queued and new requests are still served", "least", least.String(), "window", window.String(),
		"timeout", a.options.DrainTimeout.String(), "queued", a.pool.controller.State().Queued, "streams", a.pool.server.Streams())
	waitUntil(work, window-time.Since(begun), func() bool {
		return time.Since(notReady) >= least && a.pool.server.Streams() == 0 && a.pool.controller.State().Queued == 0
	})
	queued, streams := a.pool.controller.State().Queued, a.pool.server.Streams()
	a.pool.controller.Drain()
	waitUntil(work, answering, func() bool { return a.pool.server.Streams() <= streams-queued })
	a.log.Info("drained: rejecting queued and new requests", "after", time.Since(begun).String(),
		"rejected", queued, "streams", a.pool.server.Streams())
	// Envoy is told to open its streams elsewhere; those in flight continue.
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
		a.log.Info("the drain timeout is over: ending the streams in flight; their answers continue without Weir",
			"streams", a.streams.end())
		waitUntil(work, answerTime, func() bool { return closed(gone) })
	}
	a.grpcServer.Stop()
	<-gone
	<-left
	a.log.Info("stopped", "after", time.Since(begun).String(), "stock", a.pool.controller.State().Stock)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// waitUntil waits for a condition, for at most the given time and until ctx is done.
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
