package prefix

import (
	"runtime"
	"testing"
)

// BenchmarkMatch measures a look-up: in a pool of 2,000 that all share the first 4 KiB it may take 50 µs.
func BenchmarkMatch(b *testing.B) {
	for _, c := range []struct {
		name       string
		endpoints  int
		deep, long int // how many have the whole prompt, and of how many blocks it is
	}{{"8-endpoints/400-blocks", 8, 8, 400}, {"100-endpoints/100-blocks", 100, 10, 100}, {"2000-endpoints/share-4-blocks", 2000, 0, 4}, {"2000-endpoints/share-4-of-100-blocks", 2000, 20, 100}, {"2000-endpoints/half-have-100-blocks", 2000, 1000, 100}} {
		b.Run(c.name, func(b *testing.B) {
			x, ids := newIndex(c.endpoints, 0)
			for i, id := range ids {
				x.put(blocks(1, 4, 0, 4), id)
				if i < c.deep {
					x.put(blocks(1, 4, 7, c.long), id)
				}
			}
			p := blocks(1, 4, 7, c.long+1)
			b.ReportAllocs()
			for b.Loop() {
				x.Match(p, ids)
			}
		})
	}
}

// BenchmarkPlace measures a grant's part: a prompt of 400 blocks of which half is new.
func BenchmarkPlace(b *testing.B) {
	x, _ := newIndex(8, 0)
	i := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		i++
		x.put(blocks(1, 200, i, 400), 3)
	}
}

// TestMemory fills the index for 100 endpoints with a million KV tokens each, with prompts that nobody shares.
func TestMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	x, ids := newIndex(100, 1_000_000)
	for i := range uint64(80) {
		for _, id := range ids {
			x.put(blocks(1+i<<20+uint64(id), 0, 1, 100), id)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := x.Size().Nodes; n != 100*(2_000_000/256) {
		t.Errorf("%d nodes", n)
	}
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 40<<20 {
		t.Errorf("%d bytes", used)
	}
	runtime.KeepAlive(x)
}
