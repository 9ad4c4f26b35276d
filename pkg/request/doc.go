// Package request reads one request: its headers, the metadata and attributes that the data plane adds, and its body,
// into one value with everything that a decision about the request needs.
//
// It owns the configuration for reading (Config). The value (Request) has the tenant, flow, tier, class, model and
// target, the subset of endpoints, the deadline, the size for the estimate of its cost, the headers to remove and the
// edits of its body; a refusal is an Error. The package does not know Envoy's messages, the collection of bodies, the
// queue, or the price of a token. It is pure: no goroutine, lock, clock, log or random source. Time, the draw of a
// target and the models of the endpoints are arguments (Input).
//
// # Two steps
//
//	var h Headers
//	h.Add(rules, name, value)                   once for each header
//	needs, err := r.ReadHeaders(rules, &h, in)  the headers say all, or the body is needed
//	err = r.ReadBody(body, whole)               completes the value; the body is not needed any longer
//
// # Which file has which rule
//
//	headers.go      the headers that are read, the first value of each, and those that are removed before the model server
//	limits.go       headers that are too many or too large, and bodies that are announced too large
//	duplicate.go    a trusted header that comes twice, or has two values, is refused
//	synonyms.go     the ecosystem's headers that the configuration does not name are not read
//	source.go       where an identity may be: a header, metadata, an attribute
//	tenant.go       the tenant: the first identity; and the names that no tenant can claim
//	flow.go         the flow: the tenant's, the model's, or a shared one, and its sharers
//	user.go         the tenant's user, where flows have two levels
//	role.go         the tenant's role: by its policy, the sources of roles, or the default
//	hash.go         identities that are hashed: secrets, and long ones
//	tier.go         the tier: its sources in their order, and the limit by the tenant's policy
//	ranks.go        the names of tiers, criticalities and priorities
//	class.go        the class within the tier, and the priorities
//	hints.go        the hints of a body, as far as they are allowed
//	family.go       the classes of families, which the uncached tokens of a request tell apart
//	model.go        the model, and unknown models; the edits of the body: the model's name, the question for usage
//	target.go       the weighted draw of a model's target
//	path.go         the paths that certainly run a model, and the API of each
//	passon.go       the requests that pass without queueing
//	subset.go       the only endpoints that may be picked
//	requirements.go the labels that an endpoint must have, and the taints that it may have
//	deadline.go     the client's deadline
//	size.go         the size, from which the cost is estimated, or the cost that the gateway states
//	request.go      the value, and the input: among it the part of a request that Envoy itself has read
//	needsbody.go    whether the body is needed
//	readheaders.go  the first step, in the order in which a request may be refused
//	readbody.go     the second step: the model that is missing, broken bodies, parts of bodies
//	errors.go       the errors
//	config.go       the configuration (validate.go: its problems; rules.go: its form for reading)
//
// # Invariants
//
//   - The same input gives the same value, and the value keeps only strings of its own.
//   - An Error names the header or field at fault, if the sender can correct one.
//   - A tenant never gets the flow of anonymous requests, of a model, or of unknown models.
//   - A tier is never above the highest of the tenant's policy.
//   - A subset hint never means the whole pool.
//   - A model's name longer than MaxModelBytes is never kept.
//   - A partial body does not decide its model: engines read the last of two model fields, which may come later.
package request
