package config

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/internal/spelling"
)

// maxNodes bounds the work for one document, with aliases followed: a few hundred bytes of nested aliases could
// otherwise stand for billions of nodes.
const maxNodes = 100_000

// decoder overlays a YAML document on a Document: it changes only the fields that the YAML names. It continues after a
// problem, so that it finds all of them.
type decoder struct {
	problems Problems
	lines    map[string]int // path -> line
	nodes    int

	ours         bool // the text is a Document
	replaceTiers bool // the text's list of tiers is the whole list
}

// newDecoder returns a decoder of a parsed text; nil: there is none.
func newDecoder(root *yaml.Node) *decoder {
	return &decoder{lines: map[string]int{}, replaceTiers: strings.EqualFold(valueOf(root, "replaceTiers"), "true")}
}

// scalar is a type that decodes itself from a YAML scalar. decodeScalar returns what is allowed if the scalar is not,
// and otherwise "".
type scalar interface{ decodeScalar(*yaml.Node) string }

// parseYAML parses text as one YAML document. It returns nil for an empty one and for one with a problem.
func parseYAML(text []byte) (root *yaml.Node, problems Problems) {
	defer func() { // the YAML parser has panicked on hostile input before
		if r := recover(); r != nil {
			root, problems = nil, Problems{{Message: fmt.Sprintf("not YAML: %v", r)}}
		}
	}()
	dec := yaml.NewDecoder(strings.NewReader(string(text)))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, Problems{{Message: "not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}}
	}
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, Problems{{Message: "more than one YAML document", Line: second.Line}}
	}
	if len(doc.Content) != 1 || isNull(doc.Content[0]) {
		return nil, nil
	}
	return doc.Content[0], nil
}

func (dec *decoder) report(path string, node *yaml.Node, format string, args ...any) {
	dec.problems = append(dec.problems, Problem{Path: path, Message: fmt.Sprintf(format, args...), Line: node.Line})
}

// decode overlays node on target, which must be settable.
func (dec *decoder) decode(path string, node *yaml.Node, target reflect.Value) {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if dec.nodes++; dec.nodes > maxNodes {
		if dec.nodes == maxNodes+1 {
			dec.report(path, node, "the document is too large (more than %d values)", maxNodes)
		}
		return
	}
	dec.lines[path] = node.Line
	if target.Kind() == reflect.Pointer {
		dec.decodeOptional(path, node, target)
		return
	}
	if s, ok := reflect.TypeAssert[scalar](target.Addr()); ok {
		if allowed := decodeScalar(s, node); allowed != "" {
			dec.report(path, node, "%s: %s", describe(node), allowed)
		}
		return
	}
	if u, ok := reflect.TypeAssert[encoding.TextUnmarshaler](target.Addr()); ok {
		if node.Kind != yaml.ScalarNode {
			node = &yaml.Node{Kind: node.Kind, Line: node.Line} // a wrong kind: the type says what is allowed
		}
		if err := u.UnmarshalText([]byte(node.Value)); err != nil {
			dec.report(path, node, "%s: %v", describe(node), err)
		}
		return
	}
	switch target.Kind() {
	case reflect.Struct:
		dec.decodeStruct(path, node, target)
	case reflect.Map:
		dec.decodeMap(path, node, target)
	case reflect.Slice:
		dec.decodeList(path, node, target)
	case reflect.String:
		if node.Kind != yaml.ScalarNode || node.Tag != "!!str" {
			dec.report(path, node, "%s: must be text", describe(node))
			return
		}
		target.SetString(node.Value)
	case reflect.Bool:
		if node.Kind != yaml.ScalarNode || node.Tag != "!!bool" {
			dec.report(path, node, "%s: must be true or false", describe(node))
			return
		}
		target.SetBool(strings.EqualFold(node.Value, "true"))
	case reflect.Int64:
		n, err := strconv.ParseInt(node.Value, 10, 64)
		switch {
		case errors.Is(err, strconv.ErrRange) && node.Tag != "!!str": // a large one is a float to YAML
			dec.report(path, node, "%s: must be a whole number of at most 18 digits", describe(node))
			return
		case node.Kind != yaml.ScalarNode || node.Tag != "!!int" || err != nil:
			dec.report(path, node, "%s: must be a whole number", describe(node))
			return
		}
		target.SetInt(n)
	default:
		panic(fmt.Sprintf("config: %s has a type that no document holds: %s", path, target.Type()))
	}
}

func decodeScalar(s scalar, node *yaml.Node) string {
	if node.Kind != yaml.ScalarNode {
		node = &yaml.Node{Kind: yaml.ScalarNode, Tag: node.Tag} // a wrong tag: the type says what is allowed
	}
	return s.decodeScalar(node)
}

func (dec *decoder) decodeOptional(path string, node *yaml.Node, target reflect.Value) {
	if isNull(node) {
		target.SetZero()
		return
	}
	value := reflect.New(target.Type().Elem())
	before := len(dec.problems)
	dec.decode(path, node, value.Elem())
	if len(dec.problems) == before {
		target.Set(value)
	}
}

