package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// cached returns an engine of easy steps with a KV cache of blocks of 4 tokens.
func cached(blocks int) Config {
	cfg := roundSteps(4)
	cfg.BlockSize, cfg.Blocks = 4, blocks
	return cfg
}

func TestACachedPrefixIsNotComputedAgain(t *testing.T) {
	s := newScript(t, cached(100))
	s.submit(Job{Prompt: 10, Output: 1, Blocks: []uint64{1, 2, 3}})
	s.advance(time.Second)
	s.submit(Job{Prompt: 14, Output: 1, Blocks: []uint64{1, 2, 7}})
	s.advance(time.Second)
	// All 10 tokens: 10 + 2 + 9. Then the 6 that follow two full blocks: 10 + 2 + 5.
	s.want("21: 1 finished", "1017: 2 finished")
	if l := s.e.Load(); l.PromptTokens != 24 || l.CachedTokens != 8 {
		t.Errorf("%d of %d tokens cached, want 8 of 24", l.CachedTokens, l.PromptTokens)
	}
}

func TestTheLastTokenIsAlwaysComputed(t *testing.T) {
	s := newScript(t, cached(100))
	for range 2 {
		s.submit(Job{Prompt: 8, Output: 1, Blocks: []uint64{1, 2}})
		s.advance(time.Second)
	}
	// Its second block is cached too, but gives no token: 4 are computed.
	s.want("19: 1 finished", "1015: 2 finished")
}

func TestAPartOfAPromptIsSharedWhileTheRestIsComputed(t *testing.T) {
	cfg := cached(100)
	cfg.TokenBudget = 8
	s := newScript(t, cfg)
	s.submit(Job{Prompt: 16, Output: 1, Blocks: []uint64{1, 2, 3, 4}})
	s.submit(Job{Prompt: 9, Output: 1, Blocks: []uint64{1, 2}})
	s.advance(time.Second)
	// The first takes the whole budget twice. By then the second's two blocks are cached, and one token is left to
	// compute.
	s.want("38: 1 finished", "50: 2 finished")
}

func TestFirstTokenIsAnEvent(t *testing.T) {
	s := newScript(t, cached(100))
	s.submit(Job{Prompt: 5, Output: 100, First: true})
	s.advance(10 * time.Second)
	s.want("16: 1 has 1", "1204: 1 finished")
}

func TestEvictionTakesTheDeepestOfTheOldest(t *testing.T) {
	s := newScript(t, cached(6))
	run := func(want, prompt int, blocks ...uint64) {
		t.Helper()
		before := s.e.Load().CachedTokens
		s.submit(Job{Prompt: prompt, Output: 1, Blocks: blocks})
		s.advance(time.Second)
		if got := int(s.e.Load().CachedTokens - before); got != want {
			t.Errorf("%d tokens of blocks %v were cached, want %d", got, blocks, want)
		}
	}
	run(0, 13, 1, 2, 3)
	run(0, 9, 11, 12)      // with its third block six are in use: nothing has to go
	run(12, 13, 1, 2, 3)   // now 11 and 12 are the oldest
	run(0, 9, 21, 22)      // takes the free block, 12 and 11
	run(12, 13, 1, 2, 3)   // and these were kept
	run(0, 13, 31, 32, 33) // takes the free block, 22, 21 and 3
	run(8, 13, 1, 2, 3)
}

func TestABlockInUseIsNotEvicted(t *testing.T) {
	s := newScript(t, cached(9))
	s.submit(Job{Prompt: 9, Output: 12, Blocks: []uint64{1, 2}}) // holds 3 blocks, and then 5
	s.advance(20 * ms)
	for i := range uint64(3) {
		s.submit(Job{Prompt: 9, Output: 1, Blocks: []uint64{100 + 2*i, 101 + 2*i}})
		s.advance(40 * ms)
	}
	before := s.e.Load().CachedTokens
	s.submit(Job{Prompt: 9, Output: 1, Blocks: []uint64{1, 2}})
	s.advance(40 * ms)
	if got := s.e.Load().CachedTokens - before; got != 8 {
		t.Errorf("%d tokens cached of a prompt that another one is using, want 8", got)
	}
}

// naiveCache is the cache in simple form: the hashes present, their holders, and the time of the last release.
type naiveCache struct {
	size, total int
	holders     map[uint64]int
	released    map[uint64]int // of those without a holder
	clock       int
	own         map[*sequence]int      // blocks that no other sequence can find
	held        map[*sequence][]uint64 // blocks that others can find
	full        map[*sequence]int      // blocks that were filled so far
}

func (n *naiveCache) used() int {
	used := len(n.holders)
	for _, own := range n.own {
		used += own
	}
	return used
}

func (n *naiveCache) makeRoom() {
	for n.used()+len(n.released) > n.total && len(n.released) > 0 {
		var oldest uint64
		for hash, at := range n.released {
			if oldest == 0 || at < n.released[oldest] {
				oldest = hash
			}
		}
		delete(n.released, oldest)
	}
}

// prefix returns the number of cached blocks of a prompt.
func (n *naiveCache) prefix(s *sequence) int {
	for i, hash := range s.Blocks {
		_, kept := n.released[hash]
		if (n.holders[hash] == 0 && !kept) || (i+1)*n.size > s.Prompt-1 {
			return i
		}
	}
	return len(s.Blocks)
}

