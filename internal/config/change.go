package config

import (
	"reflect"
	"slices"
	"strings"
)

// The values of the reload tag; without it a change is applied at once.
const (
	reloadRefused = "refused"       // the change is a problem
	reloadLater   = "at next start" // the change is accepted and has no effect yet
)

// Reload is Load for a program that already runs with another document: a field that differs and cannot change at run
// time is a problem too. The error is Problems and lists all of them.
func Reload(source Source, running Document) (Document, error) {
	d, lines, problems := layers(source)
	if _, err := Profile(d.Profile); err == nil && problems.readable() { // else everything would seem to have changed
		problems = append(problems, d.frozenProblems(running)...)
	}
	return d, d.inText(problems.locate(lines)).err()
}

// readable reports whether the text could be parsed at all.
func (ps Problems) readable() bool {
	for _, p := range ps {
		if p.Path == "" {
			return false
		}
	}
	return true
}

// frozenProblems returns the changes from the running document that need a restart.
func (d Document) frozenProblems(running Document) Problems {
	var ps Problems
	levels := len(d.Flows.Levels) > 0 || len(running.Flows.Levels) > 0
	if old, now := running.Flows.keys(), d.Flows.keys(); levels && old != now {
		ps.add("flows.levels", now, "cannot change at run time (running: %q); restart to change its keys", old)
	}
	for k, when := range tagged("reload") {
		old, value := fieldAt(reflect.ValueOf(running), k.path), fieldAt(reflect.ValueOf(d), k.path)
		if k.path == "flows.key" && levels {
			continue
		}
		if when == reloadRefused && !same(old, value) {
			ps.add(k.path, words(value), "cannot change at run time (running: %q); restart to change it", words(old))
		}
	}
	return ps
}

// words returns a text, or a list of them, on one line.
func words(v reflect.Value) string {
	if list, ok := reflect.TypeAssert[[]string](v); ok {
		return strings.Join(list, ", ")
	}
	return v.String()
}

// AtNextStart returns those of the changed fields that a program which runs does not act upon.
func AtNextStart(changed []string) (later []string) {
	for k, when := range tagged("reload") {
		if when == reloadLater && slices.Contains(changed, k.path) {
			later = append(later, k.path)
		}
	}
	return later
}

// Changed returns the paths of the fields in which two documents differ, in the order of the document. A list or a map
// counts as one field, except tiers that have kept their names.
func Changed(from, to Document) []string {
	var paths []string
	changed("", reflect.ValueOf(from), reflect.ValueOf(to), &paths)
	return paths
}

func changed(path string, from, to reflect.Value, paths *[]string) {
	if same(from, to) {
		return
	}
	switch {
	case from.Kind() == reflect.Struct:
		for i, name := range fieldNames(from.Type()) {
			changed(join(path, name), from.Field(i), to.Field(i), paths)
		}
	case from.Type() == reflect.TypeFor[[]Tier]() && sameNames(from, to):
		for i := range from.Len() {
			changed(index(path, i), from.Index(i), to.Index(i), paths)
		}
	default:
		*paths = append(*paths, path)
	}
}

// sameNames reports whether two lists of tiers have the same names in the same order.
func sameNames(a, b reflect.Value) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if a.Index(i).FieldByName("Name").String() != b.Index(i).FieldByName("Name").String() {
			return false
		}
	}
	return true
}

// keys returns the sources of the flows' identities of all levels, as text.
func (f Flows) keys() string {
	text := strings.Join(f.tenantKey(), ", ")
	if user := f.userKey(); len(user) > 0 {
		text += " over " + strings.Join(user, ", ")
	}
	return text
}
