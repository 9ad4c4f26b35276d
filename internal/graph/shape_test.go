package graph

import (
	"bytes"
	"reflect"
	"runtime"
	"testing"
)

// tree is a map that can contain itself.
type tree map[string]tree

// Two fields that share a map still share it after decoding, even if the map contains itself.
func TestSharedMaps(t *testing.T) {
	type holder struct {
		a, b, other map[string]int
		self        tree
	}
	h := &holder{a: map[string]int{"x": 1}, other: map[string]int{"x": 1}, self: tree{}}
	h.b, h.self["me"] = h.a, h.self
	back := through(t, h)
	back.a["y"] = 2
	if len(back.a) != 2 || len(back.b) != 2 || len(back.other) != 1 {
		t.Errorf("%v, %v and %v", back.a, back.b, back.other)
	}
	back.self["you"] = nil
	if len(back.self["me"]["me"]) != 2 {
		t.Errorf("%d entries in the map that holds itself", len(back.self["me"]))
	}
}

// A pointer to the first of several values, or to a first field, points into the larger value, which may be found
// later.
func TestPointersToTheFirst(t *testing.T) {
	type outer struct {
		first  leaf
		second int
	}
	type holder struct {
		one   *leaf
		field *leaf
		part  []leaf
		all   []leaf
		whole *outer
	}
	all, whole := []leaf{{n: 1}, {n: 2}}, &outer{leaf{n: 3}, 4}
	back := through(t, &holder{&all[0], &whole.first, all[:1:1], all, whole})
	back.all[0].n, back.whole.first.n = 10, 30
	if back.one.n != 10 || back.part[0].n != 10 || back.all[1].n != 2 || back.field.n != 30 || back.whole.second != 4 {
		t.Errorf("%+v, %+v, %+v, %+v", back, back.one, back.field, back.whole)
	}
}

// A value that only an array's element or a map's key points to is decoded too.
func TestFoundThroughOneWay(t *testing.T) {
	type holder struct {
		array [2]struct{ to *leaf }
		keys  map[*leaf]int
	}
	h := &holder{keys: map[*leaf]int{{n: 5}: 6}}
	h.array[1].to = &leaf{n: 7}
	back := through(t, h)
	if back.array[1].to.n != 7 || len(back.keys) != 1 {
		t.Errorf("%+v", back)
	}
	for key, value := range back.keys {
		if key.n != 5 || value != 6 {
			t.Errorf("%d at %d", value, key.n)
		}
	}
}

// Two slices that overlap, without a value that contains both, cannot be encoded.
func TestOverlap(t *testing.T) {
	type holder struct{ a, b []leaf }
	all := make([]leaf, 3)
	if _, err := New((*holder)(nil)).Write(&holder{all[:2], all[1:]}); err == nil {
		t.Error("overlapping slices were written")
	}
}

// through encodes and decodes a value.
func through[T any](t *testing.T, v *T) *T {
	t.Helper()
	c := New((*T)(nil))
	text, err := c.Write(v)
	if err != nil {
		t.Fatal(err)
	}
	back, err := c.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Write(copied(t, c, v)); err != nil || !bytes.Equal(text, again) {
		t.Errorf("captured and written it is %d bytes other than %d (%v)", len(again), len(text), err)
	}
	return back.(*T)
}

// A type whose fields have other names or types under the same name has another fingerprint.
func TestChangedTypes(t *testing.T) {
	prints := map[uint64]string{}
	for name, c := range map[string]*Codec{
		"fields":         func() *Codec { type s struct{ A, B int }; return New((*s)(nil), "", uint32(0)) }(),
		"fields swapped": func() *Codec { type s struct{ B, A int }; return New((*s)(nil), "", uint32(0)) }(),
		"a number":       func() *Codec { type n int32; return New((*n)(nil), "", uint32(0)) }(),
		"without sign":   func() *Codec { type n uint32; return New((*n)(nil), "", uint32(0)) }(),
		"a float":        func() *Codec { type n float32; return New((*n)(nil), "", uint32(0)) }(),
		"texts": func() *Codec {
			type l []string
			type s struct {
				T string
				N uint32
				L l
			}
			return New((*s)(nil))
		}(),
		"numbers": func() *Codec {
			type l []uint32
			type s struct {
				T string
				N uint32
				L l
			}
			return New((*s)(nil))
		}(),
		"by text": func() *Codec {
			type m map[string]uint32
			type s struct {
				T string
				N uint32
				M m
			}
			return New((*s)(nil))
		}(),
		"by number": func() *Codec {
			type m map[uint32]string
			type s struct {
				T string
				N uint32
				M m
			}
			return New((*s)(nil))
		}(),
		"more to learn": func() *Codec { type s struct{ A, B int }; return New((*s)(nil), "", uint32(0), uint8(0)) }(),
	} {
		if other, same := prints[c.print()]; same {
			t.Errorf("%s has the fingerprint of %s", name, other)
		}
		prints[c.print()] = name
	}
	c := New((*node)(nil))
	before := c.print()
	if err := c.Learn(&node{shape: dot{}}); err != nil || c.print() == before {
		t.Errorf("a learned type is not in the fingerprint: %v", err)
	}
}

