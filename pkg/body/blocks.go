package body

import "github.com/weir-epp/weir/internal/splitmix"

// BytesPerToken is the assumed length of a token in bytes of a prompt's text, without an estimate.
const BytesPerToken = 4

// Sizes of blocks.
const (
	// BlockBytes is the size of each of the first manyBlocks blocks, in bytes.
	BlockBytes = 1 << 10

	largeBlockBytes = 8 << 10 // of the blocks after them
	manyBlocks      = 512
	// mostBlocks is the largest number of blocks, which take 12 KiB of memory; the rest of the prompt has none.
	mostBlocks = 1024
	// shortestMedia is the length in bytes below which media are hashed like text: a body may have thousands of them.
	shortestMedia = 1 << 10
)

// Blocks are the keys of a prompt's blocks: each is a hash of everything from the prompt's beginning to the block's
// end. Prompts with the same beginning have equal keys up to the first difference.
type Blocks struct {
	Keys []uint64
	// Ends are the ends of the blocks in bytes of text, of Bytes in all. They never fall. Media are hashed, but do not
	// count as text.
	Ends  []uint32
	Bytes uint32
	// Tokens is the estimated length of the prompt in tokens. The caller sets it.
	Tokens int64
	// Flow is a hash of the prompt's flow. The caller sets it.
	Flow uint64
}

// BlockSize returns the length of a prompt's n-th block, in bytes, from block 0. The size is 0 beyond the last possible
// block.
func BlockSize(n int) int {
	switch {
	case n < manyBlocks:
		return BlockBytes
	case n < mostBlocks:
		return largeBlockBytes
	default:
		return 0
	}
}

// TokensIn returns the number of tokens of the first n blocks.
func (b *Blocks) TokensIn(n int) int64 {
	if n == 0 || b.Bytes == 0 {
		return 0
	}
	return b.Tokens * int64(min(b.Ends[n-1], b.Bytes)) / int64(b.Bytes)
}

// A session has a block for each sessionBlock tokens, and at most mostSessionBlocks.
const (
	sessionBlock      = 1024
	mostSessionBlocks = 256
)

// FollowSession sets the blocks of a prompt of Tokens tokens known only by its session's key: the prompt is assumed to
// be cached up to the length of the session's last prompt.
func (b *Blocks) FollowSession(key uint64) {
	n := int(min(max(b.Tokens/sessionBlock, 1), mostSessionBlocks))
	b.Keys, b.Ends, b.Bytes = make([]uint64, n), make([]uint32, n), uint32(min(max(b.Tokens, 1), 1<<31))
	for i := range n {
		key = splitmix.Mix(key)
		b.Keys[i], b.Ends[i] = key, min(uint32(i+1)*sessionBlock, b.Bytes)
	}
	b.Ends[n-1] = b.Bytes
}

// span is a part of a body.
type span struct{ start, end int }

// shownKeys are the parts of a prompt in the order of chat templates.
var shownKeys = [...]promptKey{tools, system, instructions, messages, prompt, input}

// Blocks returns the blocks of the prompt of b, the body that f was read from. Requests with different seeds, or
// different values of cache_salt, have no key in common.
//
// A block has 1 KiB of raw JSON, and 8 KiB after the first 512 blocks, across messages. An incomplete last block has no
// key, since more may follow it.
func (f *Fields) Blocks(b []byte, seed uint64) Blocks {
	w := newBlockWriter(seed)
	w.body, w.media = b, f.media
	if s := f.cacheSalt; s.end > 0 {
		w.state = w.hash(w.state, b[s.start:s.end])
	}
	for _, k := range shownKeys {
		s := f.spans[k]
		if s.end == 0 {
			continue
		}
		w.state = splitmix.Mix(w.state + uint64(k) + 1)
		switch {
		case b[s.start] == '[' && (k == messages || k == input || k == prompt):
			w.list(s)
		case b[s.start] == '"' && (k == prompt || k == input):
			w.part(span{s.start + 1, s.end - 1})
		default:
			w.part(s)
		}
	}
	w.blocks.Bytes = w.text
	return w.blocks
}

// SessionKey returns a hash of prompt_cache_key, and whether the body has a non-empty one.
func (f *Fields) SessionKey(b []byte, seed uint64) (uint64, bool) {
	s := f.cacheKey
	if s.end-s.start <= len(`""`) || b[s.start] != '"' {
		return 0, false
	}
	return HashText(string(b[s.start:s.end]), seed), true
}

// HashText hashes a text, with the same result in every process with the seed.
func HashText(text string, seed uint64) uint64 {
	w := newBlockWriter(seed)
	return splitmix.Mix(w.hash(w.state, []byte(text)))
}
