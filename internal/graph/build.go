package graph

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"time"
	"unsafe"
)

// Changes are how a built graph differs from the captured one. A nil function changes nothing.
type Changes struct {
	// Time is called with each time.
	Time func(time.Time) time.Time
	// Key is called with each text of a field with the tag `graph:"key"`: a string, the elements of a slice or the keys of a
	// map.
	Key func(string) string
}

// builder makes a graph of the copies.
type builder struct {
	*Capture
	Changes
	kept []captured // in order of address, none within another
}

// Build returns the root of the captured graph, in which every pointer points into the copies. It may be called once, after
// Take.
func (k *Capture) Build(c Changes) (root any, err error) {
	b := &builder{Capture: k, Changes: c}
	first := k.objects[0].at
	if b.kept, err = outermost(k.objects); err != nil {
		return nil, err
	}
	for _, m := range k.maps {
		m.made = reflect.MakeMapWithSize(m.ref.t, m.keys.Len())
	}
	for i := range b.kept {
		o := &b.kept[i]
		if err := b.fix(o.copy, o.plan, o.count); err != nil {
			return nil, err
		}
	}
	for _, m := range k.maps {
		if err := b.fill(m); err != nil {
			return nil, err
		}
	}
	at, err := b.moved(first)
	if err != nil {
		return nil, err
	}
	return reflect.NewAt(k.root.elem.t, at).Interface(), nil
}

// outermost returns the objects in order of address, without those within others.
func outermost[O any, P interface {
	*O
	fmt.Stringer
	span() (at, size uintptr)
}](objects []O) ([]O, error) {
	slices.SortStableFunc(objects, func(a, b O) int {
		at, size := P(&a).span()
		other, another := P(&b).span()
		return cmp.Or(cmp.Compare(at, other), cmp.Compare(another, size))
	})
	kept := objects[:0]
	end := uintptr(0)
	for _, o := range objects {
		at, size := P(&o).span()
		switch {
		case at >= end:
			kept = append(kept, o)
			end = at + size
		case at+size > end:
			return nil, fmt.Errorf("graph: %v and %v overlap", P(&kept[len(kept)-1]), P(&o))
		}
	}
	return kept, nil
}

// moved returns the copy of the value at an address.
func (b *builder) moved(at uintptr) (unsafe.Pointer, error) {
	i := sort.Search(len(b.kept), func(i int) bool { return b.kept[i].at > at }) - 1
	if i >= 0 {
		if begin, size := b.kept[i].span(); at-begin < size {
			return unsafe.Add(b.kept[i].copy, at-begin), nil
		}
	}
	return nil, errChanged
}

// errChanged is the error of a reference to something that Take has not seen.
var errChanged = errors.New("graph: it has changed while it was captured")

// nowhere is where slices without elements point to, so that they share no memory with the captured graph.
var nowhere struct{}

// fix makes the references in count consecutive copies point to copies.
func (b *builder) fix(at unsafe.Pointer, p *plan, count int) error {
	if len(p.refs) == 0 {
		return nil
	}
	for n := range count {
		for i := range p.refs {
			r := &p.refs[i]
			if err := b.ref(unsafe.Add(at, uintptr(n)*p.t.Size()+r.offset), r); err != nil {
				return err
			}
		}
	}
	return nil
}

// ref makes one reference point to a copy, or changes it.
func (b *builder) ref(slot unsafe.Pointer, r *ref) (err error) {
	switch r.kind {
	case toValue:
		if to := (*unsafe.Pointer)(slot); *to != nil {
			*to, err = b.moved(uintptr(*to))
		}
	case toValues:
		return b.values(slot, r)
	case toMap:
		to := *(*unsafe.Pointer)(slot)
		if to == nil {
			break
		}
		m := b.maps[to]
		if m == nil {
			return errChanged
		}
		reflect.NewAt(r.t, slot).Elem().Set(m.made)
	case boxed:
		return b.unbox(slot, r)
	case text:
		if b.Key != nil {
			s := (*string)(slot)
			*s = b.Key(*s)
		}
	case moment:
		if b.Time != nil {
			t := (*time.Time)(slot)
			*t = b.Time(*t)
		}
	case omitted:
		reflect.NewAt(r.t, slot).Elem().SetZero()
	case mustBeNil:
	}
	return err
}

// values makes a slice point to copies. Its capacity is its length.
func (b *builder) values(slot unsafe.Pointer, r *ref) (err error) {
	s := (*header)(slot)
	s.cap = s.len
	switch {
	case s.data == nil:
		return nil
	case s.len == 0:
		s.data = unsafe.Pointer(&nowhere)
		return nil
	}
	if s.data, err = b.moved(uintptr(s.data)); err != nil || !r.key || b.Key == nil {
		return err
	}
	texts := (*[]string)(slot)
	*texts = slices.Clone(*texts) // another slice may share them, and change them too
	for i, t := range *texts {
		(*texts)[i] = b.Key(t)
	}
	return nil
}

// unbox makes what an interface contains point to copies.
func (b *builder) unbox(slot unsafe.Pointer, r *ref) error {
	v := reflect.NewAt(r.t, slot).Elem()
	if v.IsNil() {
		return nil
	}
	if inside, is := b.boxes[slot]; is {
		if err := b.fix(inside.Addr().UnsafePointer(), b.planOf(inside.Type()), 1); err != nil {
			return err
		}
		v.Set(inside)
		return nil
	}
	inside := v.Elem()
	if p := b.planOf(inside.Type()); len(p.refs) > 0 && !inside.IsNil() { // a pointer
		at, err := b.moved(inside.Pointer())
		if err != nil {
			return err
		}
		v.Set(reflect.NewAt(inside.Type().Elem(), at))
	}
	return nil
}

// fill puts the entries into a map.
func (b *builder) fill(m *capturedMap) error {
	if err := b.fix(m.keys.UnsafePointer(), m.ref.keys, m.keys.Len()); err != nil {
		return err
	}
	if err := b.fix(m.values.UnsafePointer(), m.ref.elem, m.values.Len()); err != nil {
		return err
	}
	for i := range m.keys.Len() {
		key := m.keys.Index(i)
		if m.key && b.Key != nil {
			key.SetString(b.Key(key.String()))
		}
		m.made.SetMapIndex(key, m.values.Index(i))
	}
	return nil
}
