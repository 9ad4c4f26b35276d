// Package prefix knows which endpoint was last given which beginnings of prompts, so that a request can go where an engine
// has most of its prompt in its KV cache.
//
// It owns the [Index]. A prompt comes as a [Prefix]: the keys of its blocks, chained, so that a key stands for everything
// up to the block's end (package body makes them from a request's body, or from the name of its session). [Index.Match]
// says before the controller's lock how much of it each endpoint has; the answer, [scheduling.Ratings], is an input of the
// decision. [Index.Place] notes after the lock where it went.
//
// # What an endpoint has
//
// A node says that an endpoint has a block. Each endpoint has at most
//
//	limit = 2 · KV tokens / 256          nodes, or its part of Config.MaxNodes if all together want more
//
// and forgets the oldest first. Half too much costs little, half too little is fatal: an engine's cache turns over at its
// own pace. A block is fresh until it is asked for again, and then proven; proven ones have at most half of the limit, and
// fall back among the fresh ones when they are more. So a flow of prompts that nobody repeats flushes no others' prefixes:
// it can only take the place of fresh ones.
//
// A block that only one flow has asked for is that flow's. If there are too many, one goes of the flow that has most of its
// own, if that is more than a sixteenth of the limit, else the oldest; before both goes one that is older than eight caches
// of the engine (share.go, ADR 0149).
//
// A placement touches the deepest block first. So a block is never older than those that follow it, in either segment,
// and an endpoint's blocks are closed under prefixes: how much of a prompt it has is found by a binary search. That begins
// at the deepest block that any endpoint has, which is known from a count of holders by block. Beyond 64 endpoints the
// blocks that all have are the floor; of a part that more than 64 have, but not all, 64 are named.
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
//   - an endpoint's blocks are closed under prefixes of what was placed there, and at most its limit
//   - the count of a block is the number of nodes with its key
//   - an endpoint that is not in the pool, or not ready, has nothing
//
// # What it must never know
//
// The controller's lock, queues, flows, HTTP and Envoy, and the meaning of a prompt. It has one lock of its own, no
// goroutine, no clock and no random source: the same calls give the same answers.
package prefix
