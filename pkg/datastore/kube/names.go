package kube

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-epp/weir/internal/names"
)

const (
	// lookInterval is the time between two looks at which CRDs are installed. Watching CRDs would need permissions in the
	// whole cluster; everybody may look.
	lookInterval = 10 * time.Second
	// gatherChanges is the time for which changes of resources are gathered before they are used; if using them takes
	// long, it is gatherTimes as long as the last time: strangers' resources that are large and never rest cost a part
	// of a processor.
	gatherChanges = 50 * time.Millisecond
	gatherTimes   = 4
	maxGathering  = 10 * time.Second
)

// NamesConfig says whose names to follow, and for whom.
type NamesConfig struct {
	// Namespace is that of the pool and its resources.
	Namespace string
	// Use is called with all resources when they have been read, and again each time they have changed. It must not change
	// them.
	Use func(names.Resources)
	// Leads reports whether this replica writes the result for each resource; nil: it does.
	Leads func() bool
}

// Names is the source of objectives and models: it follows the InferenceObjectives, InferenceModelRewrites and
// InferenceModels of a namespace, those whose CRDs are installed, also if one is installed or removed later. Of a kind
// that is installed in two groups it follows the first.
type Names struct {
	// Immutable.
	cluster  *Cluster
	config   NamesConfig
	log      logr.Logger
	wake     chan struct{} // of capacity 1: a resource has changed
	accepted *acceptance
	kinds    []*nameKind
}

// NewNames adds the resources of a namespace that name objectives and models to a cluster's sources.
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

// look says which kinds are installed: at once, then each lookInterval.
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

// resources returns all that is known. It is called by the goroutine of run.
func (n *Names) resources() (r names.Resources) {
	for _, k := range n.kinds {
		k.addTo(&r)
	}
	return r
}
