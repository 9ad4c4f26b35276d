package request

import (
	"slices"
	"strings"
)

// Anonymous is the flow and the tenant of a request in which no source finds an identity. Nobody can claim to be it: a
// tenant of that name is known by its hash.
const Anonymous = "anonymous"

// identity is who sent a request. It is read from the headers, before the model is known.
type identity struct {
	// flow is what a source before "model" in the list found, or "".
	flow string
	// later is what a source after "model" found, for a request without a model.
	later string
	// byModel is set if the flow depends on the model's name.
	byModel bool
	// unknownModel is set if the client made up the model's name, so that it names no flow of its own.
	unknownModel bool
}

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

// tenantName returns the name of an identity that a source has found: its hash if keys are hashed, or if the name is that of
// a flow which nobody can claim.
func (r *Rules) tenantName(identity string) string {
	if r.cfg.HashFlowKeys || r.isTaken(identity) {
		return hashedFlow(identity)
	}
	return bounded(identity)
}

// isTaken reports whether a name is that of a flow of requests without an identity: of all of them, of unknown models, or
// of a model with its target.
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

// namesModel reports whether a name is that of the flow of some model: any may be its own target, or have one of the
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

// flowKey returns the key of the flow. The model is "" if the request has none.
func (id *identity) flowKey(model, target string) string {
	switch {
	case id.flow != "":
		return id.flow
	case id.byModel && id.unknownModel:
		return UnknownModel
	case id.byModel && model != "":
		return bounded(modelFlow(model, target))
	case id.later != "":
		return id.later
	default:
		return Anonymous
	}
}

// modelFlow returns the name of a model's flow.
func modelFlow(model, target string) string { return model + "/" + target }

// Sharing says who shares a flow.
type Sharing uint8

// The sharings of a flow.
const (
	Owned       Sharing = iota // the tenant's own
	OfModel                    // requests for one model without a tenant
	OfModelAll                 // requests for one model from all tenants
	OfAnonymous                // requests without a tenant
)

// Sharing returns who shares the request's flow.
func (q *Request) Sharing() Sharing {
	switch {
	case q.Flow == q.Tenant:
		return Owned
	case q.Flow == Anonymous:
		return OfAnonymous
	case q.Tenant != "":
		return OfModelAll
	default:
		return OfModel
	}
}

// KnownFlow returns the key of the flow as far as the parts that were read name it, or "". Requests that are refused
// before they are offered are counted by it.
func (q *Request) KnownFlow() string {
	if q.identity.flow == "" && (!q.identity.byModel || q.Model == "") {
		return ""
	}
	return q.identity.flowKey(q.Model, q.Target)
}
