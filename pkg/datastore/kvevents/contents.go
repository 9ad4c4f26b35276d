package kvevents

// samples is the largest number of known blocks of an endpoint.
const samples = 1024

// Bounds of a valid size. They keep the product of a block's tokens and the sample within 63 bits.
const (
	mostTokens = 1 << 40
	mostShift  = 32
)

// contents is the content of an engine's cache, from its events. It has no clock. The zero value is an empty cache.
type contents struct {
	next    uint64 // sequence number of the next message
	started bool   // there was a message

	known map[uint64]struct{} // mixed hashes of stored blocks that begin with shift zero bits
	shift uint8
	block int64 // tokens of a block: the largest stated number
	gone  int   // removed blocks of the sample
}

// sequence takes the number of a message, and reports whether messages are missing before it.
func (c *contents) sequence(n uint64) (gap bool) {
	gap = c.started && n != c.next
	c.next, c.started = n+1, true
	if gap {
		c.clear()
	}
	return gap
}

// clear forgets all blocks.
func (c *contents) clear() {
	clear(c.known)
	c.shift, c.gone = 0, 0
}

// sampled reports whether the block of a mixed hash belongs to the sample.
func (c *contents) sampled(hash uint64) bool { return hash>>(64-c.shift) == 0 }

// store adds blocks of this number of tokens.
func (c *contents) store(hashes []uint64, tokens int64) {
	if c.known == nil {
		c.known = map[uint64]struct{}{}
	}
	c.block = max(c.block, tokens)
	for _, h := range hashes {
		if c.sampled(h) {
			c.known[h] = struct{}{}
		}
		if len(c.known) > samples {
			c.thin()
		}
	}
}

// thin halves the sample.
func (c *contents) thin() {
	c.shift++
	c.gone /= 2
	for h := range c.known { // each by itself, so in any order
		if !c.sampled(h) {
			delete(c.known, h)
		}
	}
}

// remove removes blocks.
func (c *contents) remove(hashes []uint64) {
	for _, h := range hashes {
		if _, known := c.known[h]; known {
			delete(c.known, h)
			c.gone++
		}
	}
}

// size returns the size of the cache in tokens; 0 if it is not known.
func (c *contents) size() int64 {
	if c.gone == 0 || c.gone < len(c.known)/8 {
		return 0
	}
	return min(int64(len(c.known))<<min(c.shift, mostShift)*c.block, mostTokens)
}
