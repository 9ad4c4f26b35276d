package graph

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"reflect"
)

// Codec encodes and decodes graphs of one root type.
type Codec struct {
	root        reflect.Type // of the root's target
	types       []reflect.Type
	ids         map[reflect.Type]int
	opaque      map[reflect.Type]opaque // by pointer type
	fingerprint uint64
}

// opaque encodes and decodes values behind pointers of one type.
type opaque struct {
	write func(pointer any) ([]byte, error)
	read  func(text []byte) (any, error)
}

// New returns a codec for graphs whose root is a pointer like root. concrete are values of, or pointers to, types in
// the graph's interfaces that its static types do not name.
func New(root any, concrete ...any) *Codec {
	c := &Codec{root: reflect.TypeOf(root).Elem(), ids: map[reflect.Type]int{}, opaque: map[reflect.Type]opaque{}}
	c.add(c.root)
	for _, v := range concrete {
		c.add(reflect.TypeOf(v))
	}
	return c
}

// Learn registers the types in an example's interfaces, including types that cannot be named. It returns Write's error
// for the example.
func (c *Codec) Learn(example any) error {
	f := newFinder(c)
	f.learn = true
	return f.all(addressable(reflect.ValueOf(example)))
}

// Opaque registers write and read for pointers of one type: write encodes such a pointer, and read decodes it. Equal
// pointers stay equal.
func Opaque[T any](c *Codec, write func(*T) ([]byte, error), read func([]byte) (*T, error)) {
	c.opaque[reflect.TypeFor[*T]()] = opaque{
		func(p any) ([]byte, error) { return write(p.(*T)) },
		func(text []byte) (any, error) { return read(text) },
	}
}

// add registers a type and all its component types.
func (c *Codec) add(t reflect.Type) {
	if _, known := c.ids[t]; known {
		return
	}
	c.ids[t] = len(c.types)
	c.types = append(c.types, t)
	if _, is := c.opaque[t]; is {
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		c.add(t.Elem())
	case reflect.Map:
		c.add(t.Key())
		c.add(t.Elem())
	case reflect.Struct:
		for field := range t.Fields() {
			c.add(field.Type)
		}
	default:
	}
}

// print returns the fingerprint of all registered types: their names, fields and order.
func (c *Codec) print() uint64 {
	if c.fingerprint != 0 {
		return c.fingerprint
	}
	h := fnv.New64a()
	for _, t := range c.types {
		_, _ = fmt.Fprintf(h, "%s %s %v %d;", t.PkgPath(), t, t.Kind(), t.Size())
		switch t.Kind() { // a name does not describe the type's structure
		case reflect.Struct:
			for f := range t.Fields() {
				_, _ = fmt.Fprintf(h, "%s %s %d,", f.Name, f.Type, f.Offset)
			}
		case reflect.Map:
			_, _ = fmt.Fprintf(h, "%s %s,", t.Key(), t.Elem())
		case reflect.Pointer, reflect.Slice, reflect.Array:
			_, _ = fmt.Fprintf(h, "%s,", t.Elem())
		default:
		}
	}
	c.fingerprint = h.Sum64() | 1
	return c.fingerprint
}

// plain reports whether values of the type contain no references, so that they can be encoded in place.
func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.String:
		return false
	case reflect.Array:
		return plain(t.Elem())
	case reflect.Struct:
		for field := range t.Fields() {
			if !plain(field.Type) {
				return false
			}
		}
	default:
	}
	return true
}

// leastSize returns the smallest size of an encoded value of the type, in bytes.
func leastSize(t reflect.Type) uint64 {
	switch t.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return 0
	case reflect.Float32, reflect.Float64:
		return 8
	case reflect.Slice:
		return 2
	case reflect.Array:
		return uint64(t.Len()) * leastSize(t.Elem())
	case reflect.Struct:
		sum := uint64(0)
		for field := range t.Fields() {
			sum += leastSize(field.Type)
		}
		return sum
	default:
		return 1
	}
}

var order = binary.LittleEndian
