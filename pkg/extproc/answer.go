package extproc

import (
	"math/bits"
	"strconv"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// maxChunk is the most that Envoy takes in one message of a body that is sent back.
const maxChunk = 64 << 10

// destinationNamespace is where the data plane looks for the destination in metadata.
const destinationNamespace = "envoy.lb"

// The empty answers. They are shared by all streams: to send a message is to read it.
var (
	emptyRequestHeaders = &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestHeaders{
		RequestHeaders: &extprocv3.HeadersResponse{},
	}}
	emptyRequestBody = &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestBody{
		RequestBody: &extprocv3.BodyResponse{},
	}}
	emptyRequestTrailers = &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestTrailers{
		RequestTrailers: &extprocv3.TrailersResponse{},
	}}
	emptyResponseHeaders = &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseHeaders{
		ResponseHeaders: &extprocv3.HeadersResponse{},
	}}
	emptyResponseBody = &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseBody{
		ResponseBody: &extprocv3.BodyResponse{},
	}}
	emptyResponseTrailers = &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseTrailers{
		ResponseTrailers: &extprocv3.TrailersResponse{},
	}}
)

// phase is the message of Envoy that an answer with header mutations answers.
type phase uint8

const (
	headersPhase phase = iota
	bodyPhase
)

// answerKey is all that an ordinary answer depends on.
type answerKey struct {
	// destination is the ordered list of endpoints; "" names none.
	destination string
	// remove has a bit for each control header to remove.
	remove uint64
	phase  phase
	// noBody overrides the request body's mode to NONE; responseBody is then the mode to keep for the answer, and
	// noHeaders keeps the response headers from being sent.
	noBody       bool
	noHeaders    bool
	responseBody modev3.ProcessingMode_BodySendMode
}

// answerCache keeps answers for their next use: most requests of a pool get one of few. It is emptied when full.
type answerCache struct {
	mu      sync.RWMutex
	answers map[answerKey]*extprocv3.ProcessingResponse
}

// maxAnswers bounds the cache: some 1 KB each.
const maxAnswers = 4096

// answer is the answer for k, which nobody may change.
func (c *compiled) answer(k answerKey) *extprocv3.ProcessingResponse {
	c.answers.mu.RLock()
	r := c.answers.answers[k]
	c.answers.mu.RUnlock()
	if r != nil {
		return r
	}
	r = c.newAnswer(k, &extprocv3.CommonResponse{HeaderMutation: c.mutation(k)})
	c.answers.mu.Lock()
	if c.answers.answers == nil || len(c.answers.answers) >= maxAnswers {
		c.answers.answers = make(map[answerKey]*extprocv3.ProcessingResponse)
	}
	c.answers.answers[k] = r
	c.answers.mu.Unlock()
	return r
}

// mutation names the destination and removes the control headers; nil when there is nothing to do.
func (c *compiled) mutation(k answerKey) *extprocv3.HeaderMutation {
	if k.destination == "" && k.remove == 0 {
		return nil
	}
	m := &extprocv3.HeaderMutation{}
	if k.destination != "" {
		m.SetHeaders = []*corev3.HeaderValueOption{setHeader(destinationHeader, k.destination)}
	}
	for rest := k.remove; rest != 0; rest &= rest - 1 {
		m.RemoveHeaders = append(m.RemoveHeaders, c.names.names[bits.TrailingZeros64(rest)])
	}
	return m
}

// newAnswer wraps common into the answer to k's phase.
func (c *compiled) newAnswer(k answerKey, common *extprocv3.CommonResponse) *extprocv3.ProcessingResponse {
	common.ClearRouteCache = c.ClearRouteCache && common.GetHeaderMutation() != nil
	r := &extprocv3.ProcessingResponse{}
	switch k.phase {
	case headersPhase:
		r.Response = &extprocv3.ProcessingResponse_RequestHeaders{RequestHeaders: &extprocv3.HeadersResponse{Response: common}}
	case bodyPhase:
		r.Response = &extprocv3.ProcessingResponse_RequestBody{RequestBody: &extprocv3.BodyResponse{Response: common}}
	}
	if k.destination != "" {
		r.DynamicMetadata = destinationMetadata(k.destination)
	}
	if k.noBody {
		// An override replaces the whole mode. Response trailers are what makes the stream live until the answer
		// has ended, so they are asked for even where the base does not.
		r.ModeOverride = &modev3.ProcessingMode{
			RequestBodyMode:     modev3.ProcessingMode_NONE,
			RequestTrailerMode:  modev3.ProcessingMode_SKIP,
			ResponseHeaderMode:  modev3.ProcessingMode_SEND,
			ResponseBodyMode:    k.responseBody,
			ResponseTrailerMode: modev3.ProcessingMode_SEND,
		}
		if k.noHeaders {
			r.ModeOverride.ResponseHeaderMode = modev3.ProcessingMode_SKIP
		}
	}
	return r
}

func destinationMetadata(destination string) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{
		destinationNamespace: structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			destinationHeader: structpb.NewStringValue(destination),
		}}),
	}}
}

// requestChunk sends a part of the request body on, and responseChunk one of the response body.
func requestChunk(b []byte, end bool) *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestBody{
		RequestBody: &extprocv3.BodyResponse{Response: streamed(b, end)},
	}}
}

func responseChunk(b []byte, end bool) *extprocv3.ProcessingResponse {
	return &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseBody{
		ResponseBody: &extprocv3.BodyResponse{Response: streamed(b, end)},
	}}
}

func streamed(b []byte, end bool) *extprocv3.CommonResponse {
	return &extprocv3.CommonResponse{BodyMutation: &extprocv3.BodyMutation{
		Mutation: &extprocv3.BodyMutation_StreamedResponse{
			StreamedResponse: &extprocv3.StreamedBodyResponse{Body: b, EndOfStream: end},
		},
	}}
}

// replaceBody makes common replace the body; Envoy wants the content-length of the new one in the same answer. -1: the
// request has none.
func replaceBody(common *extprocv3.CommonResponse, b []byte, contentLength int64) {
	common.BodyMutation = &extprocv3.BodyMutation{Mutation: &extprocv3.BodyMutation_Body{Body: b}}
	if contentLength < 0 {
		return
	}
	if common.HeaderMutation == nil {
		common.HeaderMutation = &extprocv3.HeaderMutation{}
	}
	common.HeaderMutation.SetHeaders = append(common.HeaderMutation.SetHeaders,
		setHeader("content-length", strconv.FormatInt(contentLength, 10)))
}
