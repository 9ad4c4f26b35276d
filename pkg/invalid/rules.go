package invalid

import (
	"cmp"
	"slices"
	"strings"
)

// The rules of most fields. Each reports whether the value is valid, and adds a problem if it is not.

// AtLeast requires a value of at least the bound.
func AtLeast[T cmp.Ordered](ps *Problems, at Path, value, bound T) bool {
	if value < bound {
		ps.Add(at, value, "must be at least %v", bound)
		return false
	}
	return true
}

// Above requires a value greater than the bound.
func Above[T cmp.Ordered](ps *Problems, at Path, value, bound T) bool {
	if value <= bound {
		ps.Add(at, value, "must be above %v", bound)
		return false
	}
	return true
}

// Within requires a value from least to most, both included.
func Within[T cmp.Ordered](ps *Problems, at Path, value, least, most T) bool {
	if value < least || value > most {
		ps.Add(at, value, "must be from %v to %v", least, most)
		return false
	}
	return true
}

// OneOf requires one of the known words.
func OneOf(ps *Problems, at Path, word string, known []string) bool {
	if slices.Contains(known, word) {
		return true
	}
	ps.Add(at, word, "must be one of %s", strings.Join(known, ", "))
	(*ps)[len(*ps)-1].Known = known
	return false
}

// Names checks that names are not empty and are unique. The zero value is ready to use.
type Names struct{ seen map[string]bool }

// Check requires a name that is not empty and differs from those of earlier Checks.
func (n *Names) Check(ps *Problems, at Path, name string) bool {
	switch {
	case name == "":
		ps.Add(at, name, "must be given")
		return false
	case n.seen[name]:
		ps.Add(at, name, "must be unique")
		return false
	}
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	n.seen[name] = true
	return true
}