// A reference to an object that does not exist, or into the middle of a value, is refused.
func TestBrokenReferences(t *testing.T) {
	type item struct {
		Next *item
		n    int
	}
	type list struct {
		items []item
		p     *item
	}
	c := New((*list)(nil))
	l := &list{items: []item{{n: 5}, {n: 6}}}
	l.p = &l.items[1]
	text, err := c.Write(l)
	if err != nil {
		t.Fatal(err)
	}
	size := byte(16)
	from := bytes.Index(text, []byte{3, size}) // p: the second object, an item's size into it
	if from < 0 {
		t.Fatalf("% x", text)
	}
	for offset := range 256 {
		text[from+1] = byte(offset)
		back, err := c.Read(text)
		if valid := offset == 0 || offset == int(size); valid != (err == nil) && offset < 128 {
			t.Errorf("at offset %d: %v", offset, err)
		} else if valid && back.(*list).p != &back.(*list).items[offset/int(size)] {
			t.Errorf("offset %d is elsewhere", offset)
		}
	}
}

// A number that does not fit its type is refused, and so is a map key that cannot be a key.
func TestBrokenNumbers(t *testing.T) {
	type unsigned struct{ n uint8 }
	type signed struct{ n int8 }
	for _, c := range []struct {
		codec *Codec
		value any
	}{{New((*unsigned)(nil)), &unsigned{255}}, {New((*signed)(nil)), &signed{-128}}} {
		text, err := c.codec.Write(c.value)
		if err != nil {
			t.Fatal(err)
		}
		text[len(text)-1]++ // of the two bytes 0xff 0x01
		if _, err := c.codec.Read(text); err == nil {
			t.Errorf("%T of more than its type holds", c.value)
		}
	}
	type keyed struct{ m map[any]int }
	c := New((*keyed)(nil), 0, []int(nil))
	text, err := c.Write(&keyed{map[any]int{0: 0}})
	if err != nil {
		t.Fatal(err)
	}
	for at := 8; at < len(text); at++ {
		for b := range 20 {
			broken := append(bytes.Clone(text), 0)
			broken[at] = byte(b)
			_, _ = c.Read(broken) // it does not panic
		}
	}
}

// A length is refused if the remaining bytes cannot contain that many values.
func TestFewBytesMakeNoLargeGraph(t *testing.T) {
	type large struct{ A [1 << 20]int64 }
	type holder struct {
		All  []large
		sets map[string]struct{}
		Hook func()
	}
	c := New((*holder)(nil))
	text := order.AppendUint64(nil, c.print())
	text = append(text, 2, 0, 0, 1, 1, 100, 3, 0, 0, byte(c.ids[reflect.TypeFor[large]()]), 100) // 100 large ones: 800 MiB
	text = append(text, make([]byte, 200)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := c.Read(text); err == nil {
		t.Error("100 values of 8 MiB out of 200 bytes")
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("%d bytes were allocated for 200", after.TotalAlloc-before.TotalAlloc)
	}
	h := &holder{sets: map[string]struct{}{"": {}, "x": {}, "y": {}}}
	if back := through(t, h); len(back.sets) != 3 {
		t.Errorf("%v", back.sets)
	}
}

// A reference to an opaque value of another type is refused.
func TestOpaqueOfAnotherType(t *testing.T) {
	type pair struct {
		a *named
		b *square
	}
	c := New((*pair)(nil))
	Opaque(c, func(n *named) ([]byte, error) { return []byte(n.name), nil },
		func(text []byte) (*named, error) { return theNamed(string(text)), nil })
	Opaque(c, func(*square) ([]byte, error) { return nil, nil }, func([]byte) (*square, error) { return &square{}, nil })
	text, err := c.Write(&pair{theNamed("x"), &square{}})
	if err != nil {
		t.Fatal(err)
	}
	if back, err := c.Read(text); err != nil || back.(*pair).a.name != "x" || back.(*pair).b == nil {
		t.Fatalf("%+v, %v", back, err)
	}
	if text[len(text)-2] = 2; text[len(text)-1] != 0 { // b: the opaque value that was first, instead of a new one
		t.Fatalf("% x", text)
	}
	if _, err := c.Read(text[:len(text)-1]); err == nil {
		t.Error("a square that is a named")
	}
}
