package kube

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
)

// The limits on reports about objects, which may be hostile and change at any rate.
const (
	tellPerSecond = 1 // of one kind
	tellBurst     = 100

	tellPerSecondOfOne = 0.1 // of one object
	tellBurstOfOne     = 5

	maxTold = 1000 // objects that are remembered
)

// allowance limits the lines in the log: by kind, so that pods do not suppress lines about an InferencePool, and by
// object, so that one object does not suppress the others. It is safe for concurrent use.
type allowance struct {
	mu      sync.Mutex
	kinds   map[string]flowcontrol.RateLimiter
	objects map[types.UID]flowcontrol.RateLimiter
}

func newAllowance() *allowance {
	return &allowance{kinds: map[string]flowcontrol.RateLimiter{}, objects: map[types.UID]flowcontrol.RateLimiter{}}
}

// allows reports whether a line about an object may be logged now, and counts it.
func (a *allowance) allows(kind string, uid types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kinds[kind] == nil {
		a.kinds[kind] = flowcontrol.NewTokenBucketRateLimiter(tellPerSecond, tellBurst)
	}
	if a.objects[uid] == nil {
		if len(a.objects) == maxTold {
			clear(a.objects) // the kind's limit still applies
		}
		a.objects[uid] = flowcontrol.NewTokenBucketRateLimiter(tellPerSecondOfOne, tellBurstOfOne)
	}
	return a.objects[uid].TryAccept() && a.kinds[kind].TryAccept()
}
