package request

import (
	"slices"
	"strings"
)

// Anonymous is the flow and the tenant of a request without an identity. No tenant can claim it: a tenant of that name
// is known by its hash.
const Anonymous = "anonymous"

// identify reads the identity from the sources of the flow key, in their order.
func (q *Request) identify(h *Headers, c Context) {
	r, id := q.rules, &q.identity
	for i := range r.flow {
		s := &r.flow[i]
		if s.kind == fromModel {
			id.byModel = true
			continue
		}
		v := s.lookup(h, c)
		if v == "" {
			continue
		}
		v = r.tenantName(v)
		q.Tenant = v
		if id.byModel {
			id.later = v
		} else {
			id.flow = v
		}
		break
	}
	if q.Tenant == "" && r.cfg.Anonymous == AnonymousShared {
		id.flow = Anonymous
	}
	id.byModel = id.byModel && id.flow == ""
}

// tenantName returns the name of an identity: its hash if keys are hashed, or if no tenant can claim a flow of that
// name.
func (r *Rules) tenantName(identity string) string {
	if r.cfg.HashFlowKeys || r.isTaken(identity) {
		return hashedFlow(identity)
	}
	return bounded(identity)
}

// isTaken reports whether a name is reserved for a flow of anonymous requests, of unknown models, or of a model with
// its target.
func (r *Rules) isTaken(name string) bool {
	switch {
	case name == Anonymous:
		return true
	case !r.flowsOfModels:
		return false
	case name == UnknownModel:
		return r.cfg.UnknownModels == UnknownModelsShared
	default:
		return r.namesModel(name)
	}
}

// namesModel reports whether a name is the flow of some model. Any model may be its own target, or have one of the
// configured targets.
func (r *Rules) namesModel(name string) bool {
	half := len(name) / 2
	if len(name)%2 == 1 && name[half] == '/' && name[:half] == name[half+1:] {
		return true
	}
	if r.modelFlows[name] {
		return true
	}
	return r.otherModels != nil && slices.ContainsFunc(r.otherModels.names, func(target string) bool {
		model, ok := strings.CutSuffix(name, target)
		return ok && strings.HasSuffix(model, "/")
	})
}
