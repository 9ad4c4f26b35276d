package extproc

import (
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/weir-epp/weir/pkg/request"
)

// If responses.queueState allows it, a client that wants to slow down by itself asks for the queue's state with the
// request header x-weir-queue-state: 1 (or true). The response has it in these headers, whether a model server made it or
// Weir rejected the request:
//
//	x-weir-queued-ms     how long this request waited for its grant or its rejection, in whole milliseconds; 0: not at all
//	x-weir-queue-length  how many requests wait in the whole queue when the response goes out
//
// No other client is told. The headers are missing where the main filter sees no response headers
// (response_header_mode: SKIP), and where a model server's are so many or so large that Envoy, above its limit, would
// answer 503 in their place.
const (
	queuedHeader      = request.ControlPrefix + "queued-ms"
	queueLengthHeader = request.ControlPrefix + "queue-length"
)

// queueState returns the headers with the queue's state for a request that waited this long.
func (s *shared) queueState(waited time.Duration) []*corev3.HeaderValueOption {
	return []*corev3.HeaderValueOption{
		setHeader(queuedHeader, strconv.FormatInt(waited.Milliseconds(), 10)),
		setHeader(queueLengthHeader, strconv.Itoa(s.controller.Waiting())),
	}
}

// Response headers that leave room for more. Envoy takes 100 and 60 KiB of a model server, by the limits of the cluster,
// and those of its listener, which Limits follow, do not count there.
const (
	mostHeaders      = 100
	roomyHeaderBytes = 60<<10 - 512
)

// crowded reports whether response headers are so many or so large that Envoy may not take so many more.
func crowded(list []*corev3.HeaderValue, more int) bool {
	return len(list) > mostHeaders-more || bytesOf(list) > roomyHeaderBytes
}

// bytesOf returns the size of headers.
func bytesOf(list []*corev3.HeaderValue) (size int) {
	for _, hv := range list {
		size += len(hv.Key) + len(hv.RawValue) + len(hv.Value)
	}
	return size
}