// entries returns the keys and values of a mapping, each key once; nil if node is not a mapping.
func (dec *decoder) entries(path string, node *yaml.Node) [][2]*yaml.Node {
	if isNull(node) {
		return nil // a section without content changes nothing
	}
	if node.Kind != yaml.MappingNode {
		dec.report(path, node, "%s: must be a mapping", describe(node))
		return nil
	}
	var entries [][2]*yaml.Node
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch {
		case key.Tag == "!!merge":
			dec.report(join(path, "<<"), key, "merge keys are not supported")
		case key.Kind != yaml.ScalarNode:
			dec.report(path, key, "%s as a key: must be text", describe(key))
		case seen[key.Value]:
			dec.report(join(path, key.Value), key, "given twice")
		default:
			seen[key.Value] = true
			entries = append(entries, [2]*yaml.Node{key, value})
		}
	}
	return entries
}

func (dec *decoder) decodeStruct(path string, node *yaml.Node, target reflect.Value) {
	names := fieldNames(target.Type())
	given := map[string]string{}
	for _, entry := range dec.entries(path, node) {
		key, value := entry[0], entry[1]
		name := camelCase(path, key.Value, names)
		i := slices.Index(names, name)
		switch {
		case i < 0 && dec.ours && goneKeys[join(path, name)] != "":
			dec.report(join(path, key.Value), key, "%s", goneKeys[join(path, name)])
		case i < 0:
			dec.report(join(path, key.Value), key, unknownField+"%s", dec.suggest(path, key.Value, names))
		case given[name] != "":
			dec.report(join(path, key.Value), key, "given twice (also as %s)", given[name])
		case name == "tiers" && path == "":
			given[name] = key.Value
			dec.decodeTiers(name, value, target.Field(i))
		default:
			given[name] = key.Value
			dec.decode(join(path, name), value, target.Field(i))
		}
	}
}

// goneKeys has the replacement of each key of an earlier version.
var goneKeys = map[string]string{
	"scheduling.scorers": "is gone: leave it out, or write policy: none for an empty list",
	"scheduling.picker":  "is gone: leave it out; tieBreak chooses among equal endpoints",
}

// unknownField begins the problem of a key that does not exist.
const unknownField = "unknown field"

// suggest returns the key that was meant by one that its section does not have: one that is spelled alike, or that
// other sections have.
func (dec *decoder) suggest(path, name string, names []string) string {
	if strings.HasPrefix(path, "tenantPolicies.") && name == "tier" { // the glossary's word
		name = "class"
	}
	if s := spelling.Suggest(name, names); s != "" {
		return s
	}
	var elsewhere []string
	for _, k := range keys() {
		if dec.ours && strings.HasSuffix(k.path, "."+name) && !strings.Contains(k.path, "[]") {
			elsewhere = append(elsewhere, k.path)
		}
	}
	return spelling.Either(elsewhere)
}

func (dec *decoder) decodeMap(path string, node *yaml.Node, target reflect.Value) {
	entries := dec.entries(path, node)
	if len(entries) > 0 && target.IsNil() {
		target.Set(reflect.MakeMap(target.Type()))
	}
	for _, entry := range entries {
		key := reflect.ValueOf(entry[0].Value)
		value := reflect.New(target.Type().Elem()).Elem()
		if old := target.MapIndex(key); old.IsValid() {
			value.Set(old)
		} else if value.Kind() == reflect.Struct {
			setDefaults(value)
		}
		dec.decode(join(path, entry[0].Value), entry[1], value)
		target.SetMapIndex(key, value)
	}
}

func (dec *decoder) decodeList(path string, node *yaml.Node, target reflect.Value) {
	if isNull(node) {
		return
	}
	if node.Kind != yaml.SequenceNode {
		dec.report(path, node, "%s: must be a list", describe(node))
		return
	}
	if len(node.Content) == 0 {
		target.SetZero()
		return
	}
	list := reflect.MakeSlice(target.Type(), len(node.Content), len(node.Content))
	for i, item := range node.Content {
		if list.Index(i).Kind() == reflect.Struct {
			setDefaults(list.Index(i))
		}
		dec.decode(index(path, i), item, list.Index(i))
	}
	target.Set(list)
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }

// describe returns the value found, for a message.
func describe(node *yaml.Node) string {
	const longest = 64
	switch {
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(node):
		return "nothing"
	case len(node.Value) > longest:
		return strconv.Quote(node.Value[:longest]) + "…"
	case node.Tag == "!!str":
		return strconv.Quote(node.Value)
	default:
		return node.Value
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// DecodeInto decodes a YAML document of another kind than a configuration into target, a pointer to a struct, as
// strictly as a configuration. Fields are named by their yaml tags; their types are those of a [Document], or have an
// UnmarshalText, whose error states the allowed values; default tags count, in elements of lists too. lines has the
// line of each path.
func DecodeInto(text []byte, target any) (lines map[string]int, problems Problems) {
	if len(text) > maxTextBytes {
		return nil, Problems{{Message: fmt.Sprintf("larger than %d bytes", maxTextBytes)}}
	}
	root, problems := parseYAML(text)
	dec := newDecoder(nil)
	dec.problems = problems
	setDefaults(reflect.ValueOf(target).Elem())
	if root != nil {
		dec.decode("", root, reflect.ValueOf(target).Elem())
	}
	return dec.lines, dec.problems.locate(dec.lines)
}

// maxTextBytes bounds a document of another kind.
const maxTextBytes = 1 << 20
