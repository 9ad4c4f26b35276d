package engine

// kvCache counts the blocks of the KV cache. A sequence holds the blocks of its computed tokens, rounded up.
type kvCache struct {
	blockSize, total int
	used, peak       int
}

// blocksFor returns how many blocks the tokens need.
func blocksFor(tokens, blockSize int) int { return (tokens + blockSize - 1) / blockSize }

// grow makes the sequence hold blocks for the given number of tokens. It reports whether there was room; if not,
// nothing changes.
func (k *kvCache) grow(s *sequence, tokens int) bool {
	if k.total == 0 {
		return true
	}
	more := max(blocksFor(tokens, k.blockSize)-s.blocks, 0)
	if k.used+more > k.total {
		return false
	}
	k.take(more)
	s.blocks += more
	return true
}

// hold is grow without a limit, for fixed time: the usage may exceed the total.
func (k *kvCache) hold(s *sequence, tokens int) {
	if k.total == 0 {
		return
	}
	s.blocks = blocksFor(tokens, k.blockSize)
	k.take(s.blocks)
}

func (k *kvCache) take(blocks int) {
	k.used += blocks
	k.peak = max(k.peak, k.used)
}

// free returns all of the sequence's blocks.
func (k *kvCache) free(s *sequence) {
	k.used -= s.blocks
	s.blocks = 0
}

// usage returns the used fraction, 0 to 1.
func (k *kvCache) usage() float64 {
	if k.total == 0 {
		return 0
	}
	return min(float64(k.used)/float64(k.total), 1)
}
