// Package kube reads the pool from Kubernetes: the pods of an InferencePool or a label selector become endpoints of a
// datastore.Store. Connect makes the connection to the apiserver.
//
// A [Cluster] has the parts shared by the sources of one pool: the connection, the permissions (checked by name before
// use), Events, and whether all sources have synced. [Cluster.Follow] follows objects of one kind, and keeps only the
// parts that its caller reads. [Source] is the source of pods: it follows the InferencePool (or has a selector) and the
// selected pods; simultaneous changes reach the store as one. [Names] is the source of objectives and models: it
// follows their resources, passes all to internal/names, which merges them, and reports the result for each.
//
// # Invariants
//
//   - A pod's identity is its UID: a new pod with another one's name or address is another endpoint. An object that
//     replaces another of its kind and name ends that one, even if the deletion was not seen.
//   - From the deletion timestamp on a pod is not ready, regardless of its conditions.
//   - The last known state stays in use while the apiserver is away, when the InferencePool is deleted or invalid, and
//     after a change of the selector until all new pods are known.
//   - Requests to the apiserver are limited to one namespace, by labels and fields, and to list, watch, the creation of
//     Events and SelfSubjectAccessReviews, and server-side apply of the condition Accepted; besides, to the discovery
//     of the groups of objectives and models.
//   - Memory for an object is bounded for any content.
//   - Rates of requests to the apiserver and of lines in the log are bounded, for any rate of changes and all answers
//     (ADR 0066).
//
// # What it must never know
//
// Requests, queues, stock and policy; the choice of an endpoint.
package kube
