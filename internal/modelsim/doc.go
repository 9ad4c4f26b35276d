// Package modelsim is a simulated model server: an HTTP server that speaks the OpenAI and Anthropic APIs as vLLM does,
// with the timing of a real batching engine and without a model. Tests, benchmarks and the demo use it as the upstream.
//
// It owns the APIs' shapes, the record of received requests, and the faults that a test injects. Batch slots, the
// waiting queue and all timing belong to the pure package engine; this package is the thin shell around it: one lock,
// one timer at the engine's next event, and the requests' own goroutines.
//
// # Timing
//
// [TinyVLLM] (the default) is calibrated on a real vLLM: prefill per prompt token, decode steps that slow down with the
// batch. [Fixed] gives every request the same service time in a number of slots. [Instant] answers at once from
// prepared bytes and parses only the request's stream field: an upstream for proxy benchmarks with next to no cost of
// its own.
//
// # Answers
//
// A streamed answer's headers are flushed at once and its first data comes with the first token (/v1/responses sends
// response.created and response.in_progress with the headers); a whole answer's headers come with its body. Stream usage
// is sent on the OpenAI APIs only with stream_options.include_usage. Text is random words, fixed by [Config.Seed], the
// request's number and the choice.
//
// The count of prompt tokens is the prompt's JSON bytes divided by [Config.BytesPerToken], rounded up; token IDs count
// exactly. The count of output tokens is the request's limit or [Config.DefaultOutputTokens], cut short at random with
// [Config.EarlyStop].
//
// # The prefix cache
//
// With [Config.PrefixCaching] a block of a prompt is BytesPerToken × BlockSize bytes of its JSON, or BlockSize token
// IDs; prompts that begin with the same bytes share them, unless their cache_salt differs. With
// [Config.PromptTokensDetails] the usage of the OpenAI APIs has the cached tokens, null if there are none; that of
// /v1/responses always has them.
//
// With [Config.KVEvents] the server publishes stored and evicted blocks like vLLM with --kv-events-config. POST
// /reset_prefix_cache empties a cache that no request uses.
//
// # Faults
//
// Tests call [Handler.Inject]. With [Config.Faults] clients post a [Fault] to [FaultsPath].
//
// # Invariants
//
//   - Started = Completed + Failed + Aborted + those in flight, always.
//   - A request whose client has left ends as Aborted, and holds its slot only for the abort delay.
//   - Without requests there is no timer and no goroutine but those of the listener and its open connections.
package modelsim
