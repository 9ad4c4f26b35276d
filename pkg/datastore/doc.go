// Package datastore knows the endpoints and their readiness.
//
// A [Store] publishes immutable [scheduling.Snapshot]s: readers take the current one without a lock, and subscribers get
// every one in order. Without Kubernetes the endpoints come from a list of addresses (flags) or from a YAML file that is
// watched; either can be probed over HTTP. Other sources call [Store.Set]. [Files] watches files, this one and others.
//
// # Invariants
//
//   - An endpoint's identity is the key that its source gives it: the UID of a pod and the port, or, in a list or a file,
//     the address. It keeps its EndpointID while it is in the pool or has requests in flight, and is then forgotten. An
//     address that comes back with another key is another endpoint.
//   - No two endpoints of a snapshot have the same address.
//   - Versions strictly increase; subscribers see them in order and one call at a time; an unchanged pool is not
//     published again.
//   - A file that is broken, too large or missing leaves the last good state in place, and is logged once.
//   - A change that only adds may be published up to 50 ms later, together with others. Any other change, and the first
//     ready endpoint, is published at once.
//   - Files are not polled, and with probing off there is no goroutine or timer for it.
//
// # What it must never know
//
// Requests, queues, stock and policy; the choice of an endpoint.
package datastore
