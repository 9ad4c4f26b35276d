package codec

import (
	"strings"
	"unsafe"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"
)

// codec handles Envoy's messages, and passes all other messages to gRPC's own codec of Protobuf.
type codec struct{ encoding.CodecV2 }

// New returns the codec, for grpc.ForceServerCodecV2. It is safe for concurrent use.
func New() encoding.CodecV2 { return codec{encoding.GetCodecV2(proto.Name)} }

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*extprocv3.ProcessingRequest)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	own := copied(data)
	if Read(own, m) {
		return nil
	}
	return protobuf.Unmarshal(own, m) // which resets m first
}

// copied returns a copy of the data. Unlike make, a Builder does not clear its memory first, which saves a pass over a
// large body.
func copied(data mem.BufferSlice) []byte {
	var b strings.Builder
	b.Grow(data.Len())
	for _, part := range data {
		b.Write(part.ReadOnlyData())
	}
	return unsafe.Slice(unsafe.StringData(b.String()), b.Len())
}

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if r, ok := v.(*extprocv3.ProcessingResponse); ok {
		if b := bytesOf(r); len(b) > 0 {
			return mem.BufferSlice{mem.SliceBuffer(b)}, nil
		}
	}
	return c.CodecV2.Marshal(v)
}
