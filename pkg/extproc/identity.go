package extproc

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// identity is who asks: found in the headers, before the model is known.
type identity struct {
	// flow is the first source's value before "model" in the list; "" if the model's turn comes first.
	flow string
	// later is the first value of the sources after "model", for a request without a model.
	later string
	// byModel says that the model's name is wanted for the flow.
	byModel bool
	// tenant is the first value of any source but the model; "" is anonymous.
	tenant string
	// unknownModel says that the model's name is the client's invention, and names no flow of its own.
	unknownModel bool
}

// identify looks the sources up in their order.
func (c *compiled) identify(id *identity, h *headers, m *corev3.Metadata, attributes map[string]*structpb.Struct) {
	for i := range c.flow {
		s := &c.flow[i]
		if s.kind == fromModel {
			id.byModel = true
			continue
		}
		v := s.lookup(h, m, attributes)
		if v == "" {
			continue
		}
		if c.HashFlowKeys {
			v = HashedFlow(v)
		} else {
			v = bounded(v)
		}
		id.tenant = v
		if id.byModel {
			id.later = v
		} else {
			id.flow = v
		}
		break
	}
	id.byModel = id.byModel && id.flow == ""
}

// flowKey is the key of the flow, once the model is known ("" if it never will be).
func (id *identity) flowKey(model, target string) string {
	switch {
	case id.flow != "":
		return id.flow
	case id.byModel && id.unknownModel:
		return unknownModels
	case id.byModel && model != "":
		return bounded(model + "/" + target)
	case id.later != "":
		return id.later
	default:
		return anonymous
	}
}

// theirs reports whether the flow is the client's own: named by whoever asks, and not by what is asked for.
func (id *identity) theirs(flow string) bool { return flow == id.tenant }

// tier is the rank of a request's tier: the one that is requested, then clamped to the tenant's highest, never up.
// unknown says that the class header or metadata named a tier that does not exist; it then counts as not said.
func (c *compiled) tier(h *headers, m *corev3.Metadata, model, tenant string) (requested, effective int, unknown bool) {
	requested, unknown = c.declared(h, m, model)
	if tenant == "" {
		tenant = anonymous
	}
	highest, ok := c.tenants[tenant]
	if !ok {
		highest = c.otherTenant
	}
	return requested, max(requested, highest), unknown
}

// declared is the first that says something: trusted metadata, class header, objective, model, the default.
func (c *compiled) declared(h *headers, m *corev3.Metadata, model string) (rank int, unknown bool) {
	if c.classMeta != nil {
		if v := strings.TrimSpace(c.classMeta.lookup(h, m, nil)); v != "" {
			if r, ok := c.ranks.said(v); ok {
				return r, false
			}
			unknown = true
		}
	}
	if v := strings.TrimSpace(h.values[c.classHeader]); v != "" {
		if r, ok := c.ranks.said(v); ok {
			return r, unknown
		}
		unknown = true
	}
	if v := h.first(c.objectiveIn...); v != "" {
		if r, ok := c.objectives[v]; ok {
			return r, unknown
		}
	}
	if t := c.models[model]; t != nil && t.rank != noRank {
		return t.rank, unknown
	}
	return c.defaultRank, unknown
}
