package config

import (
	"reflect"
	"slices"
	"strings"
)

// unsupported reports the words that this build does not implement, those of the missing tags. Words that come from the
// profile itself count as one problem of the profile.
func (d Document) unsupported() Problems {
	var ps Problems
	profile, err := Profile(d.Profile)
	if err != nil {
		profile = Default()
	}
	var fromProfile []string
	for k, words := range tagged("missing") {
		word := fieldAt(reflect.ValueOf(d), k.path).String()
		switch {
		case !slices.Contains(strings.Fields(words), word):
		case word == fieldAt(reflect.ValueOf(profile), k.path).String():
			fromProfile = append(fromProfile, k.path)
		default:
			ps.add(k.path, word, "not supported yet")
		}
	}
	if len(fromProfile) > 0 {
		ps.add("profile", d.Profile, "not supported yet: this build does not act upon its %s",
			strings.Join(fromProfile, ", "))
	}
	return ps
}

// refused reports whether this build refuses a profile because it does not implement all of it.
func refused(profile string) bool {
	d, err := Profile(profile)
	return err == nil && len(d.unsupported()) > 0
}

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
