package graph

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// copied returns a copy of a graph.
func copied[T any](t *testing.T, c *Codec, v *T) *T {
	t.Helper()
	return built[T](t, take(t, c, v), Changes{})
}

func take[T any](t *testing.T, c *Codec, v *T) *Capture {
	t.Helper()
	k := c.NewCapture(v)
	if err := k.Take(v, 0); err != nil {
		t.Fatal(err)
	}
	return k
}

func built[T any](t *testing.T, k *Capture, changes Changes) *T {
	t.Helper()
	root, err := k.Build(changes)
	if err != nil {
		t.Fatal(err)
	}
	return root.(*T)
}

// A change of the graph after Take does not affect the copy, and a change of the copy does not affect the graph.
func TestCaptureIsACopy(t *testing.T) {
	example := func() *node {
		n := &node{name: "a", items: append(make([]leaf, 0, 8), leaf{n: 1}, leaf{n: 2}), shape: &square{4}, empty: make([]int, 0, 8), fixed: [3]leaf{{n: 5}}}
		n.next, n.leaves = &node{name: "b"}, []*leaf{{n: 3, owner: (*node)(nil)}, &n.inner, &n.items[1]}
		n.inner.owner, n.byName, n.byLeaf = n.next, map[string]*node{"self": n}, map[*leaf]int{&n.items[0]: 1}
		n.self = map[string]map[string]int{"x": {"y": 1}}
		return n
	}
	change := func(n *node) {
		n.shape.(*square).side++
		n.leaves[0].n++
		n.items[0].n++
		n.leaves[2].n++
		n.inner.owner.(*node).name = "c"
		n.byName["another"] = n.next
		n.byLeaf[n.leaves[0]] = 2
		n.self["x"]["z"] = 3
		n.empty = append(n.empty, len(n.empty)+n.leaves[0].n)
		n.fixed[0].n++
		n.name, n.leaves = "d", nil
	}
	n, c := example(), codec()
	want := write(t, c, n)
	k := take(t, c, n)
	change(n)
	back := built[node](t, k, Changes{})
	if !bytes.Equal(write(t, c, back), want) {
		t.Errorf("the copy has changed: %+v", back)
	}
	before, room := write(t, c, n), cap(back.empty)
	change(back)
	if got := n.empty[:1][0]; got != 4 {
		t.Errorf("an element that was appended to the copy is in the graph: %d", got)
	}
	if !bytes.Equal(write(t, c, n), before) {
		t.Error("the graph has changed with the copy")
	}
	if cap(back.items) != len(back.items) || room != 0 {
		t.Error("there is room behind a slice")
	}
}

// A graph of any size is captured, whatever the announced number of values.
func TestCaptureGrows(t *testing.T) {
	c := codec()
	for _, announced := range []int{0, 100, 10_000} {
		var n *node
		for i := range 3000 {
			n = &node{name: fmt.Sprint(i), next: n, items: make([]leaf, i%3)}
		}
		k := c.NewCapture(n)
		if err := k.Take(n, announced); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(write(t, c, built[node](t, k, Changes{})), write(t, c, n)) {
			t.Errorf("%d announced: the copy is another graph", announced)
		}
	}
}

// keyed has keys and times, and fields of other types.
type keyed struct {
	key     string `graph:"key"`
	other   string
	under   []string          `graph:"key"`
	same    []string          `graph:"key"`
	plain   []string          // the same values, which are not keys here
	byKey   map[string]*keyed `graph:"key"`
	shared  map[string]*keyed `graph:"key"`
	plainly map[string]string
	owner   any       `graph:"-"`
	notes   *[]func() `graph:"-"`
	at      time.Time
	times   []time.Time
	next    *keyed
}

// Build changes each key and each time once, and no other value.
func TestBuildChanges(t *testing.T) {
	names := []string{"a", "b"}
	v := &keyed{key: "a", other: "a", under: names, same: names, plain: names, plainly: map[string]string{"a": "a"}}
	v.byKey = map[string]*keyed{"a": v, "b": nil}
	v.shared, v.owner, v.notes = v.byKey, func() {}, new([]func())
	v.at, v.times, v.next = time.Unix(1, 0), []time.Time{time.Unix(2, 0)}, &keyed{key: "b"}
	c := New((*keyed)(nil))
	got := built[keyed](t, take(t, c, v), Changes{
		Key:  func(key string) string { return key + "!" },
		Time: func(t time.Time) time.Time { return t.Add(time.Hour) },
	})
	renamed := []string{"a!", "b!"}
	if got.key != "a!" || got.other != "a" || got.next.key != "b!" || got.plainly["a"] != "a" {
		t.Errorf("%+v, %+v", got, got.next)
	}
	if !slices.Equal(got.under, renamed) || !slices.Equal(got.same, renamed) || !slices.Equal(got.plain, names) {
		t.Errorf("%v, %v, %v", got.under, got.same, got.plain)
	}
	if len(got.byKey) != 2 || got.byKey["a!"] != got || reflect.ValueOf(got.byKey).Pointer() != reflect.ValueOf(got.shared).Pointer() {
		t.Errorf("%v, %v", got.byKey, got.shared)
	}
	if got.owner != nil || got.notes != nil {
		t.Error("a foreign value was copied")
	}
	if !got.at.Equal(time.Unix(3601, 0)) || !got.times[0].Equal(time.Unix(3602, 0)) {
		t.Errorf("%v, %v", got.at, got.times)
	}
	if v.key != "a" || names[0] != "a" || len(v.byKey) != 2 || v.byKey["a"] != v {
		t.Errorf("the graph has changed: %+v", v)
	}
}

// The error names what cannot be captured.
func TestWhatCannotBeCaptured(t *testing.T) {
	for want, n := range map[string]*node{
		"func()": {hook: func() {}}, "struct": {inner: leaf{owner: struct{ x *leaf }{}}},
	} {
		if err := codec().NewCapture(n).Take(n, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	type holder struct{ a, b []leaf }
	all := make([]leaf, 3)
	k := take(t, New((*holder)(nil)), &holder{all[:2], all[1:]})
	if _, err := k.Build(Changes{}); err == nil || !strings.Contains(err.Error(), "2 of graph.leaf and 2 of graph.leaf overlap") {
		t.Errorf("overlapping slices: %v", err)
	}
}
