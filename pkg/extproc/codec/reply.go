package codec

import (
	"slices"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/encoding/protowire"
	protobuf "google.golang.org/protobuf/proto"
)

// Encoded returns a reply that means the same as r and is encoded now, once. It may be sent any number of times, and
// nothing may change it. r needs valid UTF-8 wherever it has strings.
func Encoded(r *extprocv3.ProcessingResponse) *extprocv3.ProcessingResponse { return Merged(nil, r) }

// Merged returns an encoded reply that means the encoded shared and own merged, as Protobuf merges messages: what both
// have goes by own, but headers are added and messages merged. The entries of a map are not: the whole entry is own's.
func Merged(shared, own *extprocv3.ProcessingResponse) *extprocv3.ProcessingResponse {
	b, err := protobuf.MarshalOptions{}.MarshalAppend(slices.Clip(bytesOf(shared)), own)
	if err != nil {
		panic("codec: " + err.Error()) // a string that is not UTF-8
	}
	return ofBytes(b)
}

// WithMetadata returns an encoded reply that means the encoded shared with one more namespace of dynamic metadata, which
// has one string. It is what Merged does with such a reply, without a map of maps.
func WithMetadata(shared *extprocv3.ProcessingResponse, namespace, key, value string) *extprocv3.ProcessingResponse {
	const (
		dynamicMetadata    = 8 // of ProcessingResponse
		item               = 1 // of Struct
		name, content      = 1, 2
		ofString, ofStruct = 3, 5 // of Value
	)
	fields := field(field(nil, name, key), content, field(nil, ofString, value))
	inner := field(nil, ofStruct, field(nil, item, fields))
	outer := field(nil, item, field(field(nil, name, namespace), content, inner))
	return ofBytes(field(slices.Clip(bytesOf(shared)), dynamicMetadata, outer))
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
		b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(lengths[i]))
	}
	b = protowire.AppendTag(field(b, 1, body), 2, protowire.VarintType)
	return ofBytes(protowire.AppendVarint(b, protowire.EncodeBool(end)))
}

// field appends a field to a message.
func field[T string | []byte](b []byte, number protowire.Number, value T) []byte {
	b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(len(value)))
	return append(b, value...)
}

// ofBytes returns the reply that is sent as these bytes.
func ofBytes(b []byte) *extprocv3.ProcessingResponse {
	r := &extprocv3.ProcessingResponse{}
	r.ProtoReflect().SetUnknown(b)
	return r
}

// bytesOf returns the bytes of an encoded reply, nil of any other.
func bytesOf(r *extprocv3.ProcessingResponse) []byte {
	if r == nil || r.Response != nil {
		return nil
	}
	return r.ProtoReflect().GetUnknown()
}
