// Package kube takes the pool from Kubernetes: pods that an InferencePool or a label selector names become endpoints of
// a datastore.Store. Connect makes the connection to the apiserver.
//
// A [Cluster] has the parts that the sources of one pool share: the connection, the permissions (asked for by name
// before they are used), Events, and whether all sources have synced. [Cluster.Follow] follows objects of one kind, and
// keeps only the parts in memory that its caller reads. [Source] is the source of pods: it follows the InferencePool
// (or has a selector), and the pods that it selects; several changes at a time reach the store as one. [Names] is the
// source of objectives and models: it follows the resources that name them, hands them all to internal/names, which
// merges them, and reports the result for each.
//
// # Invariants
//
//   - A pod's identity is its UID: a pod with the name or the address of another one is another endpoint, and an object
//     that replaces another of its kind and name ends that one, even if its end was not seen.
//   - From the deletion timestamp on a pod is not ready, whatever its conditions say.
//   - The last known state stays in use while the apiserver is away, when the InferencePool is deleted or invalid, and,
//     when its selector changes, until all pods of the new one are known.
//   - Requests to the apiserver are limited to one namespace, by labels and fields, and to list, watch, the creation of
//     Events and SelfSubjectAccessReviews, and server-side apply of the condition Accepted; besides, to the discovery
//     of the groups of objectives and models.
//   - Memory for an object is bounded, whatever it contains.
//   - Requests to the apiserver and lines of the log are bounded in time too, however often objects change, and for all
//     answers (ADR 0066).
//
// # What it must never know
//
// Requests, queues, stock and policy; the choice of an endpoint.
package kube
