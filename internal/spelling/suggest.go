// Package spelling suggests corrections for misspelled names: keys of the configuration, words, flags.
package spelling

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// longest is the longest text, in bytes, to search a correction for.
const longest = 64

// shortest is the shortest text, in bytes, matched as the beginning of a name.
const shortest = 3

// Suggest returns " (did you mean X?)" with the known name nearest to the written one, or the only one that begins with
// it; "" if there is none. It ignores case, hyphens and underscores.
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
	return Either([]string{best})
}

// most is the largest number of names in a suggestion.
const most = 3

// Either returns " (did you mean X, Y or Z?)" with all of the names; "" if there are none, or more than three.
func Either(names []string) string {
	if len(names) == 0 || len(names) > most {
		return ""
	}
	last := len(names) - 1
	text := names[last]
	if last > 0 {
		text = strings.Join(names[:last], ", ") + " or " + text
	}
	return " (did you mean " + text + "?)"
}

// nearest returns the known name with the fewest edits: at most one, plus a quarter of the length.
func nearest(written string, names []string) string {
	best, distance := "", 1+len(written)/4
	for _, name := range names {
		if d := levenshtein.ComputeDistance(plain(written), plain(name)); d <= distance && (best == "" || d < distance) {
			best, distance = name, d
		}
	}
	return best
}

// only returns the name that begins with the written text, if there is exactly one.
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
