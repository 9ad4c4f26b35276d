// Package datastore says which endpoints exist, and which of them are ready.
//
// A [Store] publishes immutable [scheduling.Snapshot]s: readers take the current one without a lock, subscribers get
// every one in order. Where the endpoints come from, without Kubernetes, is a list of addresses (flags) or a YAML
// file that is followed; either can be probed over HTTP. A source of another kind calls [Store.Set]. [Files] follows
// files, these and others.
//
// # Invariants
//
//   - an address has one EndpointID as long as the process lives, whether it is in the pool or not
//   - versions strictly increase, subscribers see them in order and one call at a time, and nothing is published when
//     nothing changed
//   - a file that is broken, too large or gone leaves the last good state in place, and says so once
//   - what is only a gain is published up to 50 ms later, together with others; anything else, and the first endpoint that
//     is ready, at once
//   - no polling of files, and no goroutine or timer for probing when that is off
//
// # What it must never know
//
// Requests, queues, stock and policy; how an endpoint is chosen.
package datastore
