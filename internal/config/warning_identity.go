package config

import (
	"maps"
	"slices"
	"strings"
)

// identityWarnings is about flows that have a weight or a capacity but cannot exist. Only the path has the name: it may
// be a secret, and the wiring knows how to show it.
func (d Document) identityWarnings(warn warner) {
	if d.Flows.Discipline == DisciplineNone {
		const reason = "has no effect with flows.discipline none, which knows no flows"
		if len(d.Flows.Weights) > 0 {
			warn("flows.weights", reason)
		}
		if len(d.Flows.Capacities) > 0 {
			warn("flows.capacities", reason)
		}
		return
	}
	if d.Flows.identifies() { // a tenant may be called anything
		const reason = "applies to a flow named *, not to all flows: there are no patterns"
		if _, listed := d.Flows.Weights["*"]; listed {
			warn("flows.weights.*", reason)
		}
		if _, listed := d.Flows.Capacities["*"]; listed {
			warn("flows.capacities.*", reason)
		}
		return
	}
	const reason = "matches no flow, since flows.key names only model: a flow is then MODEL/TARGET, such as \"m/m\" for a " +
		"model m that stands for itself and \"m/t\" for one with the target t"
	for _, name := range slices.Sorted(maps.Keys(d.Flows.Weights)) {
		if !d.modelFlow(name) {
			warn(join("flows.weights", name), reason)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Flows.Capacities)) {
		if !d.modelFlow(name) {
			warn(join("flows.capacities", name), reason)
		}
	}
}

// policyWarnings is about policies of tenants that say two things.
func (d Document) policyWarnings(warn warner) {
	streams := d.ExtprocConfig()
	for _, tenant := range streams.TenantsAboveTheirMaximum() {
		p := d.TenantPolicies[tenant]
		warn(join("tenantPolicies", tenant), "class %s has no effect, since maxClass is %s: the tenant's requests that declare "+
			"no tier get the latter", p.Class, p.MaxClass)
	}
}

// modelFlow reports whether a flow of this name can exist if the model is the only source: MODEL/TARGET of a configured
// model, or of any other model, which is its own target; or what stands for a request without a model.
func (d Document) modelFlow(name string) bool {
	if name == Anonymous || name == UnknownModels && d.Flows.UnknownModels == UnknownShared {
		return true
	}
	for _, m := range d.Models {
		target, ok := strings.CutPrefix(name, m.Name+"/")
		if !ok {
			continue
		}
		if len(m.Targets) == 0 && target == m.Name ||
			slices.ContainsFunc(m.Targets, func(t ModelTarget) bool { return t.Name == target }) {
			return true
		}
	}
	half := len(name) / 2
	if len(name) < 3 || len(name)%2 == 0 || name[half] != '/' || name[:half] != name[half+1:] {
		return false
	}
	return !slices.ContainsFunc(d.Models, func(m Model) bool { return m.Name == name[:half] && len(m.Targets) > 0 })
}
