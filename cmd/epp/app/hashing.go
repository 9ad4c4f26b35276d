package app

import (
	"crypto/rand"
	"maps"
	"slices"
	"strings"

	"github.com/weir-epp/weir/internal/config"
	"github.com/weir-epp/weir/pkg/extproc"
	"github.com/weir-epp/weir/pkg/flowcontrol"
	"github.com/weir-epp/weir/pkg/request"
)

// With --hash-flow-keys an identity, which may be a secret, is never shown. extproc hashes it when reading; this file
// hashes the identities in the configuration, in use and on display.

// withHashedFlows makes identities appear only as hashes, and adds the hashes of the configuration's names. The names
// themselves stay, since they may also be models' flows, which are not hashed.
func withHashedFlows(flow *flowcontrol.Config, streams *extproc.Config) {
	streams.HashFlowKeys = true
	flow.Queue.Weights = alsoHashed(flow.Queue.Weights)
	flow.Queue.FlowCapacities = alsoHashed(flow.Queue.FlowCapacities)
	flow.Quotas.Tenants = alsoHashed(flow.Quotas.Tenants)
	for i := range flow.Queue.ByLevel {
		l := &flow.Queue.ByLevel[i]
		l.Weights, l.Capacities = alsoHashed(l.Weights), alsoHashed(l.Capacities)
	}
}

func alsoHashed[V any](of map[string]V) map[string]V {
	both := maps.Clone(of)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		both[request.HashedFlowName(name)] = of[name]
	}
	return both
}

// ownSeed is the secret of the hashes of prompts if none is configured. Replicas then have different hashes.
var ownSeed = rand.Text()

// converted returns the configurations of the controller and the streams, with the options' additions.
func (o *Options) converted(d *config.Document) (flowcontrol.Config, extproc.Config) {
	flow, streams := d.FlowcontrolConfig(), d.ExtprocConfig()
	if streams.Affinity.Seed == "" && !o.kubernetes() {
		streams.Affinity.Seed = ownSeed
	}
	if o.HashFlowKeys {
		withHashedFlows(&flow, &streams)
	}
	return flow, streams
}

// byIdentity lists the maps of a document whose keys are identities.
var byIdentity = []string{"flows.weights.", "flows.capacities.", "tenantPolicies."}

// shown returns a document and its warnings for display: if hashed, with hashes for identities.
func shown(d config.Document, hashed bool) (config.Document, []config.Problem) {
	warnings := d.Warnings()
	if !hashed {
		return d, warnings
	}
	for i := range warnings {
		for _, prefix := range byIdentity {
			if name, ok := strings.CutPrefix(warnings[i].Path, prefix); ok {
				warnings[i].Path = prefix + request.HashedFlowName(name)
			}
		}
	}
	d.Flows.Weights, d.Flows.Capacities = onlyHashed(d.Flows.Weights), onlyHashed(d.Flows.Capacities)
	d.Flows.Levels = slices.Clone(d.Flows.Levels)
	for i := range d.Flows.Levels {
		l := &d.Flows.Levels[i]
		l.Weights, l.Capacities = onlyHashed(l.Weights), onlyHashed(l.Capacities)
	}
	d.TenantPolicies = onlyHashed(d.TenantPolicies)
	d.Decisions.Explain = slices.Clone(d.Decisions.Explain)
	for i, name := range d.Decisions.Explain {
		if name != config.Anonymous && name != request.OtherTenants {
			d.Decisions.Explain[i] = request.HashedFlowName(name)
		}
	}
	return d, warnings
}

func onlyHashed[V any](of map[string]V) map[string]V {
	hashed := make(map[string]V, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		shown := name
		if name != config.Anonymous {
			shown = request.HashedFlowName(name)
		}
		hashed[shown] = of[name]
	}
	return hashed
}
