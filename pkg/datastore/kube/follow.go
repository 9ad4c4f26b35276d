package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Following names the objects to follow, and the functions for them. The functions are called by one goroutine at a
// time.
type Following struct {
	// Object is an empty object of the kind, Resource the kind's resource, Namespace the objects' namespace.
	Object    client.Object
	Resource  schema.GroupResource
	Namespace string
	// Labels and Fields select among the objects; nil: all.
	Labels labels.Selector
	Fields fields.Selector
	// Trim removes unneeded parts of an object before it is kept in memory; nil removes only the managed fields.
	Trim func(client.Object)
	// Changed is called with every object at first, and then with each new or changed object. It must not change the
	// object.
	Changed func(client.Object)
	// Gone is called with each object that is deleted or no longer selected. For an object replaced by another of its
	// name, it is called before Changed with the new one.
	Gone func(client.Object)
	// Synced is called once, after Changed was called with every initial object.
	Synced func()
	// Lacking, if set, is called once if the apiserver does not know the kind. The apiserver is asked again until it
	// does.
	Lacking func()
}

// learnAgain is the time after a failure until the next request for a kind.
const learnAgain = 2 * time.Second

// Follow follows objects until ctx is done; it returns after its goroutines have ended. It begins once the service account
// may list and watch them, and the apiserver knows their kind.
func (c *Cluster) Follow(ctx context.Context, f Following) error {
	for _, granted := range c.needReading(f.Resource, f.Namespace) {
		select {
		case <-granted:
		case <-ctx.Done():
			return nil
		}
	}
	objects, err := cache.New(c.config, cache.Options{
		HTTPClient: c.manager.GetHTTPClient(), Scheme: c.manager.GetScheme(), Mapper: c.manager.GetRESTMapper(),
		NewInformer: newInformer,
		DefaultNamespaces: map[string]cache.Config{
			f.Namespace: {LabelSelector: f.Labels, FieldSelector: f.Fields, Transform: f.trim},
		},
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			c.log.V(1).Info("a watch has ended; it goes on", "resource", f.Resource.String(), "reason", err.Error())
		},
	})
	if err != nil {
		return fmt.Errorf("following %s: %w", f.Resource, err)
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	running.Go(func() { _ = objects.Start(ctx) }) // Start returns nil
	informer := c.informer(ctx, objects, f)
	if informer == nil {
		return nil
	}
	following, err := informer.AddEventHandler(f.events())
	if err != nil {
		return fmt.Errorf("following %s: %w", f.Resource, err)
	}
	select {
	case <-following.HasSyncedChecker().Done():
		f.Synced()
	case <-ctx.Done():
	}
	<-ctx.Done()
	return nil
}

// informer returns the informer of the kind; nil if ctx is done before the apiserver knows the kind.
func (c *Cluster) informer(ctx context.Context, objects cache.Cache, f Following) cache.Informer {
	last := ""
	for {
		informer, err := objects.GetInformer(ctx, f.Object, cache.BlockUntilSynced(false))
		if err == nil {
			return informer
		}
		if text := err.Error(); text != last && ctx.Err() == nil {
			last = text
			c.log.Info("WARNING: cannot follow this kind of object yet; Weir asks the apiserver again", "resource", f.Resource.String(),
				"reason", text)
		}
		if f.Lacking != nil && meta.IsNoMatchError(err) { // the kind's CRD is not installed
			f.Lacking()
			f.Lacking = nil
		}
		if !pause(ctx, learnAgain) {
			return nil
		}
	}
}

// trim is the transformation of the cache.
func (f *Following) trim(object any) (any, error) {
	o, ok := object.(client.Object)
	if !ok {
		return object, nil // the last state of a deleted object, already trimmed
	}
	o.SetManagedFields(nil)
	if f.Trim != nil {
		f.Trim(o)
	}
	return o, nil
}

func (f *Following) events() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { f.Changed(o.(client.Object)) },
		UpdateFunc: func(before, now any) {
			was, is := before.(client.Object), now.(client.Object)
			// An informer identifies objects by name: after a relist a replacement looks like an update.
			if was.GetUID() != is.GetUID() {
				f.Gone(was)
			}
			f.Changed(is)
		},
		DeleteFunc: func(o any) {
			if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok { // the deletion itself was not seen
				o = last.Obj
			}
			if o, ok := o.(client.Object); ok {
				f.Gone(o)
			}
		},
	}
}
