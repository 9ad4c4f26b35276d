package graph

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// leaf is part of a node; other values point to it.
type leaf struct {
	n     int
	owner any
}

// twin is a leaf by another name: a pointer to a leaf may be converted to one to a twin.
type twin leaf

type shape interface{ area() int }

type square struct{ side int }

func (s *square) area() int { return s.side * s.side }

type dot struct{ name string }

func (dot) area() int { return 0 }

type node struct {
	name     string
	inner    leaf
	next     *node
	leaves   []*leaf
	items    []leaf
	window   []leaf // into items
	byName   map[string]*node
	byLeaf   map[*leaf]int
	twins    []*twin
	shape    shape
	when     time.Time
	random   *rand.Rand
	fixed    [3]leaf
	u        uint64
	f        float64
	empty    []int
	none     map[int]int
	self     map[string]map[string]int
	named    *named
	again    *named
	nothings []struct{}
	hook     func()
}

// named is encoded by name.
type named struct {
	name string
	do   func() string
}

func codec() *Codec {
	c := New((*node)(nil), (*node)(nil), (*square)(nil), dot{}, (*rand.PCG)(nil))
	Opaque(c, func(n *named) ([]byte, error) { return []byte(n.name), nil }, func(text []byte) (*named, error) {
		if len(text) == 0 {
			return nil, errors.New("no name")
		}
		return theNamed(string(text)), nil
	})
	return c
}

func theNamed(name string) *named { return &named{name, func() string { return "I am " + name }} }

func write(t *testing.T, c *Codec, n *node) []byte {
	t.Helper()
	text, err := c.Write(n)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func reread(t *testing.T, n *node) *node {
	t.Helper()
	c := codec()
	text := write(t, c, n)
	root, err := c.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	back := root.(*node)
	if again := write(t, c, back); !bytes.Equal(text, again) {
		t.Errorf("written again it is %d bytes other than %d", len(again), len(text))
	}
	if again := write(t, c, copied(t, c, n)); !bytes.Equal(text, again) {
		t.Errorf("captured and written it is %d bytes other than %d", len(again), len(text))
	}
	return back
}

// Values of every kind are decoded unchanged, including unexported fields.
func TestEverythingComesBack(t *testing.T) {
	n := &node{
		name: "a", u: 1 << 63, f: 2.5, empty: []int{}, when: time.Unix(5, 7).UTC(), shape: &square{4},
		inner: leaf{n: -3}, fixed: [3]leaf{{n: 1}, {n: 2}}, self: map[string]map[string]int{"x": {"y": 1}, "z": nil},
		nothings: make([]struct{}, 2),
	}
	back := reread(t, n)
	if !reflect.DeepEqual(n, back) {
		t.Errorf("%+v\nis not %+v", back, n)
	}
	if back.empty == nil || back.none != nil {
		t.Error("an empty value and nil were confused")
	}
	n.shape = dot{"point"}
	if got := reread(t, n).shape; got != (dot{"point"}) {
		t.Errorf("%v", got)
	}
}

// A cycle, a pointer into the middle of another value, an owner behind an interface, and two slices of one array keep
// their targets.
func TestPointersKeepTheirTargets(t *testing.T) {
	n := &node{name: "a"}
	n.next = &node{name: "b", next: n}
	n.inner.owner = n
	n.items = []leaf{{n: 1}, {n: 2}, {n: 3}}
	n.window = n.items[1:]
	n.leaves = []*leaf{&n.items[2], &n.next.inner, &n.fixed[1], nil}
	n.byName = map[string]*node{"self": n, "other": n.next}
	n.byLeaf = map[*leaf]int{&n.inner: 4, n.leaves[1]: 5}
	back := reread(t, n)
	if back.next.next != back || back.name != "a" || back.next.name != "b" {
		t.Error("the cycle is broken")
	}
	if cap(back.items) != 3 || cap(back.window) != 2 {
		t.Error("a slice has spare capacity in a foreign value")
	}
	root := back
	root.items[2].n, root.next.inner.n, root.fixed[1].n = 30, 40, 50
	if root.leaves[0].n != 30 || root.leaves[1].n != 40 || root.leaves[2].n != 50 || root.leaves[3] != nil || root.window[1].n != 30 {
		t.Errorf("%d %d %d %d", root.leaves[0].n, root.leaves[1].n, root.leaves[2].n, root.window[1].n)
	}
	if root.inner.owner.(*node) != root || root.byName["self"] != root || root.byName["other"] != root.next {
		t.Error("names and owners are others")
	}
	if root.byLeaf[&root.inner] != 4 || root.byLeaf[&root.next.inner] != 5 || len(root.byLeaf) != 2 {
		t.Errorf("%v", root.byLeaf)
	}
}

// A value that is part of another may be found before the value that contains it.
func TestContainerFoundLast(t *testing.T) {
	inside := &node{name: "container", inner: leaf{n: 9}}
	n := &node{leaves: []*leaf{&inside.inner}, next: &node{next: inside}}
	back := reread(t, n)
	if back.leaves[0] != &back.next.next.inner || back.leaves[0].n != 9 {
		t.Error("the value is no longer part of its container")
	}
}

// A pointer to a value of a type defined by another type points to the other value, whichever is found first.
func TestPointersOfADefinedType(t *testing.T) {
	n := &node{leaves: []*leaf{{n: 1}}, items: []leaf{{n: 2}}}
	n.twins = []*twin{(*twin)(n.leaves[0]), (*twin)(&n.items[0]), {n: 3}}
	back := reread(t, n)
	if (*leaf)(back.twins[0]) != back.leaves[0] || (*leaf)(back.twins[1]) != &back.items[0] || back.twins[2].n != 3 {
		t.Error("they have come apart")
	}
}

// A decoded random source continues like the original.
func TestRandomGoesOn(t *testing.T) {
	n := &node{random: rand.New(rand.NewPCG(1, 2))}
	n.random.Uint64()
	back := reread(t, n)
	for range 10 {
		if a, b := n.random.Uint64(), back.random.Uint64(); a != b {
			t.Fatalf("%d and %d", a, b)
		}
	}
}

// Values with functions are encoded by name, and equal pointers stay equal.
func TestOpaque(t *testing.T) {
	n := &node{named: theNamed("x")}
	n.again = n.named
	back := reread(t, n)
	if back.named != back.again || back.named.do() != "I am x" {
		t.Errorf("%+v", back)
	}
}

// The error names what cannot be encoded.
func TestWhatCannotBeWritten(t *testing.T) {
	if _, err := codec().Write(&node{hook: func() {}}); err == nil || !strings.Contains(err.Error(), "func()") {
		t.Errorf("a function: %v", err)
	}
	if _, err := codec().Write(&node{inner: leaf{owner: struct{ x *leaf }{}}}); err == nil || !strings.Contains(err.Error(), "struct") {
		t.Errorf("an unknown type in an interface: %v", err)
	}
	if _, err := codec().Write(&leaf{}); err == nil {
		t.Error("another root")
	}
}

// Learn registers types without a name, from an example.
func TestLearn(t *testing.T) {
	type inside struct{ l *leaf }
	n := &node{next: &node{inner: leaf{n: 4}}}
	n.inner.owner = inside{&n.next.inner}
	c := codec()
	if err := c.Learn(&node{inner: leaf{owner: inside{}}}); err != nil {
		t.Fatal(err)
	}
	root, err := c.Read(write(t, c, n))
	if err != nil {
		t.Fatal(err)
	}
	if got := root.(*node).inner.owner.(inside).l; got != &root.(*node).next.inner || got.n != 4 {
		t.Errorf("%+v", got)
	}
	if err := c.Learn(&node{hook: func() {}}); err == nil {
		t.Error("a function in an example")
	}
}

// Read refuses an encoding by a program with other types.
func TestAnotherBuild(t *testing.T) {
	text := write(t, codec(), &node{})
	if _, err := New((*node)(nil)).Read(text); !errors.Is(err, ErrOtherBuild) {
		t.Errorf("%v", err)
	}
	if _, err := codec().Read(text[:5]); err == nil {
		t.Error("five bytes")
	}
}

// FuzzRead: broken bytes cause an error and nothing else.
func FuzzRead(f *testing.F) {
	n := &node{name: "a", shape: &square{4}, items: []leaf{{n: 1}}, byName: map[string]*node{}, random: rand.New(rand.NewPCG(1, 2))}
	n.next, n.byName["x"], n.inner.owner, n.named, n.byLeaf = n, n, n, theNamed("x"), map[*leaf]int{&n.items[0]: 1}
	text, err := codec().Write(n)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text[8:])
	f.Fuzz(func(t *testing.T, rest []byte) { readBroken(t, text, rest) })
}

