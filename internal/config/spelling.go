package config

import (
	"reflect"
	"strings"
)

// fieldNames returns the YAML keys of a struct, by field index.
func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
	}
	return names
}

// camelCase returns the name of a key whose snake_case spelling from the proposal is accepted, and any other key
// unchanged.
func camelCase(path, key string, names []string) string {
	for _, name := range names {
		section := name
		if path != "" {
			section = path
		}
		if snakeCase(name) == key && (section == "fairRequestQueue" || section == "requestQueueController") {
			return name
		}
	}
	return key
}

// snakeCase returns a camelCase name in the proposal's spelling: queueTTL is queue_ttl.
func snakeCase(name string) string {
	var b strings.Builder
	upper := true
	for i := range len(name) {
		c := name[i]
		isUpper := c >= 'A' && c <= 'Z'
		if isUpper && !upper {
			b.WriteByte('_')
		}
		upper = isUpper
		b.WriteByte(c)
	}
	return strings.ToLower(b.String())
}
