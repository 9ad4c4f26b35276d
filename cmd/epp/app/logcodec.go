package app

import (
	"fmt"

	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/weir-epp/weir/pkg/extproc/codec"
)

// maxLogMessage is the longest message of an access log that is decoded, in bytes. Envoy's have 16 KiB unless it is
// configured otherwise, or a record is longer than that.
const maxLogMessage = 4 << 20

// boundedLogs is Weir's codec, but refuses long messages of access logs, which would take many times their length
// decoded. gRPC itself has one limit for all services, and ext_proc needs room for bodies.
type boundedLogs struct{ encoding.CodecV2 }

func newBoundedLogs() encoding.CodecV2 { return boundedLogs{codec.New()} }

// Unmarshal implements encoding.CodecV2. An error ends the stream.
func (c boundedLogs) Unmarshal(data mem.BufferSlice, v any) error {
	if _, log := v.(*alsv3.StreamAccessLogsMessage); log && data.Len() > maxLogMessage {
		return fmt.Errorf("app: a message of an access log has %d bytes, and %d are the most", data.Len(), maxLogMessage)
	}
	return c.CodecV2.Unmarshal(data, v)
}
