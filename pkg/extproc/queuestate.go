package extproc

import (
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// Where responses.queueState allows it, a client that wants to slow down by itself asks for the queue's state with the
// request header x-weir-queue-state: 1 (or true), and finds it in the answer's headers, in a model server's answer as in
// a rejection:
//
//	x-weir-queued-ms     how long this request waited for its grant or its rejection, in whole milliseconds; 0: not at all
//	x-weir-queue-length  how many requests wait in the whole queue, as the answer goes out
//
// Nobody else is told. Where no response headers come to the main filter (response_header_mode: SKIP) there is nothing
// to write it into.
const (
	queueStateHeader  = controlPrefix + "queue-state"
	queuedHeader      = controlPrefix + "queued-ms"
	queueLengthHeader = controlPrefix + "queue-length"
)

// wantsQueueState reports whether the client has asked, and may be told (responses.queueState).
func (st *stream) wantsQueueState() bool {
	if !st.cfg.Responses.QueueState {
		return false
	}
	v := st.headers.values[slotQueueState]
	return v == "1" || v == "true"
}

// queueState is what the client is told, after a wait of so long.
func (st *stream) queueState(waited time.Duration) []*corev3.HeaderValueOption {
	return []*corev3.HeaderValueOption{
		setHeader(queuedHeader, strconv.FormatInt(waited.Milliseconds(), 10)),
		setHeader(queueLengthHeader, strconv.Itoa(st.server.controller.Waiting())),
	}
}

// answerHeaders is the answer to the response headers.
func (st *stream) answerHeaders() *extprocv3.ProcessingResponse {
	if st.lease == nil || !st.wantsQueueState() {
		return emptyResponseHeaders
	}
	waited, _ := st.lease.Queued()
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseHeaders{
		ResponseHeaders: &extprocv3.HeadersResponse{Response: &extprocv3.CommonResponse{
			HeaderMutation: &extprocv3.HeaderMutation{SetHeaders: st.queueState(waited)},
		}},
	}}
}
