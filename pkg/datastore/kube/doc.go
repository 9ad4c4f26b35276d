// Package kube takes the pool from Kubernetes: pods that an InferencePool or a label selector names become endpoints of
// a datastore.Store. Connect makes the connection to the apiserver.
//
// # What it must never know
//
// Requests, queues, stock and policy; how an endpoint is chosen.
package kube
