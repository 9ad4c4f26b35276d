package graph

import (
	"reflect"
	"time"
	"unsafe"
)

// plan is how a capture copies the values of one type.
type plan struct {
	t      reflect.Type
	number uint32
	refs   []ref  // in one value
	parts  []part // of it, which pointers may point to: they need no copies of their own

	// The memory of further copies: a slice of this type, of which the first used elements are taken.
	memory unsafe.Pointer
	size   int
	used   int

	from, to       header // of the copy that is being made
	source, target reflect.Value
}

// part is a struct within a value.
type part struct {
	offset uintptr
	plan   *plan
}

// header is a slice in memory.
type header struct {
	data     unsafe.Pointer
	len, cap int
}

// ref is a part of a value that its copy must not share, or that changes.
type ref struct {
	kind   refKind
	key    bool // a text, the texts in a slice, or the keys of a map are keys
	offset uintptr
	t      reflect.Type
	elem   *plan // of the values that a pointer or a slice points to, or of a map's
	keys   *plan // of a map's keys

	inside reflect.Type // of what the interface that was met last contains
	held   *plan        // and its plan
}

type refKind uint8

const (
	toValue  refKind = iota // a pointer
	toValues                // a slice
	toMap
	boxed   // an interface
	text    // a string that is a key
	moment  // a time
	omitted // left out
	mustBeNil
)

// The values of the tag "graph" of a struct's field.
const (
	tagOmitted = "-"
	tagKey     = "key"
)

var timeType = reflect.TypeFor[time.Time]()

// planOf returns the plan of a type.
func (k *Capture) planOf(t reflect.Type) *plan {
	p := k.plans[t]
	if p == nil {
		p = &plan{t: t, number: uint32(len(k.plans))}
		k.plans[t] = p
		slice := reflect.SliceOf(t)
		p.source = reflect.NewAt(slice, unsafe.Pointer(&p.from)).Elem()
		p.target = reflect.NewAt(slice, unsafe.Pointer(&p.to)).Elem()
		k.refsOf(p, t, 0, "")
	}
	return p
}

// refsOf adds the references in a part of a value to its plan.
func (k *Capture) refsOf(p *plan, t reflect.Type, offset uintptr, tag string) {
	r := ref{offset: offset, t: t, key: tag == tagKey}
	add := func(kind refKind) {
		r.kind = kind
		p.refs = append(p.refs, r)
	}
	switch kind := t.Kind(); {
	case tag == tagOmitted:
		add(omitted)
	case t == timeType:
		add(moment)
	case kind == reflect.String && r.key:
		add(text)
	case kind == reflect.Pointer && t.Elem().Size() > 0 && k.codec.opaque[t].write == nil:
		r.elem = k.planOf(t.Elem())
		add(toValue)
	case kind == reflect.Slice && t.Elem().Size() > 0:
		r.elem = k.planOf(t.Elem())
		add(toValues)
	case kind == reflect.Map:
		r.keys, r.elem = k.planOf(t.Key()), k.planOf(t.Elem())
		add(toMap)
	case kind == reflect.Interface:
		add(boxed)
	case kind == reflect.Func || kind == reflect.Chan || kind == reflect.UnsafePointer:
		add(mustBeNil)
	case kind == reflect.Struct:
		if _, pointed := k.codec.ids[reflect.PointerTo(t)]; pointed && t != p.t {
			p.parts = append(p.parts, part{offset, k.planOf(t)})
		}
		for f := range t.Fields() {
			k.refsOf(p, f.Type, offset+f.Offset, f.Tag.Get("graph"))
		}
	case kind == reflect.Array:
		for i := range t.Len() {
			k.refsOf(p, t.Elem(), offset+uintptr(i)*t.Elem().Size(), tag)
		}
	default:
	}
}

// mostAhead bounds the memory that a plan takes for copies to come, in bytes.
const mostAhead = 64 << 10

// copyOf returns a copy of n consecutive values. What they point to is shared.
func (p *plan) copyOf(at unsafe.Pointer, n int) unsafe.Pointer {
	each := p.t.Size()
	if p.size-p.used < n {
		p.size = max(n, min(2*p.size, mostAhead/int(each)), 1)
		p.memory, p.used = reflect.MakeSlice(p.source.Type(), p.size, p.size).UnsafePointer(), 0
	}
	to := unsafe.Add(p.memory, uintptr(p.used)*each)
	p.used += n
	p.from, p.to = header{at, n, n}, header{to, n, n}
	reflect.Copy(p.target, p.source)
	return to
}
