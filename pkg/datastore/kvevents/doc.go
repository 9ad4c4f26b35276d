// Package kvevents follows the KV events of engines: the blocks that an engine's KV cache has stored and removed, and
// its clearing, as vLLM and SGLang publish them over ZeroMQ.
//
// A [Subscriber] has a connection to the publisher of each endpoint. Block hashes are the engine's own, and are not
// compared with the prompts that Weir knows. The owner gets two facts ([Parts]): the engine has lost all of its blocks,
// or events were missed (Cleared); and the cache's size in tokens (Sized).
//
// # Messages
//
// A message is a topic, a sequence number of 8 bytes, big-endian, and a batch in msgpack: [time, events, rank]. An
// event is a table with its type (vLLM since 0.30), or a list that begins with its type (SGLang, and older vLLMs;
// batch.go). Sequence numbers count from 0 at the engine's start. A number other than the last one plus 1 is a gap:
// messages were dropped, or the engine has restarted.
//
// # The size
//
// The size is the number of different blocks stored and not removed, times the tokens of a block. It is known once an
// eighth of that number of blocks has been removed, since the cache is then full. Stored minus removed would count
// blocks twice: vLLM also reports a reused block as stored if the client's request asks for that
// (kv_cache_report_mode). Only blocks in the accelerator's memory count, and in a hybrid model only the first group of
// layers.
//
// A sample of the blocks is kept: those whose mixed hash begins with k zero bits, at most 1,024, so the size is exact
// within some 5 % (adaptive sampling: Flajolet, "On adaptive sampling", 1990).
//
// # Cost of an engine
//
// A message is read value by value as it arrives, and only the sample is kept: an endpoint takes some 30 KB for
// messages of any length. A message of more than 64 MiB, one that takes longer than 30 s, or one that is not a batch
// ends the connection. An endpoint's messages are read at no more than 8 MiB/s; the publisher drops the rest, which is
// a gap. A failed connection is retried after 1 s, then after longer waits up to 30 s; the first failure is logged.
//
// # What it must never know
//
// Prompts, the index of prefixes, requests and queues.
package kvevents
