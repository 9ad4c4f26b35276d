package app

import (
	"reflect"
	"sync/atomic"

	"github.com/weir-epp/weir/internal/names"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/request"
)

// nameSource has resources that name objectives and models beside the configuration file: those of the cluster. It calls
// Pool.resourcesChanged with all of them.
type nameSource interface {
	// Judge takes the result for each resource, each time that may have changed. It returns at once.
	Judge([]names.Verdict)
}

// naming has the objectives and models that the streams know by name: the file's and those of a source beside it.
type naming struct {
	// Immutable once the pool runs.
	source nameSource // nil: the file names all
	pool   names.Pool // whose resources count

	// Guarded by Pool.mu.
	file      extproc.Config  // the streams', with the names of the file only
	files     int             // how often file was replaced
	resources names.Resources // the source's newest

	names atomic.Pointer[names.Names] // in use
}

// merge returns the configuration of the streams with the names of resources beside those of the file.
func (n *naming) merge(file extproc.Config, resources names.Resources) (extproc.Config, names.Names) {
	merged := names.Merge(namesOf(&file), n.pool, resources)
	file.Objectives, file.Models = nil, nil
	for _, o := range merged.Objectives {
		file.Objectives = append(file.Objectives, request.Objective{Name: o.Name, Priority: o.Priority})
	}
	for _, m := range merged.Models {
		file.Models = append(file.Models, request.Model{Name: m.Name, Criticality: m.Criticality, Targets: targetsOf(m.Targets)})
	}
	file.OtherTargets = targetsOf(merged.OtherTargets)
	return file, merged
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

func targetsOf(list []names.Target) (targets []request.Target) {
	for _, t := range list {
		targets = append(targets, request.Target(t))
	}
	return targets
}

// use notes the names in use, and tells the source the result for each of its resources. The caller holds Pool.mu.
func (n *naming) use(merged names.Names) {
	n.names.Store(&merged)
	if n.source != nil {
		n.source.Judge(merged.Verdicts)
	}
}

// resourcesChanged applies new resources of the source. Only the streams depend on names, so that is all that changes: no
// request that waits or is in flight is touched, and streams that have begun keep the names that they began with. It is
// called by one goroutine at a time.
//
// A merge takes as long as strangers' resources are large, and changes of the endpoints wait for mu: so it is made without
// mu, and once more if the file has changed meanwhile.
func (p *Pool) resourcesChanged(resources names.Resources) {
	n := &p.naming
	for done := false; !done; {
		p.mu.Lock()
		file, files := n.file, n.files
		p.mu.Unlock()
		streams, merged := n.merge(file, resources)
		same := sameNames(n.names.Load(), &merged)
		p.mu.Lock()
		if done = n.files == files; done {
			p.useResources(resources, streams, merged, same)
		}
		p.mu.Unlock()
	}
}

// useResources puts names of the source in the place of those before. The caller holds mu.
func (p *Pool) useResources(resources names.Resources, streams extproc.Config, merged names.Names, same bool) {
	p.naming.resources = resources
	if !same {
		streams.RoutesByModel, streams.RoutesByNeeds = p.streams.RoutesByModel, p.streams.RoutesByNeeds
		if err := p.server.SetConfig(streams); err != nil {
			p.log.Error(err, "the names of the cluster's resources are not in use") // a defect: merged names are valid
			return
		}
		p.streams = streams
		p.log.Info("names", "objectives", len(merged.Objectives), "models", len(merged.Models), "otherModels", len(merged.OtherTargets) > 0)
	}
	p.naming.use(merged)
}

// sameNames reports whether two merges came to the same names, whatever became of each resource.
func sameNames(a, b *names.Names) bool {
	return reflect.DeepEqual(a.Objectives, b.Objectives) && reflect.DeepEqual(a.Models, b.Models) &&
		reflect.DeepEqual(a.OtherTargets, b.OtherTargets) && a.OtherTargetsFrom == b.OtherTargetsFrom
}
