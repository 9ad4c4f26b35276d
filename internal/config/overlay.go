package config

import (
	"bytes"
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
)

// MarshalOverlay returns the document as a file that names its profile and, apart from that, only the differences from
// it. Decoding it gives an equal document. The profile must exist, and the document must have everything that the
// profile lists in a map or as a tier.
func (d Document) MarshalOverlay() ([]byte, error) {
	profile, err := Profile(d.Profile)
	if err != nil {
		return nil, err
	}
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, head := range [][2]string{{"apiVersion", d.APIVersion}, {"kind", d.Kind}, {"profile", d.Profile}} {
		if err := put(root, head[0], head[1]); err != nil {
			return nil, err
		}
	}
	if n := d.RequestQueueController.WatermarkPerBackend; n != profile.RequestQueueController.WatermarkPerBackend {
		profile.RequestQueueController.deriveBounds(true, true) // as it does where the file is read
	}
	if d.ReplaceTiers {
		if err := put(root, "replaceTiers", true); err != nil {
			return nil, err
		}
		profile.ReplaceTiers = true
	}
	if err := overlayOf(root, reflect.ValueOf(profile), reflect.ValueOf(d)); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("config: writing YAML: %w", err)
	}
	return b.Bytes(), nil
}

// overlayOf adds the fields of a struct that differ from the base to a mapping.
func overlayOf(into *yaml.Node, base, d reflect.Value) error {
	document, _ := reflect.TypeAssert[Document](d)
	all := document.ReplaceTiers // then each tier has to be listed
	for i, name := range fieldNames(d.Type()) {
		from, to := base.Field(i), d.Field(i)
		var err error
		switch {
		case same(from, to):
		case to.Kind() == reflect.Struct:
			section := &yaml.Node{Kind: yaml.MappingNode}
			err = overlayOf(section, from, to)
			into.Content = append(into.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, section)
		case to.Type() == reflect.TypeFor[[]Tier]() && sameNames(from, to):
			list := &yaml.Node{Kind: yaml.SequenceNode}
			for j := range to.Len() {
				tier := &yaml.Node{Kind: yaml.MappingNode}
				if !all && same(from.Index(j), to.Index(j)) {
					continue
				}
				if err = put(tier, "name", to.Index(j).FieldByName("Name").String()); err == nil {
					err = overlayOf(tier, from.Index(j), to.Index(j))
				}
				list.Content = append(list.Content, tier)
			}
			into.Content = append(into.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, list)
		default:
			err = put(into, name, to.Interface())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func put(into *yaml.Node, name string, value any) error {
	var node yaml.Node
	if err := node.Encode(value); err != nil {
		return fmt.Errorf("config: writing YAML: %w", err)
	}
	into.Content = append(into.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, &node)
	return nil
}
