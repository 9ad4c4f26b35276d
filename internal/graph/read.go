package graph

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"unsafe"
)

// reader decodes writer's bytes. It sets pointers after all objects exist, and then fills maps.
type reader struct {
	codec   *Codec
	in      []byte
	objects []object
	later   []func() error // set a pointer, a slice or an interface
	fill    []func() error // put an entry into a map
	maps    []reflect.Value
	opaques []any
	depth   int                     // of nested interfaces
	least   map[reflect.Type]uint64 // leastSize
}

// mostNested bounds the depth of nested interfaces, and so the stack for reading.
const mostNested = 64

// errShort is the error for a graph that ends too early or contains impossible numbers.
var errShort = errors.New("graph: broken")

// ErrOtherBuild is the error for a graph encoded by a program with other types.
var ErrOtherBuild = errors.New("graph: it was written by another build of the program")

// Read decodes a graph encoded by Write, and returns its root. It returns ErrOtherBuild if the types differ.
func (c *Codec) Read(text []byte) (root any, err error) {
	if len(text) < 8 || order.Uint64(text) != c.print() {
		return nil, ErrOtherBuild
	}
	r := &reader{codec: c, in: text[8:], least: map[reflect.Type]uint64{}}
	pointer := reflect.New(reflect.PointerTo(c.root)).Elem()
	if err := r.value(pointer); err != nil {
		return nil, err
	}
	for len(r.in) > 0 {
		if err := r.object(); err != nil {
			return nil, err
		}
	}
	for _, set := range append(r.later, r.fill...) {
		if err := set(); err != nil {
			return nil, err
		}
	}
	if pointer.IsNil() {
		return nil, errShort
	}
	return pointer.Interface(), nil
}

func (r *reader) number() (uint64, error) {
	n, size := binary.Uvarint(r.in)
	if size <= 0 {
		return 0, errShort
	}
	r.in = r.in[size:]
	return n, nil
}

// length reads a number of items, each of at least one byte.
func (r *reader) length() (int, error) {
	n, err := r.number()
	if err != nil || n > uint64(len(r.in)) {
		return 0, errShort
	}
	return int(n), nil
}

// values reads the number of following values of each of the given types. It fails if the remaining bytes cannot
// contain that many, so an announced number alone does not allocate memory.
func (r *reader) values(each ...reflect.Type) (int, error) {
	n, err := r.number()
	least := uint64(0)
	for _, t := range each {
		if _, known := r.least[t]; !known {
			r.least[t] = leastSize(t)
		}
		least += r.least[t]
	}
	if err != nil || n > 1 && (least == 0 || n > uint64(len(r.in))/least) {
		return 0, errShort
	}
	return int(n), nil
}

