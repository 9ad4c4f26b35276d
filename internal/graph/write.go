package graph

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sort"
	"unsafe"
)

// writer encodes objects in the order in which they are first pointed to.
type writer struct {
	codec   *Codec
	out     []byte
	objects []object
	pending []int // objects with an index, not yet written
	indexed int
	maps    map[unsafe.Pointer]int
	opaques map[unsafe.Pointer]int
}

// Write encodes the graph of root. The error names a value that cannot be encoded.
func (c *Codec) Write(root any) ([]byte, error) {
	v := reflect.ValueOf(root)
	if v.Type().Elem() != c.root {
		return nil, fmt.Errorf("graph: %T: want *%v", root, c.root)
	}
	pointer := addressable(v)
	objects, err := c.find(pointer)
	if err != nil {
		return nil, err
	}
	w := &writer{codec: c, objects: objects, maps: map[unsafe.Pointer]int{}, opaques: map[unsafe.Pointer]int{}}
	w.out = order.AppendUint64(w.out, c.print())
	if err := w.value(pointer); err != nil {
		return nil, err
	}
	for len(w.pending) > 0 {
		o := &w.objects[w.pending[0]]
		w.pending = w.pending[1:]
		id, known := c.ids[o.t]
		if !known {
			return nil, fmt.Errorf("graph: %v is none of the types that the codec was made with", o.t)
		}
		w.number(uint64(id))
		w.number(uint64(o.count))
		for i := range o.count {
			if err := w.value(element(o.value, i)); err != nil {
				return nil, err
			}
		}
	}
	return w.out, nil
}

func (w *writer) number(n uint64) { w.out = binary.AppendUvarint(w.out, n) }

// value encodes one value.
func (w *writer) value(v reflect.Value) error {
	switch t := v.Type(); t.Kind() {
	case reflect.Bool:
		w.number(boolean(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		w.out = binary.AppendVarint(w.out, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		w.number(v.Uint())
	case reflect.Float32, reflect.Float64:
		w.out = order.AppendUint64(w.out, math.Float64bits(v.Float()))
	case reflect.String:
		w.number(uint64(v.Len()))
		w.out = append(w.out, v.String()...)
	case reflect.Struct:
		for i := range t.NumField() {
			if err := w.value(field(v, i)); err != nil {
				return err
			}
		}
	case reflect.Array:
		for i := range t.Len() {
			if err := w.value(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Pointer:
		return w.pointer(v)
	case reflect.Slice:
		w.number(boolean(!v.IsNil()))
		w.number(uint64(v.Len()))
		if v.Len() > 0 {
			return w.reference(v.Index(0).Addr().Pointer(), t.Elem())
		}
	case reflect.Map:
		return w.mapping(v)
	case reflect.Interface:
		if v.IsNil() {
			w.number(0)
			return nil
		}
		inside := addressable(v.Elem())
		id, known := w.codec.ids[inside.Type()]
		if !known {
			return fmt.Errorf("graph: %v in a %v is none of the types that the codec was made with", inside.Type(), t)
		}
		w.number(uint64(id) + 1)
		return w.value(inside)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer: // nil: find has checked it
	default:
		return fmt.Errorf("graph: a %v", t)
	}
	return nil
}

func boolean(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// pointer encodes the target of a pointer; 0 is nil.
func (w *writer) pointer(v reflect.Value) error {
	if v.IsNil() {
		w.number(0)
		return nil
	}
	form, is := w.codec.opaque[v.Type()]
	if !is {
		return w.reference(v.Pointer(), v.Type().Elem())
	}
	n, known := w.opaques[v.UnsafePointer()]
	if known {
		w.number(uint64(n) + 2)
		return nil
	}
	w.opaques[v.UnsafePointer()] = len(w.opaques)
	text, err := form.write(v.Interface())
	if err != nil {
		return fmt.Errorf("graph: %v: %w", v.Type(), err)
	}
	w.number(1)
	w.number(uint64(len(text)))
	w.out = append(w.out, text...)
	return nil
}

// reference encodes an address as an object and an offset.
func (w *writer) reference(at uintptr, t reflect.Type) error {
	if t.Size() == 0 {
		w.number(1)
		return nil
	}
	i := sort.Search(len(w.objects), func(i int) bool { return w.objects[i].at > at }) - 1
	if i < 0 || at >= w.objects[i].at+w.objects[i].size() {
		return errors.New("graph: it changes while it is written")
	}
	o := &w.objects[i]
	if o.index < 0 {
		o.index = w.indexed
		w.indexed++
		w.pending = append(w.pending, i)
	}
	w.number(uint64(o.index) + 2)
	w.number(uint64(at - o.at))
	return nil
}

// mapping encodes a map in the order of its keys' encodings; an already encoded map is encoded as its number.
func (w *writer) mapping(v reflect.Value) error {
	if v.IsNil() {
		w.number(0)
		return nil
	}
	if n, known := w.maps[v.UnsafePointer()]; known {
		w.number(uint64(n) + 2)
		return nil
	}
	w.maps[v.UnsafePointer()] = len(w.maps)
	w.number(1)
	w.number(uint64(v.Len()))
	type entry struct {
		key   []byte
		value reflect.Value
	}
	entries := make([]entry, 0, v.Len())
	outer := w.out
	for each := v.MapRange(); each.Next(); {
		w.out = nil
		if err := w.value(addressable(each.Key())); err != nil {
			return err
		}
		entries = append(entries, entry{w.out, addressable(each.Value())})
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	w.out = outer
	for _, e := range entries {
		w.out = append(w.out, e.key...)
		if err := w.value(e.value); err != nil {
			return err
		}
	}
	return nil
}
