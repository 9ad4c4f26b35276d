package request

// identity has the parts of the flow's key. It is read from the headers, before the model is known.
type identity struct {
	// flow is the value of a source before "model" in the list, or "".
	flow string
	// later is the value of a source after "model", for a request without a model.
	later string
	// byModel is set if the flow depends on the model's name.
	byModel bool
	// unknownModel is set if the model's name is unknown, so that it gets no flow of its own.
	unknownModel bool
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

// Sharing is the group of requests that share a flow.
type Sharing uint8

// The sharings of a flow.
const (
	Owned       Sharing = iota // the tenant's own
	OfModel                    // requests for one model without a tenant
	OfModelAll                 // requests for one model from all tenants
	OfAnonymous                // requests without a tenant
)

// Sharing returns the group that shares the request's flow.
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

// KnownFlow returns the key of the flow from the parts read so far, or "". Requests refused before they are offered are
// counted by it.
func (q *Request) KnownFlow() string {
	if q.identity.flow == "" && (!q.identity.byModel || q.Model == "") {
		return ""
	}
	return q.identity.flowKey(q.Model, q.Target)
}
