// Package decision is the record of one decision: what a request asked for, what the queue knew of its flow, how endpoints
// compared for it, and how it ended. It owns the type ([Record]), the words in which people read it ([Record.Lines]), and the
// choice of the requests that have one ([Sample]).
//
// A record is made of two copies, taken under the controller's lock by those that decide: the machine's dispatch.Facts and the
// board's scheduling.View. Each is bounded and does not grow with requests, flows or endpoints. All else happens without the
// lock. A replay of a recording takes the same copies, so that it comes to the record that production made (ADR 0187).
//
// # Sampling
//
//	sampled = hash(x-request-id) < share · 2^64
//
// So the same request is sampled by every replica and at every attempt, without a lock or a shared random source. A request
// without an ID is hashed by its number among such requests.
//
// The package knows no Envoy, no lock, no clock and no file. Where records go is package sink's.
package decision
