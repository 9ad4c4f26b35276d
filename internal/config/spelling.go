package config

import (
	"reflect"
	"strings"
)

// snakeSections maps the snake_case names of the sections of the original queueing proposal to their keys.
var snakeSections = map[string]string{
	"fair_request_queue":       "fairRequestQueue",
	"request_queue_controller": "requestQueueController",
}

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
func camelCase(path, key string) string {
	if path == "" {
		if name, ok := snakeSections[key]; ok {
			return name
		}
		return key
	}
	section := Document{}
	var names []string
	switch path {
	case "fairRequestQueue":
		names = fieldNames(reflect.TypeOf(section.FairRequestQueue))
	case "requestQueueController":
		names = fieldNames(reflect.TypeOf(section.RequestQueueController))
	}
	for _, name := range names {
		if snakeCase(name) == key {
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
