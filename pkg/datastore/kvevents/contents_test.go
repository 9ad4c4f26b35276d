package kvevents

import (
	"math/rand/v2"
	"testing"

	"github.com/weir-epp/weir/internal/splitmix"
)

func hashesOf(from, to int) (hashes []uint64) {
	for i := from; i < to; i++ {
		hashes = append(hashes, splitmix.Mix(uint64(i)))
	}
	return hashes
}

// A number that does not follow the last one is a gap, and a gap forgets all.
func TestSequence(t *testing.T) {
	var c contents
	for i, s := range []struct {
		n   uint64
		gap bool
	}{{7, false}, {8, false}, {9, false}, {11, true}, {12, false}, {12, true}, {0, true}, {1, false}, {1<<64 - 1, true}, {0, false}} {
		c.store(hashesOf(0, 10), 16)
		if gap := c.sequence(s.n); gap != s.gap {
			t.Errorf("message %d, number %d: gap is %v", i, s.n, gap)
		}
		if s.gap != (len(c.known) == 0) {
			t.Errorf("message %d: %d blocks are known", i, len(c.known))
		}
	}
}

// The size of a cache that keeps the last n blocks is found whatever it is, within some percents, and not before it is full.
func TestSize(t *testing.T) {
	for _, blocks := range []int{20, 1000, 1024, 5000, 40_000, 250_000} {
		var c contents
		for i := range 3 * blocks {
			if i >= blocks {
				c.remove(hashesOf(i-blocks, i-blocks+1))
			}
			c.store(hashesOf(i, i+1), 16)
			if i < blocks && c.size() != 0 {
				t.Fatalf("%d blocks: a size of %d after %d", blocks, c.size(), i)
			}
			if len(c.known) > samples {
				t.Fatalf("%d blocks are kept", len(c.known))
			}
		}
		if got, want := c.size(), int64(16*blocks); got < want*85/100 || got > want*115/100 || blocks <= samples && got != want {
			t.Errorf("%d blocks: a size of %d, want %d", blocks, got, want)
		}
	}
}

// Blocks that are reported again do not count again, and those that were stored before anybody listened not at all.
func TestSizeCountsBlocksOnce(t *testing.T) {
	var c contents
	lot := rand.New(rand.NewPCG(1, 2))
	const blocks = 500
	for i := blocks; i < 5*blocks; i++ {
		c.remove(hashesOf(i-blocks, i-blocks+1)) // at first those of before
		c.store(hashesOf(i, i+1), 16)
		for range 3 { // reused
			if at := max(i-blocks+2, blocks) + lot.IntN(blocks/2); at <= i {
				c.store(hashesOf(at, at+1), 16)
			}
		}
	}
	if got := c.size(); got != 16*blocks {
		t.Errorf("a size of %d, want %d", got, 16*blocks)
	}
}

// A size is no more than any cache has, whatever an engine says.
func TestSizeIsBounded(t *testing.T) {
	c := contents{shift: 60, known: map[uint64]struct{}{}}
	var hashes []uint64
	for i := range uint64(16) {
		hashes = append(hashes, i)
	}
	c.store(hashes, mostBlock)
	c.remove(hashes[:8])
	if got := c.size(); got != mostTokens {
		t.Errorf("a size of %d, want %d", got, int64(mostTokens))
	}
}
