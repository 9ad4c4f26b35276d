// Package kvevents follows the KV events of engines: the blocks that an engine's KV cache has stored and removed, and
// its clearing, as vLLM and SGLang publish them over ZeroMQ.
//
// A [Subscriber] has a connection to the publisher of each endpoint. Block hashes are the engine's own, and are not
// compared with the prompts that Weir knows. The owner is told two things ([Parts]): the engine has lost all of its
// blocks, or events were missed, so that nothing is certain (Cleared); and the number of tokens for which the cache has
// room (Sized).
//
// # Messages
//
// A message is a topic, a sequence number of 8 bytes, big-endian, and a batch in msgpack: [time, events, rank]. An event is a
// table with its type, as vLLM writes it since 0.30, or a list that begins with its type, as SGLang and older vLLMs do
// (batch.go). Sequence numbers count from 0 at the engine's start. A number that is not one more than the last is a gap:
// messages were dropped, or the engine has restarted.
//
// # The size
//
// The size is the number of different blocks that were stored and not removed, times the tokens of a block, once an eighth of
// so many known blocks have been removed: then the cache is full. Stored minus removed would count blocks twice: a vLLM also
// reports a block as stored when it is reused, if the client's request asks for that (kv_cache_report_mode). Only blocks of the
// accelerator's memory count, and of a hybrid model the first group of layers.
//
// A sample of the blocks is kept: those whose mixed hash begins with k zero bits, at most 1,024, so the size is right within
// some 5 % (adaptive sampling: Flajolet, "On adaptive sampling", 1990).
//
// # What an engine can cost
//
// A message is read as it comes, value by value, and only the sample is kept: an endpoint takes some 30 KB, however
// long its messages are. A message of more than 64 MiB, one that takes longer than 30 s, and one that is no batch end
// the connection. An endpoint's messages are read at 8 MiB/s at most; the publisher drops the rest, which is a gap. A
// connection that fails is tried again after 1 s, and up to 30 s later each time; the first failure is logged.
//
// # What it must never know
//
// Prompts, the index of prefixes, requests and queues.
package kvevents
