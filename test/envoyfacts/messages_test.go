package envoyfacts

import (
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	mode "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	httpstatus "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// destinationHeader is the header that names the endpoint to Envoy.
const destinationHeader = "x-gateway-destination-endpoint"

// header returns a message's header from raw_value, Envoy's field for it, or else from value, marked so that tests
// notice.
func header(headers *extproc.HttpHeaders, name string) string {
	for _, h := range headers.GetHeaders().GetHeaders() {
		if h.GetKey() == name {
			if h.GetValue() != "" {
				return "in value, not in raw_value: " + h.GetValue()
			}
			return string(h.GetRawValue())
		}
	}
	return ""
}

func setHeaders(pairs ...string) *extproc.HeaderMutation {
	mutation := &extproc.HeaderMutation{}
	for i := 0; i < len(pairs); i += 2 {
		mutation.SetHeaders = append(mutation.SetHeaders, &core.HeaderValueOption{
			Header:       &core.HeaderValue{Key: pairs[i], RawValue: []byte(pairs[i+1])},
			AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		})
	}
	return mutation
}

// requestHeaders answers the request headers. Envoy then sends the request with these headers set.
func requestHeaders(pairs ...string) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestHeaders{
		RequestHeaders: &extproc.HeadersResponse{Response: &extproc.CommonResponse{HeaderMutation: setHeaders(pairs...)}},
	}}
}

// withoutBody adds to an answer to the request headers that the processor does not want the body.
func withoutBody(answer *extproc.ProcessingResponse) *extproc.ProcessingResponse {
	answer.ModeOverride = &mode.ProcessingMode{
		RequestHeaderMode:   mode.ProcessingMode_SEND,
		RequestBodyMode:     mode.ProcessingMode_NONE,
		RequestTrailerMode:  mode.ProcessingMode_SKIP,
		ResponseHeaderMode:  mode.ProcessingMode_SEND,
		ResponseBodyMode:    mode.ProcessingMode_NONE,
		ResponseTrailerMode: mode.ProcessingMode_SEND,
	}
	return answer
}

// withMetadata adds dynamic metadata {namespace: {key: value}} to an answer.
func withMetadata(answer *extproc.ProcessingResponse, namespace, key, value string) *extproc.ProcessingResponse {
	answer.DynamicMetadata = &structpb.Struct{Fields: map[string]*structpb.Value{
		namespace: structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			key: structpb.NewStringValue(value),
		}}),
	}}
	return answer
}

// requestBody answers a complete request body. Envoy then sends it with these headers set.
func requestBody(pairs ...string) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestBody{
		RequestBody: &extproc.BodyResponse{Response: &extproc.CommonResponse{HeaderMutation: setHeaders(pairs...)}},
	}}
}

// withBody replaces the body in an answer to a complete request body.
func withBody(answer *extproc.ProcessingResponse, body string) *extproc.ProcessingResponse {
	answer.GetRequestBody().GetResponse().BodyMutation = &extproc.BodyMutation{
		Mutation: &extproc.BodyMutation_Body{Body: []byte(body)},
	}
	return answer
}

// echoRequest sends a piece of a request body back, as FULL_DUPLEX_STREAMED requires.
func echoRequest(body *extproc.HttpBody) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestBody{
		RequestBody: &extproc.BodyResponse{Response: echo(body)},
	}}
}

// echoResponse sends a piece of a response body back, as FULL_DUPLEX_STREAMED requires.
func echoResponse(body *extproc.HttpBody) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseBody{
		ResponseBody: &extproc.BodyResponse{Response: echo(body)},
	}}
}

func echo(body *extproc.HttpBody) *extproc.CommonResponse {
	return &extproc.CommonResponse{BodyMutation: &extproc.BodyMutation{
		Mutation: &extproc.BodyMutation_StreamedResponse{StreamedResponse: &extproc.StreamedBodyResponse{
			Body: body.GetBody(), EndOfStream: body.GetEndOfStream(),
		}},
	}}
}

func responseHeaders() *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseHeaders{
		ResponseHeaders: &extproc.HeadersResponse{},
	}}
}

func responseBody() *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseBody{
		ResponseBody: &extproc.BodyResponse{},
	}}
}

func responseTrailers() *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseTrailers{
		ResponseTrailers: &extproc.TrailersResponse{},
	}}
}

// rejection is Weir's rejection: 503 with a JSON body, Retry-After, and the reason for Envoy's access log.
func rejection(reason string) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ImmediateResponse{
		ImmediateResponse: &extproc.ImmediateResponse{
			Status:  &httpstatus.HttpStatus{Code: httpstatus.StatusCode_ServiceUnavailable},
			Headers: setHeaders("content-type", "application/json", "retry-after", "7", "x-weir-reason", reason),
			Body:    []byte(rejectionBody),
			Details: reason,
		},
	}}
}

const rejectionBody = `{"error":{"message":"rejected","type":"overloaded","code":"rejected","param":null}}`

func overrideTimeout(d time.Duration) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{OverrideMessageTimeout: durationpb.New(d)}
}

// kind returns the name of a message's kind: "request_headers", "response_body" and so on.
func kind(message *extproc.ProcessingRequest) string {
	switch message.GetRequest().(type) {
	case *extproc.ProcessingRequest_RequestHeaders:
		return "request_headers"
	case *extproc.ProcessingRequest_RequestBody:
		return "request_body"
	case *extproc.ProcessingRequest_RequestTrailers:
		return "request_trailers"
	case *extproc.ProcessingRequest_ResponseHeaders:
		return "response_headers"
	case *extproc.ProcessingRequest_ResponseBody:
		return "response_body"
	case *extproc.ProcessingRequest_ResponseTrailers:
		return "response_trailers"
	default:
		return strings.TrimSpace(message.String())
	}
}

// want takes the next message, which must be of this kind.
func (s *stream) want(wanted string) *extproc.ProcessingRequest {
	s.t.Helper()
	message := s.next()
	if got := kind(message); got != wanted {
		s.t.Fatalf("message is %s, want %s: %v", got, wanted, message)
	}
	return message
}
