package graph

import (
	"fmt"
	"math/bits"
	"reflect"
	"unsafe"
)

// Capture copies a graph in two steps: Take copies the memory, and Build makes a graph of the copies. Only Take needs the
// graph to stand still, and it is fast: it knows each type beforehand, and follows pointers without resolving them. Values
// behind opaque pointers are shared. A field with the tag `graph:"-"` is left out: the copy has its zero value.
type Capture struct {
	codec   *Codec
	plans   map[reflect.Type]*plan
	root    ref
	objects []captured
	seen    []address // a hash table; its size is a power of two
	used    int       // the number of addresses in it
	looked  int       // the number of objects of which the references were followed
	maps    map[unsafe.Pointer]*capturedMap
	boxes   map[unsafe.Pointer]reflect.Value // the values in interfaces that are no pointers, by the interface's copy
}

// address is count consecutive values that were copied, or a part of such a value.
type address struct {
	at    uintptr
	plan  uint32
	count uint32
}

// captured is count consecutive values and their copies.
type captured struct {
	at    uintptr
	count int
	plan  *plan
	copy  unsafe.Pointer
}

func (o *captured) span() (at, size uintptr) { return o.at, o.plan.t.Size() * uintptr(o.count) }

func (o *captured) String() string { return fmt.Sprintf("%d of %v", o.count, o.plan.t) }

// capturedMap is the content of a map. Keys and values are not where pointers point to.
type capturedMap struct {
	ref          *ref
	key          bool // its keys are keys
	keys, values reflect.Value
	made         reflect.Value
}

// NewCapture returns a capture of one graph, whose root is a pointer like root.
func (c *Codec) NewCapture(root any) *Capture {
	k := &Capture{
		codec: c, plans: map[reflect.Type]*plan{}, maps: map[unsafe.Pointer]*capturedMap{}, boxes: map[unsafe.Pointer]reflect.Value{},
	}
	for _, t := range c.types {
		k.planOf(t)
	}
	t := reflect.TypeOf(root)
	k.root = ref{kind: toValue, t: t, elem: k.planOf(t.Elem())}
	return k
}

// Take copies everything that is reachable from root, to which pointers to about n values lead. The error names the value that cannot
// be copied.
func (k *Capture) Take(root any, n int) error {
	k.objects = make([]captured, 0, n/2)
	k.seen = make([]address, 1<<bits.Len(uint(2*n)))
	k.object(reflect.ValueOf(root).UnsafePointer(), k.root.elem, 1)
	for ; k.looked < len(k.objects); k.looked++ {
		o := &k.objects[k.looked]
		if err := k.look(o.copy, o.plan, o.count); err != nil {
			return err
		}
	}
	return nil
}

// object copies count consecutive values, unless they were copied before.
func (k *Capture) object(at unsafe.Pointer, p *plan, count int) {
	if !k.see(address{uintptr(at), p.number, uint32(count)}) {
		return
	}
	k.objects = append(k.objects, captured{uintptr(at), count, p, p.copyOf(at, count)})
	if count == 1 {
		for _, part := range p.parts {
			k.see(address{uintptr(at) + part.offset, part.plan.number, 1})
		}
	}
}

// see notes an address, and reports whether it was not noted before.
func (k *Capture) see(a address) bool {
	mask := uint64(len(k.seen) - 1)
	i := uint64(a.at) * 0x9e3779b97f4a7c15 >> 32 & mask // by the golden ratio
	for ; k.seen[i].at != 0; i = (i + 1) & mask {
		if k.seen[i] == a {
			return false
		}
	}
	k.seen[i] = a
	if k.used++; 2*k.used > len(k.seen) {
		before := k.seen
		k.seen, k.used = make([]address, 2*len(before)), 0
		for _, a := range before {
			if a.at != 0 {
				k.see(a)
			}
		}
	}
	return true
}

// look follows the references in the copies of count consecutive values.
func (k *Capture) look(at unsafe.Pointer, p *plan, count int) error {
	if len(p.refs) == 0 {
		return nil
	}
	for n := range count {
		for i := range p.refs {
			r := &p.refs[i]
			if err := k.follow(unsafe.Add(at, uintptr(n)*p.t.Size()+r.offset), r); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow follows one reference.
func (k *Capture) follow(slot unsafe.Pointer, r *ref) error {
	switch r.kind {
	case toValue:
		if to := *(*unsafe.Pointer)(slot); to != nil {
			k.object(to, r.elem, 1)
		}
	case toValues:
		if s := (*header)(slot); s.len > 0 {
			k.object(s.data, r.elem, s.len)
		}
	case toMap:
		return k.mapping(slot, r)
	case boxed:
		return k.box(slot, r)
	case mustBeNil:
		if *(*unsafe.Pointer)(slot) != nil {
			return fmt.Errorf("graph: a %v that is not nil", r.t)
		}
	case text, moment, omitted:
	}
	return nil
}

// mapping copies the content of a map.
func (k *Capture) mapping(slot unsafe.Pointer, r *ref) error {
	at := *(*unsafe.Pointer)(slot)
	if at == nil {
		return nil
	}
	if m := k.maps[at]; m != nil {
		m.key = m.key || r.key
		return nil
	}
	v := reflect.NewAt(r.t, slot).Elem()
	n := v.Len()
	m := &capturedMap{
		ref: r, key: r.key, keys: reflect.MakeSlice(r.keys.source.Type(), n, n), values: reflect.MakeSlice(r.elem.source.Type(), n, n),
	}
	k.maps[at] = m
	entries := v.MapRange()
	for i := 0; entries.Next(); i++ {
		m.keys.Index(i).SetIterKey(entries)
		m.values.Index(i).SetIterValue(entries)
	}
	if err := k.look(m.keys.UnsafePointer(), r.keys, n); err != nil {
		return err
	}
	return k.look(m.values.UnsafePointer(), r.elem, n)
}

// box follows what an interface contains.
func (k *Capture) box(slot unsafe.Pointer, r *ref) error {
	v := reflect.NewAt(r.t, slot).Elem()
	if v.IsNil() {
		return nil
	}
	inside := v.Elem()
	if t := inside.Type(); t != r.inside {
		if _, known := k.codec.ids[t]; !known {
			return fmt.Errorf("graph: %v in a %v is none of the types that the codec was made with", t, r.t)
		}
		r.inside, r.held = t, k.planOf(t)
	}
	switch p := r.held; {
	case len(p.refs) == 0: // it never changes
	case inside.Kind() == reflect.Pointer && inside.IsNil():
	case inside.Kind() == reflect.Pointer:
		k.object(inside.UnsafePointer(), p.refs[0].elem, 1)
	default:
		inside = addressable(inside)
		k.boxes[slot] = inside
		return k.look(inside.Addr().UnsafePointer(), p, 1)
	}
	return nil
}
