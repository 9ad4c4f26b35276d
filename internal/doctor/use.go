package doctor

import (
	"strings"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	"google.golang.org/protobuf/proto"
)

// use is an ext_proc filter with one route's overrides.
type use struct {
	manager *manager
	filter  *filter
	place   int    // of the filter among the manager's
	route   *route // nil: routes unknown
	config  *extprocv3.ExternalProcessor
	fields  map[string]Path // places of fields set by overrides
}

// gateRole is the value of x-weir-role in the initial metadata of a first-token gate (docs/envoy.md).
const gateRole = "gate"

// isGate reports whether the filter is a first-token gate: its metadata says so, or it sees no requests.
func (u use) isGate() bool {
	for _, m := range u.config.GetGrpcService().GetInitialMetadata() {
		if strings.EqualFold(m.GetKey(), "x-weir-role") {
			return m.GetValue() == gateRole
		}
	}
	return u.config.GetProcessingMode().GetRequestHeaderMode() == extprocv3.ProcessingMode_SKIP
}

// way is equal for two filters that show the same requests to the same Weir.
type way struct {
	manager   *manager
	route     *route
	processor string
}

func (u use) way() way { return way{u.manager, u.route, u.processor()} }

// processor returns the name of the cluster for the filter's streams; "" if it names none.
func (u use) processor() string { return u.config.GetGrpcService().GetEnvoyGrpc().GetClusterName() }

// at returns the place of a field, or of a part of it: in the override that sets the field, or else in the filter.
func (u use) at(field string, within ...any) Path {
	if place, ok := u.fields[field]; ok {
		return place.add(within...)
	}
	return u.filter.at.add("typed_config", field).add(within...)
}

// findUses finds the uses of all ext_proc filters.
func (e *Envoy) findUses() {
	for _, m := range e.managers {
		for place, f := range m.filters {
			config, ok := f.config.(*extprocv3.ExternalProcessor)
			if !ok {
				continue
			}
			routes := m.routes
			if routes == nil {
				routes = []*route{nil}
			}
			for _, r := range routes {
				overrides, off := r.of(f)
				if off {
					continue
				}
				u := use{manager: m, filter: f, place: place, route: r, config: config, fields: map[string]Path{}}
				for _, o := range overrides {
					off = !u.apply(o) // the most specific one counts
				}
				if !off {
					e.uses = append(e.uses, u)
				}
			}
		}
	}
}

// apply applies an override, and reports whether it leaves the filter on.
func (u *use) apply(o override) bool {
	own, ok := o.config.(*extprocv3.ExtProcPerRoute)
	if !ok {
		return true
	}
	if own.GetDisabled() {
		return false
	}
	overrides := own.GetOverrides()
	config, _ := proto.Clone(u.config).(*extprocv3.ExternalProcessor)
	set := func(field string, given bool) bool {
		if given {
			u.fields[field] = o.at.add("overrides", field)
		}
		return given
	}
	if set("processing_mode", overrides.GetProcessingMode() != nil) {
		config.ProcessingMode = overrides.GetProcessingMode()
	}
	if set("grpc_service", overrides.GetGrpcService() != nil) {
		config.GrpcService = overrides.GetGrpcService()
	}
	if set("metadata_options", overrides.GetMetadataOptions() != nil) {
		config.MetadataOptions = overrides.GetMetadataOptions()
	}
	if set("failure_mode_allow", overrides.GetFailureModeAllow() != nil) {
		config.FailureModeAllow = overrides.GetFailureModeAllow().GetValue()
	}
	u.config = config
	return true
}

// of returns the uses of Weir in an Envoy: by main filters, or by gates.
func (w Weir) of(e *Envoy, gates bool) []use {
	var own []use
	for _, u := range e.uses {
		if w.isAsked(u) && u.isGate() == gates && !u.config.GetObservabilityMode() {
			own = append(own, u)
		}
	}
	return own
}

// processors returns the clusters of Weir, with the clusters that form them.
func (w Weir) processors(e *Envoy) []*cluster {
	var all []*cluster
	seen := map[string]bool{}
	for _, u := range e.uses {
		if name := u.processor(); w.isAsked(u) && !seen[name] {
			seen[name] = true
			all = append(all, e.withParts(name)...)
		}
	}
	return all
}

// servers returns the destination clusters of the routes with Weir, each once.
func (w Weir) servers(e *Envoy) []*cluster {
	var all []*cluster
	seen := map[*cluster]bool{}
	for _, u := range w.of(e, false) {
		if c := u.server(e); c != nil && !seen[c] {
			seen[c] = true
			all = append(all, c)
		}
	}
	return all
}

// server returns the destination cluster of the use's route; nil if unknown.
func (u use) server(e *Envoy) *cluster {
	if u.route == nil {
		return nil
	}
	return e.cluster(u.route.cluster)
}
