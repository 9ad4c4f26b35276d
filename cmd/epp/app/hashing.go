package app

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/flowcontrol"
)

// With --hash-flow-keys an identity that may be a secret is shown nowhere: extproc hashes it as it is read, and here the
// names that the configuration has for identities follow, where they are used and where they are shown.

// withHashedFlows makes identities be shown as hashes only, and known by them where the configuration names some. A
// name may be that of a model's flow too, which is not hashed.
func withHashedFlows(flow *flowcontrol.Config, streams *extproc.Config) {
	streams.HashFlowKeys = true
	flow.Queue.Weights = alsoHashed(flow.Queue.Weights)
	flow.Queue.FlowCapacities = alsoHashed(flow.Queue.FlowCapacities)
}

func alsoHashed[V any](of map[string]V) map[string]V {
	both := maps.Clone(of)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		both[extproc.HashedFlowName(name)] = of[name]
	}
	return both
}

// converted is a document as the two packages' configurations, with what the options add.
func (o *Options) converted(d *config.Document) (flowcontrol.Config, extproc.Config) {
	flow, streams := d.FlowcontrolConfig(), d.ExtprocConfig()
	if o.HashFlowKeys {
		withHashedFlows(&flow, &streams)
	}
	return flow, streams
}

// byIdentity are the maps of a document whose keys are identities.
var byIdentity = []string{"flows.weights.", "flows.capacities.", "tenantPolicies."}

// shown is a document and its warnings as people may see them: with hashed, identities are hashes.
func shown(d config.Document, hashed bool) (config.Document, []config.Problem) {
	warnings := d.Warnings()
	if !hashed {
		return d, warnings
	}
	for i := range warnings {
		for _, prefix := range byIdentity {
			if name, ok := strings.CutPrefix(warnings[i].Path, prefix); ok {
				warnings[i].Path = prefix + extproc.HashedFlowName(name)
			}
		}
	}
	d.Flows.Weights, d.Flows.Capacities = onlyHashed(d.Flows.Weights), onlyHashed(d.Flows.Capacities)
	d.TenantPolicies = onlyHashed(d.TenantPolicies)
	return d, warnings
}

func onlyHashed[V any](of map[string]V) map[string]V {
	hashed := make(map[string]V, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		shown := name
		if name != config.Anonymous {
			shown = extproc.HashedFlowName(name)
		}
		hashed[shown] = of[name]
	}
	return hashed
}
