package config

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/weir-epp/weir/internal/spelling"
	"github.com/weir-epp/weir/pkg/invalid"
	"github.com/weir-epp/weir/pkg/request"
)

// Each limit is checked by the package that relies on it, in terms of its own fields. The sets tags map these fields to
// keys of the document.

// problemsOfParts returns the problems that the packages find in the converted document, in terms of the document's
// keys.
func (d *Document) problemsOfParts() Problems {
	controller, streams, kept, records := d.FlowcontrolConfig(), d.ExtprocConfig(), d.RecordingConfig(), d.SinkConfig()
	return slices.Concat(
		d.inKeys(controllerPart, controller.Validate()),
		d.inKeys(streamsPart, streams.Validate()),
		d.inKeys(schedulingPart, d.SchedulingConfig().Validate()),
		d.inKeys(recordingPart, kept.Validate()),
		d.inKeys(sinkPart, records.Validate()),
	)
}

// Refused returns the problems that a running controller has with this document, in terms of the document's keys.
func (d *Document) Refused(err error) error { return d.inKeys(controllerPart, err).err() }

// inKeys returns a package's problems with the keys and the values of the document.
func (d *Document) inKeys(part string, err error) Problems {
	var ps Problems
	for _, p := range invalid.Of(err) {
		key := keyOf(part, p.Path)
		found := p.Found()
		switch p.Value.(type) {
		case string, nil:
		default: // in the package's unit
			if value, ok := valueAt(reflect.ValueOf(*d), key); ok && !slices.Contains(composite, value.Kind()) {
				found = fmt.Sprint(value.Interface())
			}
		}
		message := p.Want(func(other invalid.Path) string { return nameBeside(key, keyOf(part, other)) })
		if word, ok := p.Value.(string); ok {
			message += spelling.Suggest(word, p.Known)
		}
		ps = append(ps, Problem{Path: pathText(key), Found: found, Message: message})
	}
	return ps
}

// composite lists the kinds of values that are too long for a message.
var composite = []reflect.Kind{reflect.Slice, reflect.Map, reflect.Struct}

// keyOf returns the key of a package's field. Its steps are names of keys (string), indexes (int) and keys of maps
// (invalid.Key).
func keyOf(part string, field invalid.Path) invalid.Path {
	pattern := field.Pattern()
	for k := range tagged("sets") {
		for _, own := range k.sets(part) {
			switch elements := field.Elements(); {
			case k.path == "tenantPolicies[].maxClass" && own == pattern && elements[0] == invalid.Key(request.OtherTenants):
				return invalid.At("criticality", "maxClass")
			case own == pattern:
				return pathOf(k.path, elements)
			case own+"[]" == pattern:
				return pathOf(k.path+"[]", elements)
			}
		}
	}
	return field // TestEveryFieldHasItsKey
}

// pathText returns a key as messages spell it: tiers[3].queueSize, flows.weights.team-a.
func pathText(key invalid.Path) string {
	text := ""
	for _, step := range key {
		switch step := step.(type) {
		case int:
			text = index(text, step)
		default:
			text = join(text, fmt.Sprint(step))
		}
	}
	return text
}

// nameBeside returns the name of another key in a message about key: without the section if both are in the same one.
func nameBeside(key, other invalid.Path) string {
	n := len(other) - 1
	if n > 0 && n < len(key) && slices.Equal(key[:len(key)-1], other[:n]) {
		return pathText(other[n:])
	}
	return pathText(other)
}

// valueAt returns the value at a key; false if there is none.
func valueAt(v reflect.Value, key invalid.Path) (reflect.Value, bool) {
	for _, step := range key {
		switch step := step.(type) {
		case string:
			var ok bool
			if v, ok = lookUp(v, step); !ok {
				return v, false
			}
		case int:
			if v.Kind() != reflect.Slice || step >= v.Len() {
				return v, false
			}
			v = v.Index(step)
		case invalid.Key:
			if v.Kind() != reflect.Map {
				return v, false
			}
			if v = v.MapIndex(reflect.ValueOf(string(step))); !v.IsValid() {
				return v, false
			}
		}
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
	}
	return v, true
}