// object allocates the next object.
func (r *reader) object() error {
	id, err := r.number()
	if err != nil || id >= uint64(len(r.codec.types)) {
		return errShort
	}
	t := r.codec.types[id]
	count, err := r.values(t)
	if err != nil || count == 0 || t.Size() == 0 {
		return errShort
	}
	values := reflect.MakeSlice(reflect.SliceOf(t), count, count)
	r.objects = append(r.objects, object{t: t, count: count, value: values.Index(0)})
	for i := range count {
		if err := r.value(values.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// value decodes one value into v, which must be settable.
func (r *reader) value(v reflect.Value) error {
	switch t := v.Type(); t.Kind() {
	case reflect.Bool:
		n, err := r.number()
		v.SetBool(n != 0)
		return err
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, size := binary.Varint(r.in)
		if size <= 0 || v.OverflowInt(n) {
			return errShort
		}
		r.in = r.in[size:]
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		n, err := r.number()
		if err != nil || v.OverflowUint(n) {
			return errShort
		}
		v.SetUint(n)
	case reflect.Float32, reflect.Float64:
		if len(r.in) < 8 {
			return errShort
		}
		v.SetFloat(math.Float64frombits(order.Uint64(r.in)))
		r.in = r.in[8:]
	case reflect.String:
		n, err := r.length()
		if err != nil {
			return err
		}
		v.SetString(string(r.in[:n]))
		r.in = r.in[n:]
	case reflect.Struct:
		for i := range t.NumField() {
			if err := r.value(field(v, i)); err != nil {
				return err
			}
		}
	case reflect.Array:
		for i := range t.Len() {
			if err := r.value(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Pointer:
		return r.pointer(v)
	case reflect.Slice:
		return r.slice(v)
	case reflect.Map:
		return r.mapping(v)
	case reflect.Interface:
		return r.iface(v)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer: // nil
	default:
		return fmt.Errorf("graph: a %v", t)
	}
	return nil
}

// iface decodes the value in an interface. The interface is set after the references in that value.
func (r *reader) iface(v reflect.Value) error {
	id, err := r.number()
	if err != nil || id == 0 {
		return err
	}
	if id > uint64(len(r.codec.types)) || !r.codec.types[id-1].AssignableTo(v.Type()) {
		return errShort
	}
	inside := reflect.New(r.codec.types[id-1]).Elem()
	if inside.Kind() == reflect.Interface || r.depth == mostNested {
		return errShort
	}
	r.depth++
	err = r.value(inside)
	r.depth--
	if err != nil {
		return err
	}
	r.later = append(r.later, func() error {
		v.Set(inside)
		return nil
	})
	return nil
}

func (r *reader) pointer(v reflect.Value) error {
	n, err := r.number()
	if err != nil || n == 0 {
		return err
	}
	form, is := r.codec.opaque[v.Type()]
	switch {
	case !is && n == 1: // of no size
		v.Set(reflect.New(v.Type().Elem()))
	case !is:
		return r.reference(v, n, 1)
	case n == 1:
		size, err := r.length()
		if err != nil {
			return err
		}
		p, err := form.read(r.in[:size])
		if err != nil {
			return fmt.Errorf("graph: %v: %w", v.Type(), err)
		}
		r.in = r.in[size:]
		r.opaques = append(r.opaques, p)
		v.Set(reflect.ValueOf(p))
	case n-2 < uint64(len(r.opaques)) && reflect.TypeOf(r.opaques[n-2]) == v.Type():
		v.Set(reflect.ValueOf(r.opaques[n-2]))
	default:
		return errShort
	}
	return nil
}

func (r *reader) slice(v reflect.Value) error {
	made, err := r.number()
	if err != nil {
		return err
	}
	n, err := r.number()
	if err != nil || n > math.MaxInt32 {
		return errShort
	}
	switch {
	case n == 0 && made != 0:
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	case n > 0:
		at, err := r.number()
		if err != nil {
			return err
		}
		if v.Type().Elem().Size() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), int(n), int(n)))
			return nil
		}
		return r.reference(v, at, int(n))
	}
	return nil
}

// reference decodes the target of a pointer, or of a slice with this length.
func (r *reader) reference(v reflect.Value, n uint64, length int) error {
	offset, err := r.number()
	if err != nil || n < 2 || n > math.MaxInt32 || v.Type().Elem().Size() == 0 {
		return errShort
	}
	r.later = append(r.later, func() error { return r.point(v, int(n-2), uintptr(offset), length) })
	return nil
}

// point sets a pointer or a slice after checking that its target exists.
func (r *reader) point(v reflect.Value, object int, offset uintptr, length int) error {
	if object >= len(r.objects) {
		return errShort
	}
	o := &r.objects[object]
	elem := v.Type().Elem()
	if length > inRow(o.t, o.count, offset, elem) {
		return errShort
	}
	address := unsafe.Add(o.value.Addr().UnsafePointer(), offset)
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.NewAt(elem, address))
		return nil
	}
	array := struct {
		data     unsafe.Pointer
		len, cap int
	}{address, length, length}
	v.Set(reflect.NewAt(v.Type(), unsafe.Pointer(&array)).Elem())
	return nil
}

// inRow returns the number of consecutive values of type want at an offset within count values of type t; 0 if none
// begins there.
func inRow(t reflect.Type, count int, offset uintptr, want reflect.Type) int {
	for {
		if t.Size() == 0 || offset >= t.Size()*uintptr(count) {
			return 0
		}
		i := offset / t.Size()
		if offset %= t.Size(); offset == 0 && alike(t, want) {
			return count - int(i)
		}
		switch t.Kind() {
		case reflect.Array:
			t, count = t.Elem(), t.Len()
		case reflect.Struct:
			inner := -1
			for i := range t.NumField() {
				f := t.Field(i)
				if f.Type.Size() > 0 && f.Offset <= offset && offset < f.Offset+f.Type.Size() {
					inner = i
				}
			}
			if inner < 0 {
				return 0
			}
			offset -= t.Field(inner).Offset
			t, count = t.Field(inner).Type, 1
		default:
			return 0
		}
	}
}

// alike reports whether pointers to the two types are convertible: the types are equal, or structs of which one is
// defined by the other.
func alike(t, want reflect.Type) bool {
	return t == want || t.Kind() == reflect.Struct && want.Kind() == reflect.Struct && t.ConvertibleTo(want)
}

func (r *reader) mapping(v reflect.Value) error {
	n, err := r.number()
	switch {
	case err != nil || n == 0:
		return err
	case n > 1 && n-2 < uint64(len(r.maps)) && r.maps[n-2].Type() == v.Type():
		v.Set(r.maps[n-2])
		return nil
	case n > 1:
		return errShort
	}
	t := v.Type()
	size, err := r.values(t.Key(), t.Elem())
	if err != nil {
		return err
	}
	made := reflect.MakeMapWithSize(t, size)
	v.Set(made)
	r.maps = append(r.maps, made)
	for range size {
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		if err := r.value(key); err != nil {
			return err
		}
		if err := r.value(value); err != nil {
			return err
		}
		r.fill = append(r.fill, func() error {
			if !key.Comparable() {
				return errShort
			}
			made.SetMapIndex(key, value)
			return nil
		})
	}
	return nil
}
