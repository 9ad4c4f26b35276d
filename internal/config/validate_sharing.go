package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// The sources of a flow's identity.
const (
	SourceModel     = "model"
	SourceHeader    = "header:"
	SourceMetadata  = "metadata:"
	SourceAttribute = "attribute:"
)

func (d Document) flowProblems(ps *Problems) {
	f := d.Flows
	if len(f.Key) == 0 {
		ps.add("flows.key", shown("[]"), "must name at least one source")
	}
	seen := map[string]bool{}
	for i, source := range f.Key {
		path := index("flows.key", i)
		ps.unique(path, source, seen)
		ps.source(path, source)
	}
	for _, flow := range slices.Sorted(maps.Keys(f.Weights)) {
		within(ps, join("flows.weights", flow), f.Weights[flow], minWeight, maxWeight)
	}
	for _, flow := range slices.Sorted(maps.Keys(f.Capacities)) {
		n, path := f.Capacities[flow], join("flows.capacities", flow)
		if atLeast(ps, path, n, 1) && n > d.FairRequestQueue.TotalCapacity {
			ps.add(path, n, "must be at most fairRequestQueue.totalCapacity (%d)", d.FairRequestQueue.TotalCapacity)
		}
	}
	ps.oneOf("flows.discipline", f.Discipline, disciplines)
	ps.oneOf("flows.tieBreak", f.TieBreak, flowTieBreaks)
	ps.oneOf("flows.unknownModels", f.UnknownModels, unknownModels)
	ps.oneOf("flows.order", f.Order, orders)
}

// source checks one source of a flow's identity.
func (ps *Problems) source(path, source string) {
	switch {
	case source == SourceModel || source == "":
	case strings.HasPrefix(source, SourceHeader):
		if name := strings.TrimPrefix(source, SourceHeader); name == "" {
			ps.add(path, source, "must name the header, as in header:x-tenant")
		} else {
			ps.headerName(path, name)
		}
	case strings.HasPrefix(source, SourceMetadata):
		ps.metadataPath(path, strings.TrimPrefix(source, SourceMetadata))
	case strings.HasPrefix(source, SourceAttribute):
		if source == SourceAttribute {
			ps.add(path, source, "must name the attribute, as in attribute:source.principal")
		}
	default:
		ps.add(path, source, "must be model, header:NAME, metadata:NAMESPACE/PATH or attribute:NAME")
	}
}

// metadataPath checks NAMESPACE/PATH, where PATH has one part or more.
func (ps *Problems) metadataPath(path, text string) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || slices.Contains(parts, "") {
		ps.add(path, text, "must be NAMESPACE/PATH, as in envoy.filters.http.jwt_authn/payload/sub")
	}
}

func (d Document) tierProblems(ps *Problems) {
	if len(d.Tiers) == 0 {
		ps.add("tiers", shown("[]"), "must have at least one tier")
	} else if len(d.Tiers) > maxTiers {
		ps.add("tiers", shown(fmt.Sprintf("%d tiers", len(d.Tiers))), "must be at most %d", maxTiers)
	}
	seen := map[string]bool{}
	var above *int64
	for i, t := range d.Tiers {
		path := index("tiers", i) + "."
		ps.unique(path+"name", t.Name, seen)
		if t.MinPriority != nil {
			if above != nil && *t.MinPriority >= *above {
				ps.add(path+"minPriority", *t.MinPriority, "must be below that of the tiers above (%d)", *above)
			}
			above = t.MinPriority
		}
		within(ps, path+"weight", t.Weight, minWeight, maxWeight)
		if t.QueueSize != nil {
			within(ps, path+"queueSize", *t.QueueSize, 0, math.MaxInt32)
		}
		if t.QueueTimeout != nil {
			ps.hold(path+"queueTimeout", *t.QueueTimeout)
		}
		if t.StarvationThreshold != nil {
			positive(ps, path+"starvationThreshold", *t.StarvationThreshold)
		}
		atLeast(ps, path+"reservedFloor", t.ReservedFloor, 0)
		atLeast(ps, path+"reservedPerSlot", t.ReservedPerSlot, 0)
	}
	seen = map[string]bool{}
	for i, c := range d.Classes {
		path := index("classes", i) + "."
		ps.unique(path+"name", c.Name, seen)
		if strings.ContainsFunc(c.Name, func(r rune) bool {
			return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-", r)
		}) {
			ps.add(path+"name", c.Name, "must consist of letters, digits, '_', '.' and '-'")
		}
		positive(ps, path+"quantum", c.Quantum)
		ps.oneOf(path+"order", c.Order, orders)
	}
	for _, tenant := range slices.Sorted(maps.Keys(d.TenantPolicies)) {
		if tenant == "*" || tenant == "" {
			ps.add(join("tenantPolicies", tenant), tenant, "must be a tenant's identity; criticality.maxClass is for the "+
				"tenants that have no policy")
		}
		ps.oneOf(join("tenantPolicies", tenant)+".maxClass", d.TenantPolicies[tenant].MaxClass, d.criticalityNames())
	}
}

// criticalityNames are the words that name a tier: the three criticalities, then the tiers' own names.
func (d Document) criticalityNames() []string {
	return append(slices.Clone(criticalities), d.TierNames()...)
}

// TierNames are the names of the tiers, highest first.
func (d Document) TierNames() []string {
	names := make([]string, len(d.Tiers))
	for i, t := range d.Tiers {
		names[i] = t.Name
	}
	return names
}

func (d Document) modelProblems(ps *Problems) {
	models := map[string]bool{}
	for i, m := range d.Models {
		path := index("models", i) + "."
		ps.unique(path+"name", m.Name, models)
		if m.Criticality != "" {
			ps.oneOf(path+"criticality", m.Criticality, d.criticalityNames())
		}
		targets := map[string]bool{}
		for j, t := range m.Targets {
			target := index(path+"targets", j) + "."
			ps.unique(target+"name", t.Name, targets)
			within(ps, target+"weight", t.Weight, 1, 1_000_000)
		}
	}
	objectives := map[string]bool{}
	for i, o := range d.Objectives {
		ps.unique(index("objectives", i)+".name", o.Name, objectives)
	}
}
