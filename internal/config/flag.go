package config

import (
	"reflect"
	"strings"
)

// Flag is the command-line flag of a key, by its flag and help tags.
type Flag struct {
	// Name and Usage are what pflag calls so: Usage has the unit in back quotes.
	Name, Usage string
	// Page is where the key is documented: PageFirst, PageRare, or "" for the reference.
	Page string
	// Value is where the flag writes: a *int64, or a pflag.Value.
	Value any
	path  string
}

// Flags returns the flags of the keys, in the order of the document. They write to the fields of d, whose values are
// their defaults; a field that may be null has none.
func Flags(d *Document) (flags []Flag) {
	usage := strings.NewReplacer("<", "`", ">", "`")
	for k, name := range tagged("flag") {
		field := fieldAt(reflect.ValueOf(d).Elem(), k.path)
		if field.Kind() == reflect.Pointer {
			field.Set(reflect.New(field.Type().Elem()))
			field = field.Elem()
		}
		flags = append(flags, Flag{
			Name: name, Usage: usage.Replace(k.Tag.Get("help")), Page: k.Tag.Get("page"),
			Value: field.Addr().Interface(), path: k.path,
		})
	}
	return flags
}

// Override is the layer of the flags that were given: it copies their fields from the document that they write to.
func Override(to *Document, from *Document, given []Flag) {
	named := map[string]bool{}
	for _, f := range given {
		named[f.path] = true
		fieldAt(reflect.ValueOf(to).Elem(), f.path).Set(fieldAt(reflect.ValueOf(from).Elem(), f.path))
	}
	to.derive(func(path string) bool { return named[path] })
}
