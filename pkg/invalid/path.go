package invalid

import (
	"fmt"
	"slices"
	"strings"
)

// Path leads from a Config to one of its fields. Its steps are names of fields (string), indexes of lists (int) and
// keys of maps (Key).
type Path []any

// Key is a key of a map, as a step of a Path.
type Key string

// At returns the path of these steps.
func At(steps ...any) Path { return steps }

// At returns p extended by these steps.
func (p Path) At(steps ...any) Path { return slices.Concat(p, steps) }

// String returns the path in Go's notation: Tiers[3].QueueSize, Weights["team-a"].
func (p Path) String() string {
	return p.text(func(step any) string {
		if key, ok := step.(Key); ok {
			return fmt.Sprintf("[%q]", string(key))
		}
		return fmt.Sprintf("[%v]", step)
	})
}

// Pattern returns the path without its indexes and keys: Tiers[].QueueSize, Weights[]. All elements of a list share it.
func (p Path) Pattern() string {
	return p.text(func(any) string { return "[]" })
}

// Elements returns the indexes and keys of the path, in order, which Pattern omits.
func (p Path) Elements() []any {
	return slices.DeleteFunc(slices.Clone(p), func(step any) bool {
		_, field := step.(string)
		return field
	})
}

func (p Path) text(element func(step any) string) string {
	var b strings.Builder
	for i, step := range p {
		name, field := step.(string)
		switch {
		case !field:
			b.WriteString(element(step))
		case i > 0:
			b.WriteString("." + name)
		default:
			b.WriteString(name)
		}
	}
	return b.String()
}