// TestReadBroken changes each byte of an encoded graph in turn.
func TestReadBroken(t *testing.T) {
	n := &node{name: "a", shape: &square{4}, items: []leaf{{n: 1}}, byName: map[string]*node{}, random: rand.New(rand.NewPCG(1, 2))}
	n.next, n.byName["x"], n.inner.owner, n.named, n.byLeaf = n, n, n, theNamed("x"), map[*leaf]int{&n.items[0]: 1}
	text := write(t, codec(), n)
	for i := 8; i < len(text); i++ {
		for b := range 256 {
			broken := bytes.Clone(text[8:])
			broken[i-8] = byte(b)
			readBroken(t, text, broken)
		}
		readBroken(t, text, text[8:i])
	}
}

func readBroken(t *testing.T, whole, rest []byte) {
	t.Helper()
	if back, err := codec().Read(append(bytes.Clone(whole[:8]), rest...)); err == nil {
		if back.(*node) == nil {
			t.Fatal("no root, and no error")
		}
		_, _ = codec().Write(back) // the decoded value is a graph
	}
}

// BenchmarkWrite encodes 10,000 nodes.
func BenchmarkWrite(b *testing.B) {
	root := &node{byName: map[string]*node{}}
	for i := range 10_000 {
		n := &node{name: strings.Repeat("x", i%40), next: root.next, items: make([]leaf, 1)}
		n.inner.owner = n
		root.next = n
	}
	c := codec()
	for b.Loop() {
		if _, err := c.Write(root); err != nil {
			b.Fatal(err)
		}
	}
}
