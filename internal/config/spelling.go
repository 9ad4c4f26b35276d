package config

import (
	"reflect"
	"strings"
)

// snakeSections are the sections that the original queueing proposal spells in snake_case, with their keys.
var snakeSections = map[string]string{
	"fair_request_queue":       "fairRequestQueue",
	"request_queue_controller": "requestQueueController",
}

// fieldNames are the YAML keys of a struct, by field index.
func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
	}
	return names
}

// camelCase gives the key's own name where the proposal's snake_case spelling is accepted, else the key itself.
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

// snakeCase is a camelCase name in the proposal's spelling: queueTTL is queue_ttl.
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

// suggest is " (did you mean X?)" for the known name nearest to what was written, if one is near.
func suggest(written string, names []string) string {
	if len(written) > 64 {
		return ""
	}
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
	best, distance := "", 1+len(written)/4
	for _, name := range names {
		if d := editDistance(plain(written), plain(name)); d <= distance && (best == "" || d < distance) {
			best, distance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + best + "?)"
}

// editDistance is the Levenshtein distance of a and b in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
