package scheduling

import "slices"

// EndpointID identifies an endpoint. It is at least 0, and stable for as long as the endpoint is in the pool or has
// requests in flight.
type EndpointID int32

// NoEndpoint is the EndpointID of a request that is not placed.
const NoEndpoint EndpointID = -1

// Millionths is the number of units of a bound in one request.
const Millionths = 1_000_000

// maxBound caps a bound, at about 4 million requests, so that the sum over a million endpoints is exact.
const maxBound int64 = 1 << 42

// Endpoint is one model server that can be picked. It is a value: its Models and Labels must not be changed once it is
// in a Snapshot.
type Endpoint struct {
	// ID is unique in a snapshot, at least 0.
	ID EndpointID
	// Key is the endpoint's identity from its source: the UID of its pod and the port, or its address if nothing else
	// is known. Successive endpoints with the same address have different keys.
	Key string
	// Address is "ip:port", "[::1]:80" for IPv6, exactly as Envoy gets it.
	Address string
	// Models are the names of the models it serves; empty means any.
	Models []string
	// Labels are for display, and for requests that require labels. Taints keep away requests that do not tolerate
	// them. No rule of this package reads either.
	Labels map[string]string
	Taints []string `json:",omitempty"`
	// Work is its engine's purpose. An endpoint without a role has the zero value, WorkAll.
	Work Work `json:",omitempty"`
	// Slots is the reported number of requests that it runs at once; 0 means unknown.
	Slots int
	// Ready reports whether it may be picked now.
	Ready bool
	// MaxInFlight is a hard limit on the requests in flight at this endpoint; 0 means no limit.
	MaxInFlight int
	// PrefillTokens is the number of prompt tokens to read at which a prefill engine is full; 0 means
	// Config.PrefillTokens.
	PrefillTokens int64 `json:",omitempty"`
	// MaxBatchedTokens is the most tokens that its engine processes in one step, at least 0, for BusyRule.PrefillFraction; 0
	// means unknown.
	MaxBatchedTokens int64 `json:",omitempty"`
	// Priority is the operator's preference for the endpoint, where endpoints are compared by Points: -MaxPriority to
	// MaxPriority.
	Priority int `json:",omitempty"`
	// Lacks are the needs that its engine cannot meet. LacksStated is set if its source states them, which overrides
	// the engine's own statement.
	Lacks       Needs `json:",omitempty"`
	LacksStated bool  `json:",omitempty"`
}

// Serves reports whether the endpoint serves the model. An endpoint that lists no models serves any, and any endpoint
// serves the empty model.
func (e *Endpoint) Serves(model string) bool {
	return model == "" || len(e.Models) == 0 || slices.Contains(e.Models, model)
}
