package config

import (
	"fmt"
	"reflect"
	"sync"

	"go.yaml.in/yaml/v3"
)

// Default returns the wfq profile: the values of the original queueing proposal, which every profile changes. It is not
// what a file without a profile gets (DefaultProfile).
func Default() Document {
	var d Document
	setDefaults(reflect.ValueOf(&d).Elem())
	return d
}

// setDefaults sets the fields of a struct, and of the structs in it, to the YAML of their default tags.
func setDefaults(v reflect.Value) {
	dec := decoder{lines: map[string]int{}}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if text, ok := field.Tag.Lookup("default"); ok {
			dec.decode(field.Name, defaultOf(text), v.Field(i))
		} else if field.Type.Kind() == reflect.Struct {
			setDefaults(v.Field(i))
		}
	}
	if len(dec.problems) > 0 {
		panic(fmt.Sprintf("config: defaults of %s: %v", v.Type(), dec.problems))
	}
}

var parsedDefaults sync.Map // text -> *yaml.Node

// defaultOf returns the parsed text of a default tag.
func defaultOf(text string) *yaml.Node {
	if node, ok := parsedDefaults.Load(text); ok {
		return node.(*yaml.Node)
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		panic(fmt.Sprintf("config: default %q: %v", text, err))
	}
	node, _ := parsedDefaults.LoadOrStore(text, document.Content[0])
	return node.(*yaml.Node)
}
