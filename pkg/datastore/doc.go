// Package datastore knows the endpoints and their readiness.
//
// A [Store] publishes immutable [scheduling.Snapshot]s: readers take the current one without a lock, and subscribers
// get every snapshot in order. Without Kubernetes the endpoints come from a list of addresses (flags) or from a YAML
// file, which is watched; both can be probed over HTTP. Other sources call [Store.Set]. [Files] watches the endpoints
// file and other files.
//
// # Invariants
//
//   - An endpoint's identity is the key from its source: a pod's UID and port, or the address in a list or a file. An
//     endpoint keeps its EndpointID while it is in the pool or has requests in flight; then the ID is forgotten. An
//     address that returns with another key is a new endpoint.
//   - No two endpoints of a snapshot have the same address.
//   - Versions strictly increase. Subscribers see them in order, one call at a time. An unchanged pool is not published
//     again.
//   - A file that is broken, too large or missing leaves the last good state in place and is logged once.
//   - A change that only adds endpoints may be published up to 50 ms later, together with other changes. Any other
//     change, and the first ready endpoint, is published at once.
//   - Files are not polled. Without probing, no goroutine or timer exists for it.
//
// # What it must never know
//
// Requests, queues, stock and policy; the choice of an endpoint.
package datastore
