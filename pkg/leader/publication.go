package leader

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Publication keeps the EndpointSlice that makes a Service without a selector lead to the leader.
type Publication struct {
	config    Config
	me        Identity
	namespace string
	slice     SliceAPI
	failure   failure
	log       logr.Logger

	wake chan struct{} // of capacity 1

	mu   sync.Mutex
	aim  aim
	done chan struct{} // closed: the aim has been reached, for good
}

// aim is a publication's next action on the slice.
type aim int

const (
	aimNothing  aim = iota // another replica leads, or none is known to
	aimPublish             // to lead to this replica
	aimReplaced            // to see another replica there, and to write nothing
	aimWithdraw            // to lead to no replica, if it leads to this one
)

// NewPublication returns the publication of a replica, whose identity must have an address. failed is called for each
// failed request, for a metric.
func NewPublication(config Config, me Identity, namespace string, slice SliceAPI, failed func(), log logr.Logger) *Publication {
	return &Publication{
		config: config, me: me, namespace: namespace, slice: slice, log: log,
		failure: failure{
			log: log, failed: failed,
			begins: "the EndpointSlice of the leader cannot be read or written: the Service does not follow the leader",
			ends:   "the EndpointSlice of the leader can be read and written again",
		},
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// Lead notes whether this replica leads. It returns at once. After HandOver it has no effect.
func (p *Publication) Lead(leads bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.aim > aimPublish:
	case leads:
		p.set(aimPublish)
	default:
		p.set(aimNothing)
	}
}

// HandOver leaves the slice to the successor and writes it no more. The returned channel is closed when the slice leads
// to another replica.
func (p *Publication) HandOver() (replaced <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(aimReplaced)
	return p.done
}

// Withdraw removes this replica from the slice, if it is still there. The returned channel is closed when it is not.
func (p *Publication) Withdraw() (gone <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set(aimWithdraw)
	return p.done
}

func (p *Publication) set(a aim) {
	p.aim, p.done = a, make(chan struct{})
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Run keeps the slice until ctx is done, and returns nil. While this replica leads it reads the slice every retry
// period, so a slice emptied by a client stays empty for at most that long.
func (p *Publication) Run(ctx context.Context) error {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		case <-again.C:
		}
		p.mu.Lock()
		aim, done := p.aim, p.done
		p.mu.Unlock()
		if aim == aimNothing {
			again.Stop()
			continue
		}
		reached, err := p.pursue(ctx, aim)
		if ctx.Err() != nil {
			return nil
		}
		p.failure.note(err)
		switch {
		case aim == aimPublish:
			again.Reset(p.config.RetryPeriod)
		case reached:
			p.reach(done)
			again.Stop()
		default:
			again.Reset(p.config.RetryPeriod / 4)
		}
	}
}

// pursue reads the slice, and writes it if the aim requires it.
func (p *Publication) pursue(ctx context.Context, aim aim) (reached bool, err error) {
	reached, err = p.step(ctx, aim)
	if apierrors.IsConflict(err) {
		reached, err = p.step(ctx, aim) // somebody was faster: what did they write?
	}
	return reached, err
}

func (p *Publication) step(ctx context.Context, aim aim) (reached bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.callTimeout())
	defer cancel()
	read, err := p.slice.Get(ctx)
	if err != nil {
		// This replica cannot repair a slice that is gone or that it may not read, as after a rollback.
		return aim != aimPublish && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)), err
	}
	mine := false
	for _, e := range read.Endpoints {
		mine = mine || isOf(e, p.me)
	}
	var entries []discoveryv1.Endpoint
	switch {
	case aim == aimReplaced:
		return len(read.Endpoints) > 0 && !mine, nil
	case aim == aimPublish:
		if leadsTo(read, p.me) {
			return true, nil
		}
		if err := takes(read, p.me.Address); err != nil {
			return false, err
		}
		entries = []discoveryv1.Endpoint{entryOf(p.me, p.namespace)}
	case !mine:
		return true, nil
	default:
		entries = []discoveryv1.Endpoint{}
	}
	if _, err = p.slice.Patch(ctx, endpointsPatch(read, entries)); err == nil {
		p.log.Info("the Service of the leader points to another pod now", "here", aim == aimPublish)
	}
	return err == nil, err
}

func (p *Publication) reach(done chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done == p.done && !isClosed(done) {
		close(done)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
