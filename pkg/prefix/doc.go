// Package prefix remembers the beginnings of prompts that each endpoint was given last, so that a request can go to the
// engine with most of its prompt in the KV cache.
//
// It owns the [Index]. A prompt comes as a [Prefix]: the chained keys of its blocks, each of which stands for
// everything up to the block's end. Package body makes the keys from a request's body, or from the name of its session.
// Before the controller's lock, [Index.Match] finds the part of the prompt at each endpoint; its result,
// [scheduling.Ratings], is an input of the decision. After the lock, [Index.Place] notes the prompt's endpoint.
//
// # The blocks of an endpoint
//
// A node stands for a block at an endpoint. Each endpoint has at most
//
//	limit = 2 · KV tokens / 256          nodes, or its part of Config.MaxNodes if all together want more
//
// and forgets the oldest first. A limit that is half too large costs little; one that is half too small is fatal, since
// an engine's cache turns over at its own pace. A block is fresh until it is asked for again, and then proven. Proven
// blocks have at most half of the limit; excess ones become fresh again. So a flow of prompts that never repeat
// replaces fresh blocks only, and never the proven prefixes of other flows.
//
// A block that only one flow has asked for is that flow's own. If there are too many blocks, the index forgets a block
// older than eight caches of the engine; else one of the flow with the most blocks of its own, if these exceed a
// sixteenth of the limit; else the oldest (share.go, ADR 0149).
//
// A placement touches the deepest block first. So in either segment a block is never older than its successors, and an
// endpoint's blocks are closed under prefixes: a binary search finds the part of a prompt at an endpoint. The search
// begins at the deepest block of any endpoint, known from a count of holders by block. With more than 64 endpoints, the
// blocks at all of them are the floor; of a part at more than 64 endpoints, but not all, 64 are named.
//
// # A prompt that no endpoint has
//
// The endpoints are ranked by the hash of the prompt's first blocks and the endpoints' keys (highest random weight).
// Every replica ranks alike, so independent replicas send prompts with the same beginning to the same engine.
//
// # What it costs
//
// A node has 32 bytes, its part of the hash table 4 to 8, and a block's count of holders 11 to 21: 100 endpoints with 1
// million KV tokens each have 781,250 nodes, at most 40 MB. A match takes one or two probes for each endpoint, and
// O(log blocks) more for each of at most 64 endpoints; a placement takes one or two probes for each block. An
// endpoint's blocks are dropped in pieces of 1,000 nodes, with the lock released in between.
//
// # Invariants
//
//   - an endpoint's blocks are closed under prefixes of the prompts placed there, and at most its limit
//   - the count of a block is the number of nodes with its key
//   - an endpoint that is not in the pool, or not ready, has nothing
//
// # What it must never know
//
// The controller's lock, queues, flows, HTTP and Envoy, and the meaning of a prompt. It has one lock of its own, no
// goroutine, no clock and no random source: the same calls give the same answers.
package prefix
