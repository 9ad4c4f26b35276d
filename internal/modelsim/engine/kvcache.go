package engine

import "slices"

// kvCache is the memory of the engine, in blocks of tokens. A block is held by one or several sequences, kept for its
// content without a holder, or free. A full prompt block with a known hash is reusable: sequences whose prompts begin
// with the same blocks share it, also later. Kept blocks are evicted when their room is needed, the one released
// longest ago first. Of one sequence the deepest goes first, so the beginning of its prompt stays.
type kvCache struct {
	blockSize, total int
	used, peak       int // held blocks; a shared one counts once

	known     []block // [0] is the end of the list of kept blocks: its newer is the oldest, its older the newest
	vacant    []int32 // free indexes in known
	byHash    map[uint64]int32
	kept      int // number of known blocks without a holder
	evictions uint64

	found []int32 // result of the last find

	watched bool // changes are recorded
	changes []BlockChange
}

// block is a block with known content.
type block struct {
	hash         uint64
	holders      int32
	older, newer int32 // its neighbours among the kept ones
}

func newKVCache(blockSize, total int) kvCache {
	return kvCache{blockSize: blockSize, total: total, known: make([]block, 1), byHash: map[uint64]int32{}}
}

// blocksFor returns the number of blocks for the tokens.
func blocksFor(tokens, blockSize int) int { return (tokens + blockSize - 1) / blockSize }

// admit gives a sequence without blocks the cached blocks at the beginning of its prompt, and blocks for its tokens in
// the next step: at least one, and at most budget. It returns the number of these tokens. Without room ok is false, and
// nothing changes.
func (k *kvCache) admit(s *sequence, budget int) (scheduled int, ok bool) {
	if k.total == 0 {
		return min(s.missing(), budget), true
	}
	idle := k.find(s)
	cached := len(k.found) * k.blockSize
	scheduled = min(s.Prompt+s.produced-cached, budget)
	more := blocksFor(cached+scheduled, k.blockSize) - len(k.found)
	if k.used+idle+more > k.total {
		return 0, false
	}
	for _, id := range k.found {
		if k.known[id].holders == 0 {
			k.unlink(id)
			k.used++
		}
		k.known[id].holders++
	}
	s.shared = append(s.shared[:0], k.found...)
	s.blocks, s.published, s.computed = len(k.found), len(k.found), cached
	if !s.ran {
		s.cached = cached
	}
	k.take(more)
	s.blocks += more
	k.publish(s, cached+scheduled)
	return scheduled, true
}

// find sets found to the cached blocks at the beginning of the sequence's prompt, and returns the number of those
// without a holder.
func (k *kvCache) find(s *sequence) (idle int) {
	k.found = k.found[:0]
	most := min((s.Prompt+s.produced-1)/k.blockSize, s.Prompt/k.blockSize, len(s.Blocks))
	for _, hash := range s.Blocks[:most] {
		id, ok := k.byHash[hash]
		if !ok {
			break
		}
		if k.known[id].holders == 0 {
			idle++
		}
		k.found = append(k.found, id)
	}
	return idle
}

// grow gives the sequence blocks for the given number of tokens. It reports whether there was room; if not, nothing
// changes.
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
	k.publish(s, tokens)
	return true
}

// fits reports whether every sequence of the batch has room for this many more computed tokens.
func (k *kvCache) fits(batch []*sequence, more int) bool {
	if k.total == 0 {
		return true
	}
	free := k.total - k.used
	for _, s := range batch {
		if free -= max(blocksFor(s.computed+more, k.blockSize)-s.blocks, 0); free < 0 {
			return false
		}
	}
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

// take marks free blocks as held, and evicts others for them.
func (k *kvCache) take(blocks int) {
	k.used += blocks
	k.peak = max(k.peak, k.used)
	for k.kept > 0 && k.used+k.kept > k.total {
		id := k.known[0].newer
		k.unlink(id)
		k.evict(id)
	}
}

// evict frees a kept block.
func (k *kvCache) evict(id int32) {
	hash := k.known[id].hash
	delete(k.byHash, hash)
	k.vacant = append(k.vacant, id)
	k.evictions++
	if k.watched {
		k.changes = append(k.changes, BlockChange{Kind: Removed, Hash: hash})
	}
}

// reset evicts all blocks, unless some are held.
func (k *kvCache) reset() bool {
	if k.used > 0 {
		return false
	}
	watched := k.watched
	k.watched = false // one change covers all blocks
	for k.kept > 0 {
		id := k.known[0].newer
		k.unlink(id)
		k.evict(id)
	}
	if k.watched = watched; watched {
		k.changes = append(k.changes, BlockChange{Kind: Cleared})
	}
	return true
}

// publish makes the blocks within the first tokens of the sequence's prompt reusable. If two sequences compute the same
// block at the same time, the second's stays private.
func (k *kvCache) publish(s *sequence, tokens int) {
	full := min(min(tokens, s.Prompt)/k.blockSize, len(s.Blocks))
	for ; s.published < full; s.published++ {
		hash := s.Blocks[s.published]
		if _, taken := k.byHash[hash]; taken {
			continue
		}
		id := int32(len(k.known))
		if n := len(k.vacant); n > 0 {
			id = k.vacant[n-1]
			k.vacant = k.vacant[:n-1]
		} else {
			k.known = append(k.known, block{})
		}
		k.known[id] = block{hash: hash, holders: 1}
		k.byHash[hash] = id
		s.shared = append(s.shared, id)
		if k.watched {
			change := BlockChange{Kind: Stored, Hash: hash}
			if s.published > 0 {
				change.Parent = s.Blocks[s.published-1]
			}
			k.changes = append(k.changes, change)
		}
	}
}

// free releases all of the sequence's blocks.
func (k *kvCache) free(s *sequence) {
	k.used -= s.blocks - len(s.shared)
	for _, id := range slices.Backward(s.shared) {
		b := &k.known[id]
		if b.holders--; b.holders == 0 {
			k.used--
			k.link(id)
		}
	}
	s.blocks, s.published, s.shared = 0, 0, s.shared[:0]
}

// link makes a block the newest of the kept ones.
func (k *kvCache) link(id int32) {
	last := k.known[0].older
	k.known[id].older, k.known[id].newer = last, 0
	k.known[last].newer, k.known[0].older = id, id
	k.kept++
}

// unlink removes a block from the kept ones.
func (k *kvCache) unlink(id int32) {
	b := k.known[id]
	k.known[b.older].newer, k.known[b.newer].older = b.newer, b.older
	k.kept--
}

// usage returns the used fraction, 0 to 1.
func (k *kvCache) usage() float64 {
	if k.total == 0 {
		return 0
	}
	return min(float64(k.used)/float64(k.total), 1)
}
