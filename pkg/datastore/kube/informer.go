package kube

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
)

var errNoList = errors.New("the answer to a list is not a list of this kind")

// newInformer is toolscache.NewSharedIndexInformer, but refuses answers that are not a list of the kind: client-go
// takes any JSON object as an empty list, so a wrong answer of a proxy would empty the pool.
func newInformer(
	from toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	apiserver := toolscache.ToListerWatcherWithContext(from)
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := apiserver.ListWithContext(ctx, options)
			if err != nil {
				return nil, err
			}
			if m, err := meta.ListAccessor(list); err != nil || m.GetResourceVersion() == "" { // an apiserver's lists have one
				return nil, errNoList
			}
			return list, nil
		},
		WatchFuncWithContext: apiserver.WatchWithContext,
	}, object, resync, indexers)
}
