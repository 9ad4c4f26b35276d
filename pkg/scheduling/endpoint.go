package scheduling

import "slices"

// EndpointID names an endpoint. It is stable for an address as long as the process knows it, and at least 0.
type EndpointID int32

// NoEndpoint is the EndpointID of a request that is not placed.
const NoEndpoint EndpointID = -1

// Millionths is how many units of Endpoint.LowerBound and UpperBound make one request.
const Millionths = 1_000_000

// maxBound caps a bound, about 10^9 requests, so that sums and products of bounds stay within their integers.
const maxBound int64 = 1 << 50

// Endpoint is one model server that can be picked. It is a value: whoever built a Snapshot of it must not change its
// Models or Labels afterwards.
type Endpoint struct {
	// ID is unique in a snapshot, at least 0.
	ID EndpointID
	// Address is "ip:port", "[::1]:80" for IPv6: exactly what Envoy is told.
	Address string
	// Models are the names it serves; empty: any.
	Models []string
	// Labels are for display and for later filters.
	Labels map[string]string
	// Slots is how many requests it runs at once by its own report; 0: unknown.
	Slots int
	// Ready says whether it may be picked now.
	Ready bool

	// LowerBound and UpperBound are its share of a lane's hysteresis band, in millionths of a request, at least 0.
	// They are filled in by the wiring (see Snapshot.Derive); 0 lets a lane have one request in flight at a time.
	LowerBound, UpperBound int64
	// MaxInFlight is a hard limit on the requests in flight at this endpoint; 0: none.
	MaxInFlight int
}

// Serves says whether the endpoint serves the model. An endpoint that lists no models serves any, and an empty model
// asks for none.
func (e *Endpoint) Serves(model string) bool {
	return model == "" || len(e.Models) == 0 || slices.Contains(e.Models, model)
}
