package flowcontrol

import "time"

// Lease is one request's holding of stock, from dispatch to completion. It is settled exactly once, by
// OnRequestComplete or by preemption, whichever comes first.
type Lease struct{ endpoint Endpoint }

// Endpoint is the endpoint that was picked and reserved for the request.
func (l *Lease) Endpoint() Endpoint { return l.endpoint }

// Queued is how long the request waited in the queue; 0 and false for a bypass.
func (l *Lease) Queued() (time.Duration, bool) { return 0, false }

// Preempted is closed when the lease is taken for a higher tier: the stream then answers with ErrPreempted's
// response. It is nil (blocks for ever) for a lease that can never be preempted.
func (l *Lease) Preempted() <-chan struct{} { return nil }

// OnFirstByte is told before the response headers are let through to the client. Nil: from now on the lease is
// never preempted. ErrPreempted: the preemption came first, answer with its response instead.
func (l *Lease) OnFirstByte() error { return nil }

// OnRequestComplete settles the lease: the stock falls, and whoever waits for it is released. Only the first call
// counts, so it may be deferred and called early as well.
func (l *Lease) OnRequestComplete(c Completion) {}
