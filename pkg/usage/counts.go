package usage

// Count is one of the numbers of tokens that a response may report.
type Count uint8

// The numbers, with their names in OpenAI's APIs and in Anthropic's.
const (
	Input  Count = iota // prompt_tokens or input_tokens
	Output              // completion_tokens or output_tokens
	// Cached is cached_tokens, within prompt_tokens_details or input_tokens_details: a part of Input.
	Cached
	// CacheRead and CacheCreated are cache_read_input_tokens and cache_creation_input_tokens. They are not parts of
	// Input, which then excludes tokens read from or written to the cache.
	CacheRead
	CacheCreated
	numCounts = iota
)

// Counts are a response's reported numbers, in the terms of its API. The zero value has none.
type Counts struct {
	n     [numCounts]int64
	there [numCounts]bool
}

// Set sets a number, from 0 to 2^40.
func (c *Counts) Set(which Count, n int64) { c.n[which], c.there[which] = n, true }

// Tokens returns the usage, in the same terms for every API, and reports whether it is complete: without the input or
// the output it is partial. With promptOnly the output may be missing. If Cached is reported, Input includes it.
func (c *Counts) Tokens(promptOnly bool) (t Tokens, known bool) {
	t = Tokens{Input: c.n[Input], Output: c.n[Output], Cached: c.n[Cached]}
	if !c.there[Cached] {
		t.Input += c.n[CacheRead] + c.n[CacheCreated]
		t.Cached = c.n[CacheRead]
	}
	return t, c.there[Input] && (c.there[Output] || promptOnly)
}
