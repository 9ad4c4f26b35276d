// Package engine is the pure core of the simulated model server: a batching inference engine as an event-driven state
// machine. It owns the batch slots, the engine's own waiting queue in arrival order, the KV cache blocks and the time
// that work takes. It knows nothing about HTTP, text or the wall clock: events go in with the time as an argument,
// results come out, and [Engine.Next] returns the time of the next call. The same calls give the same results, always.
//
// # Calibrated time: continuous batching
//
// With [Config.Step] set, the engine works in steps, as vLLM does (iteration-level scheduling: Yu et al., "Orca",
// OSDI 2022). At the start of a step every running sequence and as many waiting ones as slots, token budget and KV
// blocks allow are put into one batch. A sequence whose prompt is wholly computed at the end of a step gains one token.
// Arrivals and freed slots count from the next step on. A step with B sequences that computes T tokens takes
//
//	Step.Base + Step.PerSequence × B + Step.PerToken × (T − B)
//
// so a decode step (one token each) costs Base + PerSequence × B, and prefill adds PerToken for each further token of
// the prompt. [TinyVLLM] holds the constants measured on a real vLLM; calibration_test.go compares closed loops with
// that measurement.
//
// Steps that differ only in the number of existing tokens are done together (stepTime.equalSteps), so virtual time
// passes fast: a thousand steps of a decoding batch cost as much as one.
//
// Blocks of prompts are cached by the hashes of a [Job], as vLLM caches them by their tokens. A sequence that joins the
// batch holds the cached blocks at the beginning of its prompt, and computes the rest, at least one token. A full block
// is reusable from the step that computes it. A block without a holder is kept until its room is needed, and evicted in
// the order of release, a sequence's deepest block first. Tokens of answers are not cached.
//
// With [Config.Adapters] set, a sequence with a LoRA adapter joins a batch only if the batch has the adapter already,
// or room for it (adapters.go). Sequences behind it may join first, as in vLLM. During the load of an adapter, the
// engine computes nothing.
//
// When the KV cache is full, the sequence that joined the batch last is preempted: its blocks are freed, it returns to the
// head of the waiting queue, and later its prompt and all the tokens it had produced are computed again.
//
// # Fixed time
//
// With Step zero, each sequence holds a slot for [Config.ServiceTime], whatever the batch, and its tokens are spread
// evenly over that time. The KV blocks of the whole sequence are counted, but never run out; nothing is cached.
//
// # Invariants
//
//   - At most Slots sequences run. No request waits while a slot is free, except for the end of the current step, KV
//     blocks or its adapter.
//   - Sequences join the batch in arrival order, except while waiting for their adapter's room. Preempted sequences
//     come before all that have never run.
//   - A block held by a sequence is never evicted; a block without a holder counts as free.
//   - Each submitted sequence ends exactly once, Finished or Aborted, and then holds no slot and no block.
//   - Time never runs backwards: an earlier now than before panics.
package engine
