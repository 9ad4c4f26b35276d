package doctor

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Path is a place in a configuration: keys of objects (string) and indexes of lists (int). In another file, the file's
// name (file) comes first. Keys are in snake_case as in Envoy's messages, whatever the text's spelling.
type Path []any

// file is the first step of a path in another file: the file's name.
type file string

// plain matches keys that need no quotes.
var plain = regexp.MustCompile(`^@?[A-Za-z0-9_]+$`)

// String returns the path in the form static_resources.listeners[0].name; a key with other characters is in brackets
// and quotes.
func (p Path) String() string {
	var b strings.Builder
	begun := 0
	for _, step := range p {
		switch step := step.(type) {
		case file:
			fmt.Fprintf(&b, "%s: ", string(step))
			begun = b.Len()
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		case string:
			if !plain.MatchString(step) {
				fmt.Fprintf(&b, "[%q]", step)
				continue
			}
			if b.Len() > begun {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
	}
	return b.String()
}

// elsewhere reports whether the place is in a file of its own.
func (p Path) elsewhere() bool {
	if len(p) == 0 {
		return false
	}
	_, ok := p[0].(file)
	return ok
}

// add returns the path with further steps; it does not change the receiver.
func (p Path) add(steps ...any) Path { return append(slices.Clip(p), steps...) }

// largestWithLines is the size in bytes of the largest text for which lines are found: that takes a second, slow
// reading.
const largestWithLines = 4 << 20

// lines finds the lines of paths in a text.
type lines struct {
	text []byte
	docs []*yaml.Node
	read bool
}

// of returns the line, from 1, of the deepest existing part of a path in a document; 0 if unknown.
func (l *lines) of(document int, p Path) int {
	if len(l.text) > largestWithLines {
		return 0
	}
	if !l.read {
		l.read = true
		for decoder := yaml.NewDecoder(bytes.NewReader(l.text)); ; {
			var node yaml.Node
			if decoder.Decode(&node) != nil {
				break
			}
			l.docs = append(l.docs, &node)
		}
	}
	if document >= len(l.docs) || len(l.docs[document].Content) == 0 {
		return 0
	}
	node := l.docs[document].Content[0]
	line := node.Line
	for _, step := range p {
		if node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		next, at := child(node, step)
		if next == nil {
			break
		}
		node, line = next, at
	}
	return line
}

// child returns a node's child at a step, and the line of its key or of itself; nil if there is none.
func child(node *yaml.Node, step any) (*yaml.Node, int) {
	switch step := step.(type) {
	case int:
		if node.Kind == yaml.SequenceNode && step < len(node.Content) {
			return node.Content[step], node.Content[step].Line
		}
	case string:
		if node.Kind != yaml.MappingNode {
			break
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			if key := node.Content[i].Value; key == step || key == camel(step) {
				return node.Content[i+1], node.Content[i].Line
			}
		}
	}
	return nil, 0
}

// camel returns a key in camelCase, the other spelling of Envoy's keys.
func camel(key string) string {
	words := strings.Split(key, "_")
	for i := 1; i < len(words); i++ {
		if words[i] != "" {
			words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
		}
	}
	return strings.Join(words, "")
}
