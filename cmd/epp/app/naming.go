package app

import (
	"reflect"
	"sync/atomic"

	"github.com/weir-epp/weir/internal/names"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/request"
)

// nameSource is the source of objectives and models besides the configuration file: the cluster's resources. It calls
// Pool.resourcesChanged with all of them.
type nameSource interface {
	// Judge takes the result for each resource, after each possible change. It returns at once.
	Judge([]names.Verdict)
}

// naming has the objectives and models known by name: the file's and a further source's.
type naming struct {
	// Immutable once the pool runs.
	source nameSource // nil: the file names all
	pool   names.Pool // whose resources count

	// Guarded by Pool.mu.
	file      extproc.Config  // the streams' configuration, with the names of the file only
	files     int             // number of replacements of file
	resources names.Resources // the source's newest

	names atomic.Pointer[names.Names] // in use
}

// merge returns the configuration of the streams with the names of the file and the resources.
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

// use notes the names in use, and passes the result for each resource to the source. The caller holds Pool.mu.
func (n *naming) use(merged names.Names) {
	n.names.Store(&merged)
	if n.source != nil {
		n.source.Judge(merged.Verdicts)
	}
}

// resourcesChanged applies new resources of the source. Only the streams depend on names, so only their configuration
// changes: requests waiting or in flight are not touched, and streams keep the names from their beginning. It is called
// by one goroutine at a time.
//
// A merge of strangers' large resources takes long, and changes of the endpoints wait for mu. So the merge is made
// without mu, and repeated if the file has changed meanwhile.
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

// useResources replaces the source's names. The caller holds mu.
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

// sameNames reports whether two merges gave the same names, ignoring the verdicts.
func sameNames(a, b *names.Names) bool {
	return reflect.DeepEqual(a.Objectives, b.Objectives) && reflect.DeepEqual(a.Models, b.Models) &&
		reflect.DeepEqual(a.OtherTargets, b.OtherTargets) && a.OtherTargetsFrom == b.OtherTargetsFrom
}
