package codec

import (
	"math"
	"slices"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// maxDepth is the largest depth of nested structs and lists. Claims of a token are 3 deep.
const maxDepth = 32

// The tags of a Struct, a ListValue and a Value.
const (
	itemTag = 1<<fieldShift | wireBytes // an entry of a Struct, a Value of a ListValue

	doubleTag = 2<<fieldShift | wireFixed64
	stringTag = 3<<fieldShift | wireBytes
	boolTag   = 4<<fieldShift | wireVarint
	structTag = 5<<fieldShift | wireBytes
	listTag   = 6<<fieldShift | wireBytes
)

// readMetadata reads the metadata of a message, and the filters' structs only if structs is set.
func readMetadata(b []byte, message *extprocv3.ProcessingRequest, structs bool) bool {
	m := &corev3.Metadata{}
	message.MetadataContext = m
	f := fields{rest: b}
	for f.next() {
		ok := true
		switch f.tag {
		case filterMetadataTag:
			if structs {
				m.FilterMetadata, ok = addStruct(m.FilterMetadata, f.bytes)
			}
		case typedMetadataTag:
			ok = addAny(m, f.bytes)
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	return !f.bad
}

// addAny adds an entry of the typed metadata.
func addAny(m *corev3.Metadata, entry []byte) bool {
	key, value, ok := readEntry(entry)
	url, content, packed := readEntry(value) // an Any has the fields of an entry
	if !ok || !packed {
		return false
	}
	if m.TypedFilterMetadata == nil {
		m.TypedFilterMetadata = make(map[string]*anypb.Any, 1)
	}
	m.TypedFilterMetadata[key] = &anypb.Any{TypeUrl: url, Value: slices.Clip(content)}
	return true
}

// readEntry reads an entry of a map from strings to messages.
func readEntry(b []byte) (key string, value []byte, ok bool) {
	f := fields{rest: b}
	for f.next() {
		switch f.tag {
		case keyTag:
			if !utf8.Valid(f.bytes) {
				return "", nil, false
			}
			key = string(f.bytes)
		case valueTag:
			if value != nil {
				return "", nil, false
			}
			value = f.bytes
		default:
			return "", nil, false
		}
	}
	return key, value, !f.bad
}

// addStruct adds an entry of a map from strings to structs.
func addStruct(m map[string]*structpb.Struct, entry []byte) (map[string]*structpb.Struct, bool) {
	key, value, ok := readEntry(entry)
	if !ok {
		return m, false
	}
	s := &structpb.Struct{}
	if m == nil {
		m = make(map[string]*structpb.Struct, 1)
	}
	m[key] = s
	return m, readStruct(value, s, 0)
}

func readStruct(b []byte, s *structpb.Struct, depth int) bool {
	f := fields{rest: b}
	for f.next() {
		if f.tag != itemTag || depth == maxDepth {
			return false
		}
		key, value, ok := readEntry(f.bytes)
		if !ok {
			return false
		}
		if s.Fields == nil {
			s.Fields = make(map[string]*structpb.Value, 1)
		}
		if s.Fields[key], ok = readValue(value, depth+1); !ok {
			return false
		}
	}
	return !f.bad
}

func readValue(b []byte, depth int) (v *structpb.Value, ok bool) {
	f := fields{rest: b}
	for f.next() {
		if v != nil {
			return nil, false
		}
		switch f.tag {
		case stringTag:
			if !utf8.Valid(f.bytes) {
				return nil, false
			}
			v = structpb.NewStringValue(string(f.bytes))
		case doubleTag:
			v = structpb.NewNumberValue(math.Float64frombits(f.number))
		case boolTag:
			v = structpb.NewBoolValue(protowire.DecodeBool(f.number))
		case structTag:
			s := &structpb.Struct{}
			if v = structpb.NewStructValue(s); !readStruct(f.bytes, s, depth) {
				return nil, false
			}
		case listTag:
			l := &structpb.ListValue{}
			if v = structpb.NewListValue(l); !readList(f.bytes, l, depth) {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	if v == nil {
		v = &structpb.Value{}
	}
	return v, !f.bad
}

func readList(b []byte, l *structpb.ListValue, depth int) bool {
	f := fields{rest: b}
	for f.next() {
		if f.tag != itemTag || depth == maxDepth {
			return false
		}
		v, ok := readValue(f.bytes, depth+1)
		if !ok {
			return false
		}
		l.Values = append(l.Values, v)
	}
	return !f.bad
}
