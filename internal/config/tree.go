package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// tree reads another system's YAML, whose keys nobody here knows all: it collects the problems, and the keys for which
// nothing stands here.
type tree struct {
	problems Problems
	lines    map[string]int // by path
	ignored  []string       // paths without indices, in their order
	nodes    int
	deep     bool // a path was too long
}

// longestPath is the longest path of a value in bytes. An alias may lead to the mapping that it is in.
const longestPath = 1024

func newTree() tree { return tree{lines: map[string]int{}} }

// found returns the problems by their lines, as an error. Beside one of depth no other says anything.
func (t *tree) found() error {
	if t.deep {
		t.problems = slices.DeleteFunc(t.problems, func(p Problem) bool { return len(p.Path) > longestPath })
	}
	return t.problems.locate(t.lines).err()
}

// pairs calls f with the keys and values of a mapping; anything else is a problem of its path.
func (t *tree) pairs(path string, node *yaml.Node, f func(key, path string, value *yaml.Node)) {
	if node = t.at(path, node); node == nil {
		return
	}
	if node.Kind != yaml.MappingNode {
		t.problems.add(path, describe(node), "must be a mapping")
		return
	}
	told := keysOf(node) // its own
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i].Value, node.Content[i+1]
		if key != mergeKey {
			f(key, join(path, key), value)
			continue
		}
		t.merged(path, value, func(key, path string, value *yaml.Node) {
			if !slices.Contains(told, key) {
				told = append(told, key) // of several mappings the first one counts
				f(key, path, value)
			}
		})
	}
}

// mergeKey has mappings whose keys count where the mapping has none of its own.
const mergeKey = "<<"

// merged calls f with the keys of mappings that a mapping merges.
func (t *tree) merged(path string, node *yaml.Node, f func(key, path string, value *yaml.Node)) {
	from := t.at(path, node)
	if from != nil && from.Kind == yaml.SequenceNode {
		for _, one := range from.Content {
			t.pairs(path, one, f)
		}
		return
	}
	t.pairs(path, node, f)
}

// items calls f with the items of a list.
func (t *tree) items(path string, node *yaml.Node, f func(path string, value *yaml.Node)) {
	if node = t.at(path, node); node == nil {
		return
	}
	if node.Kind != yaml.SequenceNode {
		t.problems.add(path, describe(node), "must be a list")
		return
	}
	for i, item := range node.Content {
		f(index(path, i), item)
	}
}

// at returns the node that an alias stands for, and notes its line; nil for null, and beyond maxNodes values.
func (t *tree) at(path string, node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if t.nodes++; t.nodes > maxNodes {
		if t.nodes == maxNodes+1 {
			t.problems = append(t.problems, Problem{Message: fmt.Sprintf("the document is too large (more than %d values)", maxNodes)})
		}
		return nil
	}
	if len(path) > longestPath {
		if !t.deep {
			t.deep = true
			t.problems = append(t.problems, Problem{Path: path[:64] + "…", Message: "is nested too deeply", Line: node.Line})
		}
		return nil
	}
	t.lines[path] = node.Line
	if isNull(node) {
		return nil
	}
	return node
}

func (t *tree) text(path string, node *yaml.Node) string {
	if node = t.at(path, node); node == nil {
		return ""
	}
	if node.Kind != yaml.ScalarNode {
		t.problems.add(path, describe(node), "must be a string")
		return ""
	}
	return node.Value
}

// whole returns a whole number from least to most.
func (t *tree) whole(path string, node *yaml.Node, least, most int64) int64 {
	text := t.text(path, node)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		t.problems.add(path, text, "must be a whole number from %d to %d", least, most)
		return least
	}
	return n
}

// ignore notes that nothing here stands for a key.
func (t *tree) ignore(path string, node *yaml.Node) {
	path = withoutIndices(path)
	if above, _, nested := strings.Cut(path, "."); nested || node.Kind != yaml.MappingNode {
		if !slices.Contains(t.ignored, path) {
			t.ignored = append(t.ignored, path)
		}
	} else {
		t.pairs(above, node, func(_, path string, value *yaml.Node) { t.ignore(path, value) })
	}
}

// withoutIndices returns a path without the numbers of items.
func withoutIndices(path string) string {
	var out strings.Builder
	depth := 0
	for _, r := range path {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case depth == 0:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// instead returns the notes about the keys that are ignored, with what stands for them here: by their paths, of which
// one that ends in a dot is for all below it. The others are in one note. No value is in them.
func (t *tree) instead(known map[string]string) (notes []string) {
	var unknown []string
	for _, path := range t.ignored {
		text := ""
		for key, of := range known {
			if path == strings.TrimSuffix(key, ".") || strings.HasSuffix(key, ".") && strings.HasPrefix(path, key) {
				text = of
			}
		}
		if text == "" {
			unknown = append(unknown, path)
			continue
		}
		notes = append(notes, fmt.Sprintf("%s: ignored: %s", path, text))
	}
	if len(unknown) > 0 {
		notes = append(notes, "ignored, since nothing here stands for it: "+strings.Join(unknown, ", "))
	}
	return notes
}