func (n *naiveCache) hold(s *sequence, blocks []uint64) {
	for _, hash := range blocks {
		delete(n.released, hash)
		n.holders[hash]++
		n.held[s] = append(n.held[s], hash)
	}
}

// computed records that the tokens of a sequence up to one exist.
func (n *naiveCache) computed(s *sequence, tokens int) {
	n.own[s] = (tokens+n.size-1)/n.size - len(n.held[s])
	n.makeRoom()
	for i, hash := range s.Blocks {
		_, kept := n.released[hash]
		if i < n.full[s] || (i+1)*n.size > min(tokens, s.Prompt) {
			continue
		}
		n.full[s] = i + 1
		if !kept && n.holders[hash] == 0 {
			n.hold(s, []uint64{hash})
			n.own[s]--
		}
	}
}

func (n *naiveCache) leave(s *sequence) {
	for _, hash := range slices.Backward(n.held[s]) {
		if n.holders[hash]--; n.holders[hash] == 0 {
			delete(n.holders, hash)
			n.clock++
			n.released[hash] = n.clock
		}
	}
	delete(n.held, s)
	delete(n.own, s)
	delete(n.full, s)
}

// The cache finds, holds and evicts the same as the naive one.
func TestCacheAgainstOracle(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		total := 8 + rng.IntN(30)
		k := newKVCache(4, total)
		n := &naiveCache{
			size: 4, total: total, holders: map[uint64]int{}, released: map[uint64]int{},
			own: map[*sequence]int{}, held: map[*sequence][]uint64{}, full: map[*sequence]int{},
		}
		var live []*sequence
		for range 300 {
			switch rng.IntN(3) {
			case 0:
				s := &sequence{Job: Job{Prompt: 1 + rng.IntN(24), Output: 1, Blocks: randomBlocks(rng)}}
				cached := n.prefix(s)
				scheduled, ok := k.admit(s, 6)
				if !ok {
					if free := total - n.used(); free >= 6 {
						t.Fatalf("seed %d: no room for %d tokens, but %d blocks are free", seed, s.Prompt, free)
					}
					continue
				}
				if s.cached != cached*4 || scheduled != min(6, s.Prompt-s.cached) {
					t.Fatalf("seed %d: %d cached and %d to compute of %d, want %d cached", seed, s.cached, scheduled, s.Prompt, cached*4)
				}
				n.hold(s, s.Blocks[:cached])
				n.full[s] = cached
				n.computed(s, s.cached+scheduled)
				s.computed += scheduled
				live = append(live, s)
			case 1:
				if len(live) == 0 {
					continue
				}
				s := live[rng.IntN(len(live))]
				more := 1 + rng.IntN(8)
				if k.grow(s, s.computed+more) {
					s.computed += more
					n.computed(s, s.computed)
				}
			case 2:
				if len(live) == 0 {
					continue
				}
				i := rng.IntN(len(live))
				k.free(live[i])
				n.leave(live[i])
				live = slices.Delete(live, i, i+1)
			}
			if k.used != n.used() || k.kept != len(n.released) || k.used > k.total {
				t.Fatalf("seed %d: %d used and %d kept of %d, want %d and %d", seed, k.used, k.kept, k.total, n.used(), len(n.released))
			}
			for hash := range k.byHash {
				if _, kept := n.released[hash]; !kept && n.holders[hash] == 0 {
					t.Fatalf("seed %d: block %d is known, and was evicted", seed, hash)
				}
			}
		}
	}
}

// Changes of blocks are reported in order, once, and add up to the cache's content. A running sequence never has an
// empty cache.
func TestBlockChanges(t *testing.T) {
	cfg := Reference()
	cfg.Blocks, cfg.BlockSize, cfg.Slots = 8, 16, 2
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e.WatchBlocks()
	now := time.Unix(1000, 0)
	has := map[uint64]bool{}
	removed, cleared := 0, 0
	take := func() {
		for _, c := range e.BlockChanges() {
			switch c.Kind {
			case Stored:
				if has[c.Hash] || c.Parent != 0 && !has[c.Parent] {
					t.Errorf("%+v beside %v", c, has)
				}
				has[c.Hash] = true
			case Removed:
				if !has[c.Hash] {
					t.Errorf("%+v beside %v", c, has)
				}
				delete(has, c.Hash)
				removed++
			case Cleared:
				clear(has)
				cleared++
			}
		}
		if len(has) != len(e.cache.byHash) {
			t.Errorf("%d blocks by the changes, and %d in the cache", len(has), len(e.cache.byHash))
		}
	}
	for i := range uint64(20) {
		e.Submit(now, Job{Prompt: 48, Output: 1, Blocks: []uint64{100 + i%3, 200 + i, 300 + i}})
		if e.ResetCache() {
			t.Error("the cache of a running sequence is reset")
		}
		for {
			next, some := e.Next()
			if !some {
				break
			}
			now = next
			e.Advance(now)
			take()
		}
	}
	if removed == 0 || len(has) == 0 {
		t.Errorf("%d removed, %d left", removed, len(has))
	}
	if !e.ResetCache() {
		t.Error("an idle cache is not reset")
	}
	if take(); cleared != 1 || len(has) > 0 {
		t.Errorf("cleared %d times, %d left", cleared, len(has))
	}
}
