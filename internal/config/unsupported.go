package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// missing is a field that this build does not implement.
type missing struct {
	// path is its YAML keys, joined by dots.
	path string
	// words are the values that are missing; none: every value but the wfq default.
	words []string
}

// notYet lists the fields and words that this build does not implement: such a value is a problem. A feature is enabled
// by removing its line.
var notYet = []missing{
	{path: "flows.discipline", words: []string{DisciplineFairShare}},
}

// unsupported reports the fields of notYet that are set. Values that come from the profile itself count as one problem
// of the profile.
func (d Document) unsupported() Problems {
	var ps Problems
	base := Default()
	profile, err := Profile(d.Profile)
	if err != nil {
		profile = base
	}
	var fromProfile []string
	for _, m := range notYet {
		value := fieldAt(reflect.ValueOf(d), m.path)
		switch {
		case !m.lacks(value, fieldAt(reflect.ValueOf(base), m.path)):
		case same(value, fieldAt(reflect.ValueOf(profile), m.path)):
			fromProfile = append(fromProfile, m.path)
		default:
			ps.add(m.path, show(value), "not supported yet")
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

// lacks reports whether the build does not implement the value.
func (m missing) lacks(value, byDefault reflect.Value) bool {
	if len(m.words) > 0 {
		return slices.Contains(m.words, value.String())
	}
	return !same(value, byDefault)
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

// show returns a value as messages show it.
func show(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		return shown(fmt.Sprintf("%d given", v.Len()))
	default:
		return v.Interface()
	}
}
