package app

import (
	"context"
	"time"
)

// handOver marks this replica as stopping for the others, and gives up the Lease. A leader stays ready until a
// successor leads, the Service leads to it, and proxies have had the time seeing to notice; but at most for most. The
// channel is closed when the Lease is given up, or could not be within resignTime. r may be nil.
func (r *replication) handOver(ctx context.Context, seeing, most time.Duration) (left <-chan struct{}) {
	done := make(chan struct{})
	if r == nil {
		close(done)
		return done
	}
	r.replicas.Drain()
	if r.elector == nil {
		close(done)
		return done
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	led := r.leads.Load()
	r.handsOver.Store(led)
	var replaced <-chan struct{}
	if led && r.publication != nil {
		replaced = r.publication.HandOver()
	} else if !led {
		most = 0
	}
	given, succeeded := r.elector.Resign()
	go func() {
		defer close(done)
		await(given, resignTime)
	}()
	if most <= 0 {
		return done
	}
	begun := time.Now()
	if !reached(ctx, succeeded) || replaced != nil && !reached(ctx, replaced) {
		r.log.Info("no other replica leads: this replica is no longer ready", "after", time.Since(begun).String())
		r.metrics.leads(false)
		if r.publication != nil {
			await(r.publication.Withdraw(), resignTime)
		}
		return done
	}
	r.log.Info("another replica leads: this replica stays ready until proxies have noticed", "after", time.Since(begun).String(),
		"seeing", seeing.String())
	seen, cancelSeen := context.WithTimeout(ctx, seeing)
	defer cancelSeen()
	<-seen.Done()
	return done
}

// reached waits for a channel to be closed, and returns false if ctx is done first.
func reached(ctx context.Context, c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}

// await waits for a channel to be closed, for at most the given time.
func await(c <-chan struct{}, atMost time.Duration) {
	timeout := time.NewTimer(atMost)
	defer timeout.Stop()
	select {
	case <-c:
	case <-timeout.C:
	}
}
