// Package decision records one decision: the request's needs, the queue's state of its flow, the comparison of
// endpoints, and the outcome. It owns the type ([Record]), its form as text for people ([Record.Lines]), and the
// sampling of requests ([Sample]).
//
// A record is made from two copies that the deciding packages take under the controller's lock: dispatch.Facts and
// scheduling.View. Both are bounded and do not grow with requests, flows or endpoints. Everything else happens without
// the lock. The replay of a recording takes the same copies, so it produces the same record as production (ADR 0187).
//
// # Sampling
//
//	sampled = hash(x-request-id) < share · 2^64
//
// So every replica and every retry samples the same requests, without a lock or a shared random source. Requests
// without an ID are numbered, and the number is hashed.
//
// The package knows no Envoy, lock, clock or file. Package sink writes the records.
package decision
