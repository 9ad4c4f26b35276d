package config

import (
	"reflect"
	"slices"
	"strings"
)

// fieldAt returns the value at a path of YAML keys, which must exist.
func fieldAt(v reflect.Value, path string) reflect.Value {
	field, ok := lookUp(v, path)
	if !ok {
		panic("config: no field " + path)
	}
	return field
}

// lookUp returns the value at a path of YAML keys; false if there is none, or if it is in a list or a map.
func lookUp(v reflect.Value, path string) (field reflect.Value, ok bool) {
	for key := range strings.SplitSeq(path, ".") {
		if v.Kind() != reflect.Struct {
			return reflect.Value{}, false
		}
		i := slices.Index(fieldNames(v.Type()), key)
		if i < 0 {
			return reflect.Value{}, false
		}
		v = v.Field(i)
	}
	return v, true
}

// same reports whether two values of one type mean the same: nil and empty do.
func same(a, b reflect.Value) bool {
	if k := a.Kind(); (k == reflect.Map || k == reflect.Slice) && a.Len() == 0 && b.Len() == 0 {
		return true // nil and empty
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}
