package kube

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/internal/names"
)

const (
	// lookInterval is the time between two checks of the installed CRDs. Watching CRDs would need cluster-wide
	// permissions; discovery needs none.
	lookInterval = 10 * time.Second
	// gatherChanges is the time for which changes of resources are gathered before use. If the last use took long, it
	// is gatherTimes as long, so that strangers' large and ever-changing resources cost only a part of a CPU.
	gatherChanges = 50 * time.Millisecond
	gatherTimes   = 4
	maxGathering  = 10 * time.Second
)

// NamesConfig configures Names.
type NamesConfig struct {
	// Namespace is the namespace of the pool and its resources.
	Namespace string
	// Use is called with all resources once they have been read, and again after each change. It must not change them.
	Use func(names.Resources)
	// Leads reports whether this replica writes the result for each resource; nil means yes.
	Leads func() bool
}

// Names is the source of objectives and models: it follows the InferenceObjectives, InferenceModelRewrites and
// InferenceModels of a namespace. It follows the kinds with an installed CRD, even one installed or removed later, and
// the first of two installed groups.
type Names struct {
	// Immutable.
	cluster  *Cluster
	config   NamesConfig
	log      logr.Logger
	wake     chan struct{} // of capacity 1: a resource has changed
	accepted *acceptance
	kinds    []*nameKind
}

// NewNames adds a namespace's resources for objectives and models to a cluster's sources.
func NewNames(cluster *Cluster, config NamesConfig, log logr.Logger) *Names {
	n := &Names{cluster: cluster, config: config, log: log, wake: make(chan struct{}, 1)}
	n.kinds = nameKinds(func() { awaken(n.wake) })
	n.accepted = newAcceptance(cluster, n.kinds, config, log)
	cluster.Add("objectives and models", n.run)
	return n
}

// Judge takes the result for each resource, and reports it: in the log, and in the resource's status or an Event.
func (n *Names) Judge(verdicts []names.Verdict) { n.accepted.judge(verdicts) }

// run follows the resources until ctx is done.
func (n *Names) run(ctx context.Context, synced func()) error {
	var running sync.WaitGroup
	defer running.Wait()
	looks := make(chan installed)
	running.Go(func() { n.look(ctx, looks) })
	running.Go(func() { n.accepted.run(ctx) })
	looked, used := false, false
	gather := gatherChanges
	for {
		select {
		case found := <-looks:
			changed := !looked
			looked = true
			for _, k := range n.kinds {
				changed = k.arrange(ctx, &running, n, found) || changed
			}
			if !changed {
				n.accepted.again()
				continue
			}
		case <-n.wake:
			pause(ctx, gather)
			select {
			case <-n.wake:
			default:
			}
		case <-ctx.Done():
			return nil
		}
		complete := looked
		for _, k := range n.kinds {
			complete = k.advance(n.log) && complete
		}
		if !complete && !used || ctx.Err() != nil {
			continue
		}
		used = true
		began := time.Now()
		n.config.Use(n.resources())
		gather = min(max(gatherChanges, gatherTimes*time.Since(began)), maxGathering)
		synced()
	}
}

// look sends the installed kinds: at once, then every lookInterval.
func (n *Names) look(ctx context.Context, looks chan<- installed) {
	for {
		wait := lookInterval
		found, err := n.cluster.look(ctx)
		if err == nil {
			select {
			case looks <- found:
			case <-ctx.Done():
			}
		} else {
			wait = learnAgain
			n.log.V(1).Info("cannot ask the apiserver which kinds it has", "reason", err.Error())
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

// resources returns all known resources. It is called by the goroutine of run.
func (n *Names) resources() (r names.Resources) {
	for _, k := range n.kinds {
		k.addTo(&r)
	}
	return r
}
