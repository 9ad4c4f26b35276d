package leader

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// Label is on the leader's pod, with the value "true", so that a Service can select it.
const Label = "weir.dev/leader"

// PodLabel keeps the label on this process's pod while it leads, and off it otherwise.
type PodLabel struct {
	config Config
	patch  func(ctx context.Context, leads bool) error
	failed func()
	log    logr.Logger

	mu      sync.Mutex
	leads   bool          // what the label should say
	settled chan struct{} // closed: it does
	closed  bool          // whether settled is
	wake    chan struct{} // of capacity 1
}

// NewPodLabel returns the label of a pod, which is removed first: an earlier process of the pod may have left it. failed
// is called for each request that fails, for a metric.
func NewPodLabel(config Config, connection *rest.Config, namespace string, me Identity, failed func(), log logr.Logger) (*PodLabel, error) {
	client, err := core.NewForConfig(connection)
	if err != nil {
		return nil, fmt.Errorf("leader: %w", err)
	}
	pods := client.Pods(namespace)
	return newPodLabel(config, func(ctx context.Context, leads bool) error {
		_, err := pods.Patch(ctx, me.Pod, types.MergePatchType, labelPatch(me, leads), metav1.PatchOptions{})
		return err
	}, failed, log.WithValues("pod", me.Pod)), nil
}

func newPodLabel(config Config, patch func(context.Context, bool) error, failed func(), log logr.Logger) *PodLabel {
	return &PodLabel{
		config: config, patch: patch, failed: failed, log: log, settled: make(chan struct{}), wake: make(chan struct{}, 1),
	}
}

// labelPatch returns a JSON merge patch. With the UID it changes no other pod of the same name.
func labelPatch(me Identity, leads bool) []byte {
	meta := map[string]any{"labels": map[string]any{Label: nil}}
	if leads {
		meta["labels"] = map[string]any{Label: "true"}
	}
	if me.UID != "" {
		meta["uid"] = me.UID
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		panic(fmt.Sprintf("leader: encoding a patch: %v", err)) // strings and nil always encode
	}
	return patch
}

// Set takes in that this process leads now, or does not. It returns at once.
func (p *PodLabel) Set(leads bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leads == leads {
		return
	}
	p.leads, p.settled, p.closed = leads, make(chan struct{}), false
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Settle returns when the label says what was last Set, or when ctx is done.
func (p *PodLabel) Settle(ctx context.Context) {
	p.mu.Lock()
	settled := p.settled
	p.mu.Unlock()
	select {
	case <-settled:
	case <-ctx.Done():
	}
}

// Run keeps the label until ctx is done, and returns nil.
func (p *PodLabel) Run(ctx context.Context) error {
	again := time.NewTimer(0)
	defer again.Stop()
	var failure failure
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		case <-again.C:
		}
		p.mu.Lock()
		leads, settled := p.leads, p.settled
		p.mu.Unlock()
		call, cancel := context.WithTimeout(ctx, p.config.callTimeout())
		err := p.patch(call, leads)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			p.failed()
		}
		switch failure.note(err) {
		case failureNew:
			p.log.Error(err, "the leader's label on this pod cannot be changed: the Service does not follow the leader", "leads", leads)
		case failureOver:
			p.log.Info("the leader's label on this pod can be changed again")
		case failureKnown:
		}
		switch {
		case err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err): // there is no such pod: it will not come
			p.mu.Lock()
			if settled == p.settled && !p.closed {
				p.closed = true
				close(settled)
			}
			p.mu.Unlock()
		default:
			again.Reset(p.config.RetryPeriod)
		}
	}
}
