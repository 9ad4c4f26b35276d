package graph

import (
	"encoding/binary"
	"reflect"
	"runtime"
	"testing"
	"unsafe"
)

// hostile returns the beginning of an encoding whose root points to the next object.
func hostile(c *Codec) []byte {
	return append(order.AppendUint64(nil, c.print()), 2, 0)
}

func (c *Codec) id(t reflect.Type) uint64 { return uint64(c.ids[t]) }

// Read allocates no memory for more values than the bytes can contain.
func TestAnnouncedMemoryIsNotMade(t *testing.T) {
	const rest = 1 << 20
	type wide struct{ n [100]int }
	type root struct {
		w *wide
		m map[wide]wide
	}
	c := New(&root{w: &wide{n: [100]int{}}, m: nil})
	object := binary.AppendUvarint(hostile(c), c.id(reflect.TypeFor[wide]()))
	mapping := binary.AppendUvarint(hostile(c), c.id(reflect.TypeFor[root]()))
	mapping = append(mapping, 1, 0, 1) // one root, no pointer, a map
	for name, head := range map[string][]byte{"object": object, "map": mapping} {
		text := append(binary.AppendUvarint(head, rest), make([]byte, rest)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := c.Read(text); err == nil {
			t.Errorf("%s: it was read", name)
		}
		runtime.ReadMemStats(&after)
		if made := after.TotalAlloc - before.TotalAlloc; made > 64<<20 {
			t.Errorf("%s: %d MiB were made for 1 MiB of bytes", name, made>>20)
		}
	}
}

// Nested interfaces do not need an unbounded stack, which would end the program.
func TestNestedInterfacesEnd(t *testing.T) {
	type box struct{ holds any }
	inside := box{holds: nil}
	type root struct{ box }
	c := New(&root{box: inside}, inside)
	for _, id := range []uint64{c.id(reflect.TypeFor[any]()), c.id(reflect.TypeOf(inside))} {
		text := append(binary.AppendUvarint(hostile(c), c.id(reflect.TypeFor[root]())), 1)
		for range 1 << 16 {
			text = binary.AppendUvarint(text, id+1)
		}
		text = append(text, 0)
		if _, err := c.Read(text); err == nil {
			t.Error("it was read")
		}
	}
}

// A slice cannot reach beyond a number into the pointer that follows it.
func TestSliceStaysWithinItsArray(t *testing.T) {
	type pair struct {
		n int
		p *int
	}
	type root struct {
		pair    pair
		window  []int
		numbers [3]int
	}
	c := New(&root{pair: pair{n: 0, p: nil}, window: nil})
	read := func(offset uintptr, length uint64) error {
		text := append(binary.AppendUvarint(hostile(c), c.id(reflect.TypeFor[root]())), 1, 0, 0) // the pair
		text = append(binary.AppendUvarint(append(text, 1), length), 2)
		_, err := c.Read(append(binary.AppendUvarint(text, uint64(offset)), 0, 0, 0))
		return err
	}
	numbers := unsafe.Offsetof(root{}.numbers)
	if err := read(numbers, 3); err != nil {
		t.Errorf("the whole array: %v", err)
	}
	if err := read(numbers+unsafe.Sizeof(0), 2); err != nil {
		t.Errorf("the end of the array: %v", err)
	}
	for _, bad := range []struct {
		offset uintptr
		length uint64
	}{{0, 2}, {numbers, 4}, {numbers + unsafe.Sizeof(0), 3}, {unsafe.Sizeof(root{}), 1}} {
		if read(bad.offset, bad.length) == nil {
			t.Errorf("%d numbers at %d were read", bad.length, bad.offset)
		}
	}
}

// A pointer to a value of size 0 has no address within an object.
func TestPointerToNothing(t *testing.T) {
	type root struct {
		p *struct{}
		n int
	}
	c := New(&root{p: nil, n: 0})
	text := append(binary.AppendUvarint(hostile(c), c.id(reflect.TypeFor[root]())), 1, 2, 0, 0)
	if _, err := c.Read(text); err == nil {
		t.Error("it was read")
	}
}
