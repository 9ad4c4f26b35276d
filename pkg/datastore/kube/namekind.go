package kube

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-epp/weir/internal/kubeapi"
	"github.com/weir-epp/weir/internal/names"
)

// nameKind follows a kind of resources with names, in one of its groups.
type nameKind struct {
	// Immutable.
	kind, resource string
	groups         []groupOfKind // the first installed one counts
	changed        func()

	// Owned by the goroutine of Names.run.
	next   *nameList // of another group, until it is complete
	absent int       // consecutive checks that have not found the followed group
	twice  bool      // it has been logged that the kind is installed in two groups

	mu      sync.Mutex
	current *nameList // nil: none is installed
}

// groupOfKind is a group of a kind, with an empty object of it.
type groupOfKind struct {
	schema.GroupVersion
	object client.Object
}

// looksUntilGone is the number of consecutive checks without a kind after which its resources are forgotten: an
// apiserver that has just started may not know it yet.
const looksUntilGone = 2

// nameKinds returns the kinds in the order of names.Merge.
func nameKinds(changed func()) []*nameKind {
	current, old := kubeapi.NamesGroupVersion, kubeapi.OldGroupVersion
	return []*nameKind{
		{kind: names.KindObjective, resource: "inferenceobjectives", changed: changed, groups: []groupOfKind{
			{current, &kubeapi.InferenceObjective{}}, {old, &kubeapi.OldInferenceObjective{}},
		}},
		{kind: names.KindRewrite, resource: "inferencemodelrewrites", changed: changed, groups: []groupOfKind{
			{current, &kubeapi.InferenceModelRewrite{}}, {old, &kubeapi.OldInferenceModelRewrite{}},
		}},
		{kind: names.KindModel, resource: "inferencemodels", changed: changed, groups: []groupOfKind{
			{old, &kubeapi.InferenceModel{}},
		}},
	}
}

// arrange follows the installed group if it has changed, and reports whether that has an immediate effect.
func (k *nameKind) arrange(ctx context.Context, running *sync.WaitGroup, n *Names, found installed) (changed bool) {
	var want *groupOfKind
	have := 0
	for i := range k.groups {
		if _, ok := found[k.groups[i].WithResource(k.resource)]; ok {
			if have++; want == nil {
				want = &k.groups[i]
			}
		}
	}
	if k.twice != (have > 1) {
		if k.twice = have > 1; k.twice {
			n.log.Info("WARNING: "+k.kind+" is installed in two API groups: only resources of the first count",
				"group", k.groups[0].String(), "ignored", k.groups[1].String())
		}
	}
	followed := k.next
	if followed == nil {
		followed = k.current
	}
	switch {
	case followed == nil && want == nil:
		return false
	case followed != nil && want != nil && followed.group == want:
		k.absent = 0
		return false
	case followed != nil:
		if _, still := found[followed.group.WithResource(k.resource)]; !still {
			if k.absent++; k.absent < looksUntilGone {
				return false
			}
		}
	}
	k.absent = 0
	if k.next != nil {
		k.next.stop()
		k.next = nil
	}
	if want == nil {
		n.log.Info(k.kind+" is not installed any more", "group", followed.group.String())
		return k.replace(nil)
	}
	k.next = n.followNames(ctx, running, k, want, found[want.WithResource(k.resource)])
	return true
}

// replace follows another list, and reports whether there was one before.
func (k *nameKind) replace(by *nameList) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.current
	k.current = by
	if before != nil {
		before.stop()
	}
	return before != nil
}

// advance takes the next group's resources once they are complete, and reports whether none is pending.
func (k *nameKind) advance(log logr.Logger) bool {
	if k.next == nil {
		return true
	}
	if !k.next.complete() {
		return false
	}
	log.Info("following "+k.kind, "group", k.next.group.String())
	k.replace(k.next)
	k.next = nil
	return true
}

// addTo adds the known resources.
func (k *nameKind) addTo(r *names.Resources) {
	if k.current == nil { // only this goroutine replaces it
		return
	}
	for _, o := range k.current.all() {
		switch o := o.(type) {
		case *kubeapi.InferenceObjective:
			r.Objectives = append(r.Objectives, o)
		case *kubeapi.OldInferenceObjective:
			r.Objectives = append(r.Objectives, &o.InferenceObjective)
		case *kubeapi.InferenceModelRewrite:
			r.Rewrites = append(r.Rewrites, o)
		case *kubeapi.OldInferenceModelRewrite:
			r.Rewrites = append(r.Rewrites, &o.InferenceModelRewrite)
		case *kubeapi.InferenceModel:
			r.Models = append(r.Models, o)
		}
	}
}

// find returns a resource, its group, and whether its kind has a status; nil if there is none of that name.
func (k *nameKind) find(name string) (o client.Object, group schema.GroupVersion, hasStatus bool) {
	k.mu.Lock()
	list := k.current
	k.mu.Unlock()
	if list == nil {
		return nil, schema.GroupVersion{}, false
	}
	return list.find(name), list.group.GroupVersion, list.hasStatus
}
