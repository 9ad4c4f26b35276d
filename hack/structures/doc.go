// Package structures compares structures that could keep the flows of a lane in order: the 4-ary heap of internal/heap, the
// binary heap of the standard library, a calendar queue (Brown 1988), heaps in shards with a lock each, and a MultiQueue
// (Rihani, Sanders, Dementiev 2015), whose order is only approximate. All are in its tests, so no program has them:
//
//	go test -run '^$' -bench . -benchtime=200000x ./hack/structures
//
// The operations are those of the controller in their proportions (mix_test.go). ADR 0191 has the figures.
package structures
