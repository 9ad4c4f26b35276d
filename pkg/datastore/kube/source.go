package kube

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-epp/weir/internal/kubeapi"
	"github.com/weir-epp/weir/pkg/datastore"
)

// Source keeps the endpoints of a store equal to the pods of the pool.
type Source struct {
	// Immutable.
	cluster *Cluster
	config  Config
	store   *datastore.Store
	log     logr.Logger
	wake    chan struct{} // of capacity 1: something has changed

	mu     sync.Mutex
	target *target // the present pool; nil: not known yet
	found  bool    // the InferencePool exists

	// Owned by the goroutine of run.
	current *members // the source of the store's endpoints
	next    *members // the members of a new selector, until they are complete
	begins  flowcontrol.RateLimiter
}

// A new selector may be followed every followInterval, with bursts of followBurst: each one requests all of its pods
// from the apiserver, and an InferencePool may change at any rate.
const (
	followInterval = time.Second
	followBurst    = 5
)

// NewSource adds the pods of a valid configuration to a cluster's sources.
func NewSource(cluster *Cluster, config Config, store *datastore.Store, log logr.Logger) (*Source, error) {
	s := &Source{
		cluster: cluster, config: config, store: store, log: log, wake: make(chan struct{}, 1),
		begins: flowcontrol.NewTokenBucketRateLimiter(float32(time.Second)/float32(followInterval), followBurst),
	}
	if err := config.Validate(); err != nil {
		return nil, err
	}
	// All at the start, so that all missing permissions are reported at once.
	cluster.needReading(corev1.Resource("pods"), config.Namespace)
	cluster.Need(Permission{Verb: "create", GroupResource: eventsv1.Resource("events"), Namespace: config.Namespace})
	if config.Pool == "" {
		selector, err := selectorOf(config.Selector)
		if err != nil {
			return nil, err
		}
		t := newTarget(selector, config.Ports)
		s.target = &t
	} else {
		cluster.needReading(s.poolResource(), config.Namespace)
		cluster.metrics.poolMissing.Set(1) // until it is found
		cluster.Add("InferencePool", s.followPool)
	}
	cluster.Add("pods", s.run)
	return s, nil
}

func (s *Source) awaken() { awaken(s.wake) }

// run passes the pods on to the store until ctx is done. For any number of simultaneous changes it reads all pods once.
func (s *Source) run(ctx context.Context, synced func()) error {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		complete, wait := s.step(ctx, &running)
		if complete {
			synced()
		}
		var again <-chan time.Time
		if wait > 0 {
			again = time.After(wait)
		}
		select {
		case <-s.wake:
		case <-again:
		case <-ctx.Done():
			return nil
		}
	}
}

// step brings the store up to date. It reports whether all pods are known, and the wait for the next step without
// changes; 0: for ever.
func (s *Source) step(ctx context.Context, running *sync.WaitGroup) (complete bool, wait time.Duration) {
	s.mu.Lock()
	target := s.target
	s.mu.Unlock()
	if target == nil {
		return false, 0
	}
	if s.next != nil && s.next.selector != target.text {
		s.next.stop()
		s.next = nil
	}
	if s.next == nil && (s.current == nil || s.current.selector != target.text) {
		if s.begins.TryAccept() {
			s.next = s.followMembers(ctx, running, target.selector, target.text)
		} else {
			wait = followInterval
		}
	}
	if s.next != nil && s.next.complete() { // until then the pods of the old selector stay
		if s.current != nil {
			s.current.stop()
			s.log.Info("the pool has another selector now", "selector", target.text, "before", s.current.selector)
		}
		s.current, s.next = s.next, nil
	}
	if s.current == nil {
		return false, wait
	}
	s.store.ProbeH2C(target.h2c)
	s.store.Set(s.current.endpoints(target.ports))
	return true, wait
}

// followPool follows the InferencePool until ctx is done.
func (s *Source) followPool(ctx context.Context, synced func()) error {
	complain := sync.OnceFunc(func() {
		s.log.Info("WARNING: the InferencePool does not exist; Weir is not ready until it does",
			"namespace", s.config.Namespace, "pool", s.config.Pool)
	})
	return s.cluster.Follow(ctx, Following{
		Object: &kubeapi.InferencePool{}, Namespace: s.config.Namespace,
		Resource: s.poolResource(),
		Fields:   fields.OneTermEqualSelector("metadata.name", s.config.Pool),
		Trim: func(o client.Object) {
			o.SetAnnotations(nil)
			o.SetLabels(nil)
		},
		Changed: func(o client.Object) { s.poolChanged(o.(*kubeapi.InferencePool), synced) },
		Gone:    func(client.Object) { s.poolGone() },
		Synced: func() {
			if !s.poolFound() {
				complain()
			}
		},
		Lacking: complain,
	})
}

func (s *Source) poolResource() schema.GroupResource {
	return schema.GroupResource{Group: s.config.Group, Resource: "inferencepools"}
}

func (s *Source) poolFound() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found
}

// poolChanged uses the InferencePool's present spec, or keeps the former one if that is invalid.
func (s *Source) poolChanged(pool *kubeapi.InferencePool, synced func()) {
	target, err := targetOf(pool)
	s.mu.Lock()
	again := !s.found && s.target != nil
	s.found = true
	changed := err == nil && (s.target == nil || !s.target.equal(target))
	if changed {
		s.target = &target
	}
	s.mu.Unlock()
	s.cluster.metrics.poolMissing.Set(0)
	if again {
		s.log.Info("the InferencePool exists again", "namespace", s.config.Namespace, "pool", s.config.Pool)
	}
	if err != nil {
		s.cluster.Tell(pool, "InvalidPool", err.Error()+"; it is not used")
		return
	}
	if changed {
		s.log.Info("the InferencePool", "pool", s.config.Pool, "selector", target.text, "ports", target.ports,
			"appProtocol", pool.Spec.AppProtocol)
		s.awaken()
	}
	synced()
}

// poolGone keeps the pods: deleting a pool by mistake, or to recreate it, must not end the traffic.
func (s *Source) poolGone() {
	s.mu.Lock()
	s.found = false
	s.mu.Unlock()
	s.cluster.metrics.poolMissing.Set(1)
	s.log.Error(nil, "THE INFERENCEPOOL WAS DELETED: Weir keeps and follows its last pods",
		"namespace", s.config.Namespace, "pool", s.config.Pool)
}
