package dispatch

import (
	"fmt"
	"reflect"
	"time"
	"unsafe"

	"github.com/weir-epp/weir/pkg/fairqueue"
	"github.com/weir-epp/weir/pkg/stock"
)

// memory is a copy of all objects reachable from a world at one moment. To go back, every object is overwritten in
// place, so pointers stay valid, even into the middle of structures; objects made since are dropped. That is several
// times faster than replaying from the beginning.
type memory struct {
	saved []saved
	seen  map[object]struct{}
	plans map[reflect.Type]*plan
}

// saved is one object, one slice's elements, or one map.
type saved struct {
	is, was reflect.Value
	in      *plan // the plan that was comes from; nil: was was made for this
}

type object struct {
	at unsafe.Pointer
	of *plan
}

// plan is how to follow the pointers in values of one type, which may lie in saved objects.
type plan struct {
	of      reflect.Type
	follow  func(at unsafe.Pointer) // nil: nothing
	element *plan                   // of a pointer, a slice or a map; nil: not made yet
	spare   []reflect.Value         // to save objects in
}

// constant are types whose values never change in place.
var constant = map[reflect.Type]bool{
	reflect.TypeFor[time.Time]():        true,
	reflect.TypeFor[Config]():           true,
	reflect.TypeFor[fairqueue.Config](): true,
	reflect.TypeFor[stock.Config]():     true,
	reflect.TypeFor[scene]():            true,
	reflect.TypeFor[Regrouping]():       true,
	reflect.TypeFor[scratch]():          true,
}

// keep replaces the memory by the world's current state.
func (m *memory) keep(w *world) {
	if m.seen == nil {
		m.seen, m.plans = map[object]struct{}{}, map[reflect.Type]*plan{}
	}
	for _, s := range m.saved {
		if s.in != nil {
			s.in.spare = append(s.in.spare, s.was)
		}
	}
	clear(m.saved)
	m.saved = m.saved[:0]
	clear(m.seen)
	m.object(unsafe.Pointer(w), m.plan(reflect.TypeFor[world]()))
}

// back restores the world.
func (m *memory) back() {
	for _, s := range m.saved {
		switch {
		case s.in != nil:
			s.is.Set(s.was)
		case s.is.Kind() == reflect.Slice:
			reflect.Copy(s.is, s.was)
		default:
			s.is.Clear()
			if s.was.IsValid() {
				for i := s.was.MapRange(); i.Next(); {
					s.is.SetMapIndex(i.Key(), i.Value())
				}
			}
		}
	}
}

// object saves the object at an address.
func (m *memory) object(at unsafe.Pointer, p *plan) {
	key := object{at, p}
	if _, known := m.seen[key]; known {
		return
	}
	m.seen[key] = struct{}{}
	s := saved{is: reflect.NewAt(p.of, at).Elem(), in: p}
	if last := len(p.spare) - 1; last >= 0 {
		s.was, p.spare = p.spare[last], p.spare[:last]
	} else {
		s.was = reflect.New(p.of).Elem()
	}
	s.was.Set(s.is)
	m.saved = append(m.saved, s)
	if p.follow != nil {
		p.follow(at)
	}
}

// slice saves the n elements of the slice at an address.
func (m *memory) slice(at unsafe.Pointer, n int, of reflect.Type, element *plan) {
	v := reflect.NewAt(of, at).Elem()
	s := saved{is: v.Slice(0, n), was: reflect.MakeSlice(of, n, n)}
	reflect.Copy(s.was, s.is)
	m.saved = append(m.saved, s)
	if element.follow != nil {
		for i := range n {
			element.follow(unsafe.Add(v.UnsafePointer(), uintptr(i)*element.of.Size()))
		}
	}
}

// table saves the map at an address.
func (m *memory) table(at unsafe.Pointer, of reflect.Type, element *plan) {
	v := reflect.NewAt(of, at).Elem()
	s := saved{is: reflect.ValueOf(v.Interface())} // this map itself, not the variable's later value
	if v.Len() > 0 {
		s.was = reflect.MakeMapWithSize(of, v.Len())
		for i := v.MapRange(); i.Next(); {
			s.was.SetMapIndex(i.Key(), i.Value())
			if element.follow != nil {
				value := reflect.New(element.of)
				value.Elem().Set(i.Value())
				element.follow(value.UnsafePointer())
			}
		}
	}
	m.saved = append(m.saved, s)
}

// behind returns the plan of the elements, made when needed: types may contain themselves by pointers, slices and maps.
func (p *plan) behind(m *memory) *plan {
	if p.element == nil {
		p.element = m.plan(p.of.Elem())
	}
	return p.element
}

// plan is made once for each type.
func (m *memory) plan(of reflect.Type) *plan {
	p := m.plans[of]
	if p != nil {
		return p
	}
	p = &plan{of: of}
	m.plans[of] = p
	if constant[of] {
		return p
	}
	switch of.Kind() {
	case reflect.Struct:
		type field struct {
			offset uintptr
			follow func(unsafe.Pointer)
		}
		var fields []field
		for f := range of.Fields() {
			if follow := m.plan(f.Type).follow; follow != nil {
				fields = append(fields, field{f.Offset, follow})
			}
		}
		if len(fields) > 0 {
			p.follow = func(at unsafe.Pointer) {
				for _, f := range fields {
					f.follow(unsafe.Add(at, f.offset))
				}
			}
		}
	case reflect.Array:
		if element := m.plan(of.Elem()); element.follow != nil {
			p.follow = func(at unsafe.Pointer) {
				for i := range of.Len() {
					element.follow(unsafe.Add(at, uintptr(i)*element.of.Size()))
				}
			}
		}
	case reflect.Pointer:
		if !constant[of.Elem()] {
			p.follow = func(at unsafe.Pointer) {
				if to := *(*unsafe.Pointer)(at); to != nil {
					m.object(to, p.behind(m))
				}
			}
		}
	case reflect.Slice:
		p.follow = func(at unsafe.Pointer) {
			if n := len(*(*[]struct{})(at)); n > 0 {
				m.slice(at, n, of, p.behind(m))
			}
		}
	case reflect.Map:
		p.follow = func(at unsafe.Pointer) {
			if *(*unsafe.Pointer)(at) != nil {
				m.table(at, of, p.behind(m))
			}
		}
	case reflect.Interface:
		p.follow = func(at unsafe.Pointer) {
			if to := reflect.NewAt(of, at).Elem().Elem(); to.Kind() == reflect.Pointer && !constant[to.Type().Elem()] {
				m.object(to.UnsafePointer(), m.plan(to.Type().Elem()))
			}
		}
	case reflect.Chan, reflect.UnsafePointer:
		panic(fmt.Sprintf("%v: what is behind it cannot be kept", of))
	default: // numbers, strings, and functions, whose variables are reached in other ways
	}
	return p
}
