package kube

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
)

// How much is told of objects, which may be hostile and change as often as they like.
const (
	tellPerSecond = 1 // of one kind
	tellBurst     = 100

	tellPerSecondOfOne = 0.1 // of one object
	tellBurstOfOne     = 5

	maxTold = 1000 // objects that are remembered
)

// allowance limits the lines to log: so many for each kind of objects, so that pods do not keep an InferencePool from
// being told of, and so much of each object, so that one does not keep the others from it. It is safe for concurrent
// use.
type allowance struct {
	mu      sync.Mutex
	kinds   map[string]flowcontrol.RateLimiter
	objects map[types.UID]flowcontrol.RateLimiter
}

func newAllowance() *allowance {
	return &allowance{kinds: map[string]flowcontrol.RateLimiter{}, objects: map[types.UID]flowcontrol.RateLimiter{}}
}

// allows reports whether something may be told of an object now, which is then taken as told.
func (a *allowance) allows(kind string, uid types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kinds[kind] == nil {
		a.kinds[kind] = flowcontrol.NewTokenBucketRateLimiter(tellPerSecond, tellBurst)
	}
	if a.objects[uid] == nil {
		if len(a.objects) == maxTold {
			clear(a.objects) // the kind's limit holds
		}
		a.objects[uid] = flowcontrol.NewTokenBucketRateLimiter(tellPerSecondOfOne, tellBurstOfOne)
	}
	return a.objects[uid].TryAccept() && a.kinds[kind].TryAccept()
}
