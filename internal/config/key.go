package config

import (
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/weir-epp/weir/pkg/invalid"
)

// key is one key of the document, with the field that declares it (doc.go).
type key struct {
	path string // its YAML keys, with [] for the index of a list or the key of a map: tiers[].name
	reflect.StructField
}

// keys returns every key of the document in its order: sections and lists too, each before the keys in it.
var keys = sync.OnceValue(func() []key { return keysIn(reflect.TypeFor[Document](), "") })

func keysIn(section reflect.Type, path string) (all []key) {
	for i, name := range fieldNames(section) {
		k := key{join(path, name), section.Field(i)}
		all = append(all, k)
		switch {
		case k.Type.Kind() == reflect.Struct:
			all = append(all, keysIn(k.Type, k.path)...)
		case isList(k.Type):
			all = append(all, keysIn(k.Type.Elem(), k.path+"[]")...)
		}
	}
	return all
}

// isList reports whether t is a list or a map of structs.
func isList(t reflect.Type) bool {
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) && t.Elem().Kind() == reflect.Struct
}

// tagged returns the keys that have a tag.
func tagged(name string) iter.Seq2[key, string] {
	return func(yield func(key, string) bool) {
		for _, k := range keys() {
			if text, ok := k.Tag.Lookup(name); ok && !yield(k, text) {
				return
			}
		}
	}
}

// sets returns the patterns of the fields of a package's configuration that the key sets.
func (k key) sets(part string) []string {
	var fields []string
	for field := range strings.FieldsSeq(k.Tag.Get("sets")) {
		if field, ok := strings.CutPrefix(field, part+"."); ok {
			fields = append(fields, field)
		}
	}
	return fields
}

// each calls f with every value that a struct has at a path of keys, and with the indexes and map keys that lead there.
// These are valid until f returns.
func each(v reflect.Value, path string, elements []any, f func(elements []any, v reflect.Value)) {
	name, rest, below := strings.Cut(path, ".")
	name, list := strings.CutSuffix(name, "[]")
	v = v.Field(slices.Index(fieldNames(v.Type()), name))
	switch {
	case list && v.Kind() == reflect.Map:
		for _, of := range v.MapKeys() {
			each(v.MapIndex(of), rest, append(elements, invalid.Key(of.String())), f)
		}
	case list:
		for i := range v.Len() {
			each(v.Index(i), rest, append(elements, i), f)
		}
	case below:
		each(v, rest, elements, f)
	default:
		f(elements, v)
	}
}

// pathOf returns the path of a pattern whose [] stand for these indexes and map keys.
func pathOf(pattern string, elements []any) (path invalid.Path) {
	for name := range strings.SplitSeq(pattern, ".") {
		name, element := strings.CutSuffix(name, "[]")
		path = path.At(name)
		if element {
			path, elements = path.At(elements[0]), elements[1:]
		}
	}
	return path
}
