// Package structures compares data structures for the order of a lane's flows: the 4-ary heap of internal/heap, the
// binary heap of the standard library, a calendar queue (Brown 1988), heaps in shards with a lock each, and a
// MultiQueue (Rihani, Sanders, Dementiev 2015), whose order is only approximate. All of them are in its tests, so they
// are in no program:
//
//	go test -run '^$' -bench . -benchtime=200000x ./hack/structures
//
// The operations are those of the controller in their proportions (mix_test.go). ADR 0191 has the figures.
package structures
