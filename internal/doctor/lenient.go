package doctor

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// emptyType is the type of the message that replaces an unreadable one.
const emptyType = "type.googleapis.com/google.protobuf.Empty"

// typedStructs are the types that contain another message: its type name, and its content as an object.
var typedStructs = map[string]bool{"xds.type.v3.TypedStruct": true, "udpa.type.v1.TypedStruct": true}

// reader converts trees to messages. It omits fields unknown to this version of Envoy's messages.
type reader struct{ notes *notes }

// message reads a resource into a message, and reports whether that succeeded.
func (r reader) message(from resource, into proto.Message) bool {
	tree, _ := r.resolved(from.tree, from.at, 0).(map[string]any)
	if err := unmarshal(tree, into); err != nil {
		r.notes.add(from.at, "cannot be read: %v", err)
		return false
	}
	return true
}

// deepest is the greatest depth of Anys within Anys: a message at depth n is read n times.
const deepest = 16

// resolved returns a copy of a part of a tree in which each Any has a known type and valid content. Others become empty
// messages. within is the number of messages around the part; at 0 the part is itself a message.
func (r reader) resolved(part any, at Path, within int) any {
	switch part := part.(type) {
	case []any:
		list := make([]any, len(part))
		for i := range part {
			list[i] = r.resolved(part[i], at.add(i), max(within, 1))
		}
		return list
	case map[string]any:
		url, _ := part["@type"].(string)
		inner := max(within, 1)
		if url != "" && within > 0 {
			if inner++; inner > deepest {
				r.notes.add(at, "too many messages in messages, not checked")
				return map[string]any{"@type": emptyType, "value": map[string]any{}}
			}
		}
		object := make(map[string]any, len(part))
		for key, v := range part {
			object[key] = r.resolved(v, at.add(key), inner)
		}
		switch {
		case within == 0:
			delete(object, "@type")
		case url != "":
			return r.known(object, url, at)
		}
		return object
	case map[any]any:
		return nil // keys other than strings: no message of Envoy's has them
	default:
		return part
	}
}

// known returns the tree of an Any if it is readable, otherwise that of an empty message.
func (r reader) known(object map[string]any, url string, at Path) any {
	name := url[strings.LastIndexByte(url, '/')+1:]
	if typedStructs[name] {
		_, inner := under(nil, object, "type_url")
		content, _ := object["value"].(map[string]any)
		if url, _ = inner.(string); url == "" || content == nil {
			return map[string]any{"@type": emptyType, "value": map[string]any{}}
		}
		object, name = content, url[strings.LastIndexByte(url, '/')+1:]
		object["@type"] = url
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		r.notes.unknown(at, name)
		return map[string]any{"@type": emptyType, "value": map[string]any{}}
	}
	if isWellKnown(name) {
		return object
	}
	content := make(map[string]any, len(object))
	for key, v := range object {
		if key != "@type" {
			content[key] = v
		}
	}
	if err := unmarshal(content, kind.New().Interface()); err != nil {
		r.notes.add(at, "%s cannot be read: %v", name, err)
		return map[string]any{"@type": emptyType, "value": map[string]any{}}
	}
	object["@type"] = "type.googleapis.com/" + name
	return object
}

// isWellKnown reports whether a type has its own JSON form, under the key value.
func isWellKnown(name string) bool { return strings.HasPrefix(name, "google.protobuf.") }

func unmarshal(tree map[string]any, into proto.Message) error {
	text, err := json.Marshal(tree)
	if err != nil {
		return fmt.Errorf("keys must be texts: %w", err)
	}
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, into)
}
