// Package prefix remembers the beginnings of prompts that each endpoint was given last, so that a request can go to the
// engine with most of its prompt in the KV cache.
//
// It owns the [Index]. A prompt comes as a [Prefix]: the keys of its blocks, chained, so that a key stands for
// everything up to the block's end (package body makes them from a request's body, or from the name of its session).
// Before the controller's lock, [Index.Match] finds the part of it that each endpoint has; the answer,
// [scheduling.Ratings], is an input of the decision. After the lock, [Index.Place] notes the endpoint that the prompt
// went to.
//
// # The blocks of an endpoint
//
// A node stands for a block at an endpoint. Each endpoint has at most
//
//	limit = 2 · KV tokens / 256          nodes, or its part of Config.MaxNodes if all together want more
//
// and forgets the oldest first. Half too much costs little, half too little is fatal: an engine's cache turns over at
// its own pace. A block is fresh until it is asked for again, and then proven; proven ones have at most half of the
// limit, and fall back among the fresh ones when they are more. So a flow of prompts that are never repeated flushes no
// others' prefixes: it can only take the place of fresh ones.
//
// A block that only one flow has asked for is that flow's. If there are too many blocks, one goes that is older than
// eight caches of the engine; else one of the flow with the most blocks of its own, if these are more than a sixteenth
// of the limit; else the oldest (share.go, ADR 0149).
//
// A placement touches the deepest block first. So a block is never older than those that follow it, in either segment,
// and an endpoint's blocks are closed under prefixes: a binary search finds the part of a prompt that it has. The
// search begins at the deepest block that any endpoint has, which is known from a count of holders by block. Beyond 64
// endpoints the blocks that all have are the floor; of a part that more than 64 have, but not all, 64 are named.
//
// # A prompt that no endpoint has
//
// The endpoints are ranked by the hash of its first blocks and of their own keys (highest random weight), alike in every
// replica, so that replicas that do not know of each other send prompts that begin alike to the same engine.
//
// # What it costs
//
// A node has 32 bytes, its part of the hash table 4 to 8, and a block's count of holders 11 to 21: 100 endpoints with 1
// million KV tokens each are 781,250 nodes, at most 40 MB. A match is one probe or two for each endpoint and O(log blocks)
// more for each of at most 64; a placement is one or two probes for each block. Leaving blocks are dropped in pieces of
// 1,000 nodes, between which others can ask.
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
