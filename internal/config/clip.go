package config

import (
	"maps"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// clipped is a whole number of the file that is too large, or too small, for any field: the nearest one that is not
// takes its place until the fields are checked, since what a field's own check says is of more use.
type clipped struct {
	text string // as it is written
	used int64
}

func (dec *decoder) clip(path string, node *yaml.Node, nearest int64) {
	if dec.clips == nil {
		dec.clips = map[string]clipped{}
	}
	dec.clips[path] = clipped{describe(node), nearest}
}

// join is what is wrong with the text, then with its values. Each number that was clipped is among them, as it is
// written.
func (dec *decoder) join(values Problems) Problems {
	joined := slices.Concat(dec.problems, values)
	unchecked := maps.Clone(dec.clips)
	for i, p := range joined {
		c, ok := dec.clips[p.Path]
		if !ok {
			continue
		}
		delete(unchecked, p.Path)
		if allowed, ok := strings.CutPrefix(p.Message, found(c.used)); ok {
			joined[i].Message = c.text + allowed
		}
	}
	for _, path := range slices.Sorted(maps.Keys(unchecked)) {
		c, limit := unchecked[path], "most"
		if c.used == math.MinInt64 {
			limit = "least"
		}
		joined.add(path, shown(c.text), "must be at %s %d", limit, c.used)
	}
	return joined
}
