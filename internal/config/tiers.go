package config

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-epp/weir/internal/spelling"
)

// decodeTiers overlays a list of tiers. A listed tier changes only the fields that it gives. The list changes the known
// tiers in place, and another name is a problem; with replaceTiers it is the whole list.
func (dec *decoder) decodeTiers(path string, node *yaml.Node, target reflect.Value) {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	known, _ := reflect.TypeAssert[[]Tier](target)
	if node.Kind != yaml.SequenceNode || len(node.Content) == 0 {
		dec.decodeList(path, node, target)
		return
	}
	dec.lines[path] = node.Line
	names := Document{Tiers: known}.TierNames()
	listed := make([]Tier, len(node.Content))
	ranks := make([]int, len(node.Content))
	for i, item := range node.Content {
		ranks[i] = slices.IndexFunc(known, func(t Tier) bool { return t.Name == nameOf(item) })
	}
	whole := dec.replaceTiers
	for i, item := range node.Content {
		place := i // among the tiers in use, which is where all else looks for it
		if name := nameOf(item); !whole && ranks[i] < 0 {
			dec.decode(index(path, ^i), item, reflect.ValueOf(&listed[i]).Elem()) // for its other problems
			dec.report(index(path, ^i)+".name", item, "%q: not a tier of the profile (%s)%s; to use this list instead of the "+
				"profile's, add the line \"replaceTiers: true\"", name, strings.Join(names, ", "), spelling.Suggest(name, names))
			continue
		}
		if !whole {
			place = ranks[i]
		}
		if ranks[i] >= 0 {
			listed[i] = known[ranks[i]]
		} else {
			setDefaults(reflect.ValueOf(&listed[i]).Elem())
		}
		dec.decode(index(path, place), item, reflect.ValueOf(&listed[i]).Elem())
	}
	if whole {
		target.Set(reflect.ValueOf(listed))
		return
	}
	if slices.Contains(ranks, -1) {
		return // what the tiers of the profile are is not what was meant
	}
	if !slices.IsSorted(ranks) {
		dec.report(path, node, "in another order than the profile's tiers: list them highest first, as in the profile")
	}
	merged := slices.Clone(known)
	for i, rank := range ranks {
		if slices.Contains(ranks[:i], rank) {
			dec.report(index(path, ^i), node.Content[i], "%s: listed twice", listed[i].Name)
		}
		merged[rank] = listed[i]
	}
	target.Set(reflect.ValueOf(merged))
}

// tierIndex finds a tier in a path or a message.
var tierIndex = regexp.MustCompile(`\btiers\[(-?[0-9]+)\]`)

// inText returns the problems with paths that the text has. Its list of tiers changes tiers of the profile by name, so a
// place among the tiers in use says nothing to its author: the tier's name stands there. A tier that the profile lacks,
// or that is listed twice, has its place in the text, which is the complement of the index here.
func (d Document) inText(ps Problems) Problems {
	named := func(text string) string {
		return tierIndex.ReplaceAllStringFunc(text, func(found string) string {
			i, _ := strconv.Atoi(tierIndex.FindStringSubmatch(found)[1])
			switch {
			case i < 0:
				return index("tiers", ^i)
			case d.ReplaceTiers || i >= len(d.Tiers):
				return found
			}
			return "tiers[" + d.Tiers[i].Name + "]"
		})
	}
	for i := range ps {
		ps[i].Path, ps[i].Message = named(ps[i].Path), named(ps[i].Message)
	}
	return ps
}

// TierNames returns the names of the tiers, highest first.
func (d Document) TierNames() []string {
	names := make([]string, len(d.Tiers))
	for i, t := range d.Tiers {
		names[i] = t.Name
	}
	return names
}

// nameOf returns the name that the mapping of a tier gives; empty if it gives none.
func nameOf(node *yaml.Node) string {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.MappingNode {
		return ""
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == "name" {
			return node.Content[i+1].Value
		}
	}
	return ""
}
