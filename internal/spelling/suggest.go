// Package spelling finds what somebody meant who wrote a name that does not exist: a key of the configuration, a word,
// a flag.
package spelling

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// longest is the longest text, in bytes, that is compared: nobody misspells more.
const longest = 64

// shortest is the shortest text, in bytes, that is taken for the beginning of a name.
const shortest = 3

// Suggest is " (did you mean X?)" for the known name nearest to what was written, or for the only one that begins with
// it; "" when there is none. Case, hyphens and underscores do not count.
func Suggest(written string, names []string) string {
	if len(written) > longest || plain(written) == "" {
		return ""
	}
	best := nearest(written, names)
	if best == "" {
		best = only(written, names)
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + best + "?)"
}

// nearest is the name of the fewest edits, at most one and a quarter of the length.
func nearest(written string, names []string) string {
	best, distance := "", 1+len(written)/4
	for _, name := range names {
		if d := levenshtein.ComputeDistance(plain(written), plain(name)); d <= distance && (best == "" || d < distance) {
			best, distance = name, d
		}
	}
	return best
}

// only is the one name that begins with what was written.
func only(written string, names []string) string {
	if len(written) < shortest {
		return ""
	}
	found := ""
	for _, name := range names {
		if !strings.HasPrefix(plain(name), plain(written)) {
			continue
		}
		if found != "" {
			return ""
		}
		found = name
	}
	return found
}

func plain(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
