package codec

import (
	"math"
	"slices"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/encoding/protowire"
	protobuf "google.golang.org/protobuf/proto"
)

// Encoded returns a reply with the meaning of r, encoded once. It may be sent any number of times, and must not be
// changed. All strings in r must be valid UTF-8.
func Encoded(r *extprocv3.ProcessingResponse) *extprocv3.ProcessingResponse { return Merged(nil, r) }

// Merged returns an encoded reply of the encoded shared merged with own, by Protobuf's rules: for fields in both, own's
// value counts, but headers are appended and messages merged. Entries of maps are not merged: own's whole entry counts.
func Merged(shared, own *extprocv3.ProcessingResponse) *extprocv3.ProcessingResponse {
	b, err := protobuf.MarshalOptions{}.MarshalAppend(slices.Clip(bytesOf(shared)), own)
	if err != nil {
		panic("codec: " + err.Error()) // a string that is not UTF-8
	}
	return ofBytes(b)
}

// The numbers of fields: of ProcessingResponse, Struct and its entries, and Value.
const (
	dynamicMetadata = 8

	item, name, content                  = 1, 1, 2
	ofNumber, ofString, ofBool, ofStruct = 2, 3, 4, 5
)

// Metadata are the fields of one namespace of dynamic metadata, encoded when added. The zero value has none. Names and
// strings must be valid UTF-8.
type Metadata struct{ fields []byte }

// String adds a string.
func (m *Metadata) String(key, value string) {
	m.add(key, protowire.SizeBytes(len(value)))
	m.fields = field(m.fields, ofString, value)
}

// Number adds a number.
func (m *Metadata) Number(key string, value float64) {
	m.add(key, protowire.SizeFixed64())
	m.fields = protowire.AppendFixed64(protowire.AppendTag(m.fields, ofNumber, protowire.Fixed64Type), math.Float64bits(value))
}

// Bool adds a truth value.
func (m *Metadata) Bool(key string, value bool) {
	m.add(key, 1)
	m.fields = protowire.AppendVarint(protowire.AppendTag(m.fields, ofBool, protowire.VarintType), protowire.EncodeBool(value))
}

// add adds a field up to its Value, which has one field with size bytes after its tag.
func (m *Metadata) add(key string, size int) {
	if m.fields == nil {
		m.fields = make([]byte, 0, 256)
	}
	value := sizeOf(size)
	m.fields = open(m.fields, item, sizeOf(protowire.SizeBytes(len(key)))+sizeOf(protowire.SizeBytes(value)))
	m.fields = open(field(m.fields, name, key), content, value)
}

// Empty reports whether there are no fields.
func (m *Metadata) Empty() bool { return len(m.fields) == 0 }

// WithMetadata returns an encoded reply of the encoded shared plus one namespace of dynamic metadata. It equals Merged
// with such a reply, but without making maps.
func WithMetadata(shared *extprocv3.ProcessingResponse, namespace string, m *Metadata) *extprocv3.ProcessingResponse {
	value := sizeOf(protowire.SizeBytes(len(m.fields)))
	entry := sizeOf(protowire.SizeBytes(len(namespace))) + sizeOf(protowire.SizeBytes(value))
	outer := sizeOf(protowire.SizeBytes(entry))
	before := bytesOf(shared)
	b := append(make([]byte, 0, len(before)+sizeOf(protowire.SizeBytes(outer))), before...)
	b = open(open(b, dynamicMetadata, outer), item, entry)
	b = open(field(b, name, namespace), content, value)
	return ofBytes(field(b, ofStruct, m.fields))
}

// sizeOf returns the length of a field with value bytes after its tag of one byte.
func sizeOf(value int) int { return 1 + value }

// open appends the beginning of a message of length bytes.
func open(b []byte, number protowire.Number, length int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(length))
}

// RequestChunk returns an encoded reply that sends a chunk of a request's body back; it copies the chunk. end is set with
// the last one.
func RequestChunk(body []byte, end bool) *extprocv3.ProcessingResponse { return chunk(3, body, end) }

// ResponseChunk is RequestChunk for the body of a response.
func ResponseChunk(body []byte, end bool) *extprocv3.ProcessingResponse { return chunk(4, body, end) }

func chunk(request protowire.Number, body []byte, end bool) *extprocv3.ProcessingResponse {
	// The fields around the StreamedBodyResponse: of ProcessingResponse, BodyResponse, CommonResponse and BodyMutation.
	around := [...]protowire.Number{request, 1, 3, 3}
	var lengths [len(around)]int
	n := 1 + protowire.SizeBytes(len(body)) + 2 // with the end
	for i := range around {
		lengths[len(around)-1-i] = n
		n = 1 + protowire.SizeBytes(n)
	}
	b := make([]byte, 0, n)
	for i, number := range around {
		b = open(b, number, lengths[i])
	}
	b = protowire.AppendTag(field(b, 1, body), 2, protowire.VarintType)
	return ofBytes(protowire.AppendVarint(b, protowire.EncodeBool(end)))
}

// field appends a field to a message.
func field[T string | []byte](b []byte, number protowire.Number, value T) []byte {
	return append(open(b, number, len(value)), value...)
}

// ofBytes returns the reply that is encoded as these bytes.
func ofBytes(b []byte) *extprocv3.ProcessingResponse {
	r := &extprocv3.ProcessingResponse{}
	r.ProtoReflect().SetUnknown(b)
	return r
}

// bytesOf returns the bytes of an encoded reply; nil for any other reply.
func bytesOf(r *extprocv3.ProcessingResponse) []byte {
	if r == nil || r.Response != nil {
		return nil
	}
	return r.ProtoReflect().GetUnknown()
}
