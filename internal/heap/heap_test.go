package heap

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

type numbered struct {
	key    Key
	number int32
}

func (n *numbered) Key() Key { return n.key }

func (n *numbered) Handle() *int32 { return &n.number }

// The heap equals a sorted list after any push, change and removal, also across the rollover of values.
func TestHeapIsASortedList(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	key := func() Key { return Key{Value: ^uint64(0) - 20 + random.Uint64N(40), Seq: random.Uint64()} }
	before := func(a, b *numbered) int {
		return cmp.Or(cmp.Compare(int64(a.key.Value+40), int64(b.key.Value+40)), cmp.Compare(a.key.Seq, b.key.Seq))
	}
	for range 300 {
		var h Heap[*numbered]
		var list []*numbered
		for range random.IntN(400) {
			switch n := random.IntN(10); {
			case n < 5 || len(list) == 0:
				x := &numbered{key: key()}
				list = append(list, x)
				h.Push(x)
			case n < 7:
				x := list[random.IntN(len(list))]
				x.key = key()
				h.Fix(x)
			case n < 9:
				i := random.IntN(len(list))
				h.Remove(list[i])
				if h.Contains(list[i]) || h.Holds(list[i]) {
					t.Fatal("a removed value is still there")
				}
				list = slices.Delete(list, i, i+1)
			default:
				for _, x := range list {
					x.key = key()
				}
				h.FixAll()
			}
			if err := h.Problem(); err != nil {
				t.Fatal(err)
			}
			if h.Len() != len(list) || len(slices.Collect(h.All())) != len(list) {
				t.Fatalf("%d elements, want %d", h.Len(), len(list))
			}
			sorted := slices.SortedFunc(slices.Values(list), before)
			looks, stop := 0, 1+random.IntN(10)
			h.Least(func(x *numbered) bool {
				if x != sorted[looks] {
					t.Fatalf("%d. of the least is another one", looks)
				}
				looks++
				return looks < stop
			})
			if looks != min(stop, 8, len(list)) {
				t.Fatalf("it looks at %d of %d, want %d or 8", looks, len(list), stop)
			}
			if len(list) > 0 && (h.Min() != slices.MinFunc(list, before) || h.MinKey() != h.Min().key) {
				t.Fatal("another one is the least")
			}
		}
		slices.SortFunc(list, before)
		for _, want := range list {
			if got := h.Min(); got != want {
				t.Fatalf("%v comes out, want %v", got.key, want.key)
			}
			h.Remove(want)
		}
	}
}

// A walk over the elements below a key visits all of them, parents first, and no children of other elements.
func TestWalk(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var h Heap[*numbered]
		n := random.IntN(300)
		for _, i := range random.Perm(n) {
			h.Push(&numbered{key: Key{Seq: uint64(i)}})
		}
		to, visited, wanted := random.IntN(n+1), 0, 0
		h.Walk(func(x *numbered) bool {
			visited++
			if int(x.key.Seq) < to {
				wanted++
				return true
			}
			return false
		})
		if wanted != to || visited > arity*to+1 {
			t.Fatalf("of %d: %d of %d wanted were visited, and %d in all", n, wanted, to, visited)
		}
	}
}

// The first acceptable element is the least of the acceptable ones, and few others are visited.
func TestFirstThatWillDo(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var h Heap[*numbered]
		n := random.IntN(300)
		for _, i := range random.Perm(n) {
			h.Push(&numbered{key: Key{Seq: uint64(i)}})
		}
		from := random.IntN(n + 20)
		looked := 0
		got := h.First(func(x *numbered) bool {
			looked++
			return int(x.key.Seq) >= from
		})
		if want := from < n; (got != nil) != want || want && got.key.Seq != uint64(from) {
			t.Fatalf("from %d of %d: %+v", from, n, got)
		}
		if looked > min(n, arity*(from+1)) {
			t.Fatalf("from %d of %d: looked at %d", from, n, looked)
		}
	}
}
