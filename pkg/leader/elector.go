package leader

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Elector runs the election for one replica.
type Elector struct {
	config  Config
	leases  ElectionAPI
	changed func(leads bool)
	log     logr.Logger

	part   context.Context // done: this replica no longer takes part
	resign context.CancelFunc
	gone   chan struct{} // closed: the Lease has been given up, or never will be
	over   chan struct{} // closed: this replica no longer leads

	leader atomic.Pointer[string] // the pod of the Lease's holder, as last seen

	// Owned by Run.
	election election
	unsure   bool // the Lease must be read before the next write
	told     bool // the last argument of changed
	failure  failure
}

// NewElector returns the elector of one replica for the Lease of that name. Run's goroutine calls changed each time
// this replica begins or ends to lead; it must be quick. failed is called for each failed request, for a metric.
func NewElector(
	config Config, name string, me Identity, leases ElectionAPI, changed func(leads bool), failed func(), log logr.Logger,
) *Elector {
	part, resign := context.WithCancel(context.Background())
	log = log.WithValues("lease", name)
	return &Elector{
		config: config, leases: leases, changed: changed, log: log,
		part: part, resign: resign, gone: make(chan struct{}), over: make(chan struct{}),
		election: election{me: me, name: name, duration: config.LeaseDuration, pause: config.RetryPeriod},
		unsure:   true,
		failure: failure{
			log: log, failed: failed,
			begins: "the Lease of the leader cannot be read or written: the roles of replicas stay until it can",
			ends:   "the Lease of the leader can be read and written again",
		},
	}
}

// Resign ends this replica's part in the election: it gives up the Lease, so that another replica can take it, and
// leads until one has. given is closed when this replica no longer holds the Lease, succeeded when it no longer leads.
// Run must be running; channels not closed when it ends stay open.
func (e *Elector) Resign() (given, succeeded <-chan struct{}) {
	e.resign()
	return e.gone, e.over
}

// Leader returns the name of the leader's pod, as last seen; "" if none was.
func (e *Elector) Leader() string {
	if pod := e.leader.Load(); pod != nil {
		return *pod
	}
	return ""
}

// Run takes part in the election until ctx is done or Resign is called; it returns nil when ctx is done. Without Resign
// the Lease stays as it is.
func (e *Elector) Run(ctx context.Context) error {
	defer e.resign() // releases the context
	timer := time.NewTimer(0)
	defer timer.Stop()
	for e.part.Err() == nil && ctx.Err() == nil {
		select {
		case <-e.part.Done():
		case <-ctx.Done():
		case <-timer.C:
			timer.Reset(e.round(ctx))
		}
	}
	if ctx.Err() == nil {
		e.giveUp(ctx)
		close(e.gone)
		e.awaitSuccessor(ctx)
	}
	<-ctx.Done()
	return nil
}

// round reads the Lease and writes it if it is time. It returns the time until the next round.
func (e *Elector) round(ctx context.Context) time.Duration {
	err := e.act(ctx)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		err = e.act(ctx) // another writer was faster: read the result
	}
	if e.part.Err() == nil && ctx.Err() == nil {
		e.failure.note(err, "leads", e.told)
	}
	now := time.Now()
	// A little early at random, so that replicas started together do not stay in step.
	wait := e.config.RetryPeriod - rand.N(e.config.RetryPeriod/5+1)
	if _, at := e.election.proposal(now); !at.IsZero() {
		wait = min(wait, max(0, at.Sub(now)))
	}
	return wait
}

// act reads the Lease if needed, and writes the election's proposal.
func (e *Elector) act(ctx context.Context) error {
	if !e.election.leads || e.unsure {
		lease, err := e.get(ctx)
		if err != nil {
			return err
		}
		e.unsure = false
		e.election.saw(time.Now(), lease)
		e.tell()
	}
	write, _ := e.election.proposal(time.Now())
	if write == nil {
		return nil
	}
	lease, err := e.put(ctx, write)
	if err != nil {
		e.unsure = true // it may have been written nevertheless
		return err
	}
	e.election.saw(time.Now(), lease)
	e.tell()
	return nil
}

// giveUp removes this replica as the Lease's holder. It tries until that succeeds or ctx is done.
func (e *Elector) giveUp(ctx context.Context) {
	write := e.election.leave()
	if e.unsure {
		write = e.leaveAgain(ctx, write)
	}
	for write != nil {
		lease, err := e.put(ctx, write)
		if err == nil {
			e.election.saw(time.Now(), lease)
			e.log.Info("released the Lease: this replica leads until another one does")
			return
		}
		e.failure.note(err, "leads", e.told)
		if !e.pause(ctx) {
			return
		}
		write = e.leaveAgain(ctx, write)
	}
}

// leaveAgain reads the Lease and returns the result of leave for it; for an unknown state, the same as before.
func (e *Elector) leaveAgain(ctx context.Context, before *coordinationv1.Lease) *coordinationv1.Lease {
	lease, err := e.get(ctx)
	if err != nil {
		return before
	}
	e.election.saw(time.Now(), lease)
	e.tell()
	return e.election.leave()
}

// awaitSuccessor reads the Lease until another replica holds it, or ctx is done.
func (e *Elector) awaitSuccessor(ctx context.Context) {
	for e.election.leads {
		if !e.pause(ctx) {
			return
		}
		lease, err := e.get(ctx)
		e.failure.note(err, "leads", e.told)
		if err == nil {
			e.election.saw(time.Now(), lease)
		}
	}
	e.tell()
	close(e.over)
}

// pause waits for a quarter of the retry period, and returns false if ctx is done before.
func (e *Elector) pause(ctx context.Context) bool {
	pause := time.NewTimer(e.config.RetryPeriod / 4)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// get returns the Lease, nil if there is none.
func (e *Elector) get(ctx context.Context) (*coordinationv1.Lease, error) {
	ctx, cancel := e.call(ctx)
	defer cancel()
	lease, err := e.leases.Get(ctx, e.election.name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return lease, err
}

// put creates or updates the Lease.
func (e *Elector) put(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	ctx, cancel := e.call(ctx)
	defer cancel()
	if lease.ResourceVersion == "" {
		return e.leases.Create(ctx, lease)
	}
	return e.leases.Update(ctx, lease)
}

// call returns the context of one request. A hanging request does not delay a resignation.
func (e *Elector) call(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, e.config.callTimeout())
	if e.part.Err() != nil {
		return ctx, cancel // it belongs to the resignation
	}
	stop := context.AfterFunc(e.part, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// tell notes the leader, and calls changed if this replica begins or ends to lead.
func (e *Elector) tell() {
	pod := ""
	if e.election.lease != nil {
		pod, _, _ = strings.Cut(holderOf(e.election.lease), "_")
	}
	e.leader.Store(&pod)
	if e.election.leads == e.told {
		return
	}
	e.told = e.election.leads
	if e.told {
		e.log.Info("this replica leads now")
	} else if l := e.election.lease; l != nil && holderOf(l) != e.election.me.String() {
		e.log.Info("another replica leads now: this one follows", "leader", holderOf(l))
	}
	e.changed(e.told)
}
