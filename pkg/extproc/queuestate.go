package extproc

import (
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/weir-epp/weir/pkg/request"
)

// If responses.queueState permits it, a client can request the queue's state with the request header
// x-weir-queue-state: 1 (or true), in order to slow down by itself. Both a model server's response and a rejection then
// have these headers:
//
//	x-weir-queued-ms     how long this request waited for its grant or its rejection, in whole milliseconds; 0: not at all
//	x-weir-queue-length  how many requests wait in the whole queue when the response goes out
//
// The headers are missing if the main filter sees no response headers (response_header_mode: SKIP), or if the model
// server's headers are so many or so large that with these Envoy would exceed its limit and answer 503.
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

// The most response headers that leave room for more. Envoy takes 100 headers and 60 KiB from a model server, by the
// limits of the cluster. The listener's limits, on which Limits is based, do not apply there.
const (
	mostHeaders      = 100
	roomyHeaderBytes = 60<<10 - 512
)

// crowded reports whether Envoy may not take more additional response headers.
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
