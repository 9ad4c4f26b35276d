package graph

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// object is a piece of memory with pointers to it: count consecutive values of a type.
type object struct {
	at    uintptr
	t     reflect.Type
	count int
	value reflect.Value // of the first one, addressable
	index int           // in the order of writing; -1: not yet
}

func (o *object) size() uintptr { return o.t.Size() * uintptr(o.count) }

// finder finds every reachable object.
type finder struct {
	codec   *Codec
	seen    map[seenKey]bool
	maps    map[unsafe.Pointer]bool
	objects []object
	plain   map[reflect.Type]bool
	next    []reflect.Value // to be visited
	learn   bool            // types in interfaces
}

func newFinder(c *Codec) *finder {
	return &finder{codec: c, seen: map[seenKey]bool{}, maps: map[unsafe.Pointer]bool{}, plain: map[reflect.Type]bool{}}
}

type seenKey struct {
	at    uintptr
	t     reflect.Type
	count int
}

// find returns the objects in order of address, without objects within others.
func (c *Codec) find(root reflect.Value) ([]object, error) {
	f := newFinder(c)
	if err := f.all(root); err != nil {
		return nil, err
	}
	slices.SortStableFunc(f.objects, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.size(), a.size()))
	})
	kept := f.objects[:0]
	for _, o := range f.objects {
		if n := len(kept); n > 0 {
			last := &kept[n-1]
			end := last.at + last.size()
			if o.at < end && o.at+o.size() <= end {
				continue // within it
			}
			if o.at < end {
				return nil, fmt.Errorf("graph: %d of %v and %d of %v overlap", last.count, last.t, o.count, o.t)
			}
		}
		kept = append(kept, o)
	}
	return kept, nil
}

// all visits all values reachable from v.
func (f *finder) all(v reflect.Value) error {
	for f.next = append(f.next, v); len(f.next) > 0; {
		v := f.next[len(f.next)-1]
		f.next = f.next[:len(f.next)-1]
		if err := f.look(v); err != nil {
			return err
		}
	}
	return nil
}

func (f *finder) isPlain(t reflect.Type) bool {
	is, known := f.plain[t]
	if !known {
		is = plain(t)
		f.plain[t] = is
	}
	return is
}

// object records count consecutive values of a type, beginning at first.
func (f *finder) object(first reflect.Value, count int) {
	at := first.Addr().Pointer()
	key := seenKey{at, first.Type(), count}
	if f.seen[key] || first.Type().Size() == 0 {
		return
	}
	f.seen[key] = true
	f.objects = append(f.objects, object{at: at, t: first.Type(), count: count, value: first, index: -1})
	if !f.isPlain(first.Type()) {
		for i := range count {
			f.next = append(f.next, element(first, i))
		}
	}
}

// element returns the i-th of the consecutive values that begin at first.
func element(first reflect.Value, i int) reflect.Value {
	if i == 0 {
		return first
	}
	return reflect.NewAt(first.Type(), unsafe.Add(first.Addr().UnsafePointer(), uintptr(i)*first.Type().Size())).Elem()
}

// look visits one value.
func (f *finder) look(v reflect.Value) error {
	t := v.Type()
	if f.isPlain(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		if _, is := f.codec.opaque[t]; !is && !v.IsNil() {
			f.object(exposed(v).Elem(), 1)
		}
	case reflect.Slice:
		if v.Len() > 0 {
			f.object(exposed(v).Index(0), v.Len())
		}
	case reflect.Map:
		if v.IsNil() || f.maps[v.UnsafePointer()] {
			return nil
		}
		f.maps[v.UnsafePointer()] = true
		for entries := exposed(v).MapRange(); entries.Next(); {
			for _, part := range []reflect.Value{entries.Key(), entries.Value()} {
				if err := f.look(addressable(part)); err != nil {
					return err
				}
			}
		}
	case reflect.Interface:
		if v.IsNil() {
			return nil
		}
		inside := addressable(exposed(v).Elem())
		if f.learn {
			f.codec.fingerprint = 0
			f.codec.add(inside.Type())
		}
		return f.look(inside)
	case reflect.Struct:
		for i := range t.NumField() {
			if err := f.look(field(v, i)); err != nil {
				return err
			}
		}
	case reflect.Array:
		for i := range t.Len() {
			if err := f.look(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		if !v.IsNil() {
			return fmt.Errorf("graph: a %v that is not nil", t)
		}
	default:
	}
	return nil
}

// exposed returns an addressable value without the restriction of unexported fields.
func exposed(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
}

// addressable returns an addressable copy of a value from a map or an interface.
func addressable(v reflect.Value) reflect.Value {
	p := reflect.New(v.Type()).Elem()
	p.Set(v)
	return p
}

// field returns a field of a struct.
func field(v reflect.Value, i int) reflect.Value { return exposed(v.Field(i)) }
