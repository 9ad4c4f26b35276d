package app

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/weir-epp/weir/internal/names"
	"github.com/weir-epp/weir/pkg/extproc"
)

// nameSource has resources that name objectives and models beside the configuration file: those of the cluster.
type nameSource interface {
	// Run calls use with all resources once it has read them, and again each time they have changed, changes gathered for
	// a moment. It returns after ctx is done and its goroutines have ended.
	Run(ctx context.Context, use func(names.Resources)) error
	// Judge takes what has become of each resource, each time that may have changed.
	Judge([]names.Verdict)
}

// naming has the objectives and models that the streams know by name: the file's and those of a source beside it.
type naming struct {
	source nameSource // nil: the file names all
	pool   names.Pool // whose resources count

	// mu orders changes of the file and of the source, and guards resources.
	mu        sync.Mutex
	resources names.Resources // the source's newest

	names atomic.Pointer[names.Names] // in use
}

// over puts the names of the source beside those of the file, which the configuration of the streams has. The caller
// holds mu.
func (n *naming) over(streams *extproc.Config) names.Names {
	merged := names.Merge(namesOf(streams), n.pool, n.resources)
	streams.Objectives, streams.Models = nil, nil
	for _, o := range merged.Objectives {
		streams.Objectives = append(streams.Objectives, extproc.Objective{Name: o.Name, Priority: o.Priority})
	}
	for _, m := range merged.Models {
		streams.Models = append(streams.Models, extproc.Model{Name: m.Name, Criticality: m.Criticality, Targets: targetsOf(m.Targets)})
	}
	streams.OtherTargets = targetsOf(merged.OtherTargets)
	return merged
}

// namesOf returns the names of the file.
func namesOf(streams *extproc.Config) (file names.File) {
	for _, o := range streams.Objectives {
		file.Objectives = append(file.Objectives, names.Objective{Name: o.Name, Priority: o.Priority})
	}
	for _, m := range streams.Models {
		model := names.Model{Name: m.Name, Criticality: m.Criticality}
		for _, t := range m.Targets {
			model.Targets = append(model.Targets, names.Target(t))
		}
		file.Models = append(file.Models, model)
	}
	return file
}

func targetsOf(list []names.Target) (targets []extproc.Target) {
	for _, t := range list {
		targets = append(targets, extproc.Target(t))
	}
	return targets
}

// use says that these names are in use, here and to the source.
func (n *naming) use(merged names.Names) {
	n.names.Store(&merged)
	if n.source != nil {
		n.source.Judge(merged.Verdicts)
	}
}

// resourcesChanged applies new resources of the source. Only the streams depend on names, so that is all that changes: no
// request that waits or is in flight is touched.
func (a *App) resourcesChanged(r names.Resources) {
	n := &a.naming
	n.mu.Lock()
	defer n.mu.Unlock()
	n.resources = r
	d := a.configuration.current()
	_, streams := a.options.converted(&d)
	merged := n.over(&streams)
	if before := n.names.Load(); sameNames(before, &merged) {
		n.use(merged)
		return
	}
	if err := a.pool.setStreams(streams); err != nil {
		a.log.Error(err, "the names of the cluster's resources are not in use") // a defect: the merge gives valid ones
		return
	}
	n.use(merged)
	a.log.Info("the names have changed", "objectives", len(merged.Objectives), "models", len(merged.Models),
		"otherModels", fmt.Sprint(merged.OtherTargetsFrom))
}

// sameNames reports whether two merges came to the same names, whatever became of each resource.
func sameNames(a, b *names.Names) bool {
	return reflect.DeepEqual(a.Objectives, b.Objectives) && reflect.DeepEqual(a.Models, b.Models) &&
		reflect.DeepEqual(a.OtherTargets, b.OtherTargets) && a.OtherTargetsFrom == b.OtherTargetsFrom
}
