package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extprocfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// asked is a kind of request in an Envoy's form.
type asked struct {
	model                     bool   // a trusted header names the model
	body                      string // of the request
	requestBody, responseBody extprocfilterv3.ProcessingMode_BodySendMode
}

// The requests of the scenarios.
var (
	askedHeaders = asked{model: true, body: proxyBody(smallBody), requestBody: extprocfilterv3.ProcessingMode_BUFFERED}
	askedBody    = asked{body: proxyBody(smallBody), requestBody: extprocfilterv3.ProcessingMode_BUFFERED}
	askedStream  = asked{
		model: true, body: usageStreamBody(),
		requestBody:  extprocfilterv3.ProcessingMode_FULL_DUPLEX_STREAMED,
		responseBody: extprocfilterv3.ProcessingMode_FULL_DUPLEX_STREAMED,
	}
)

// recordAnswers sends Weir count concurrent requests like an Envoy, so that each goes to another endpoint, and returns
// the answers. The no-op processor replays them, so that both processors name the same destinations, in header and
// metadata, and leave Envoy in the same mode.
func recordAnswers(ctx context.Context, address string, count int, request asked) ([]*extprocv3.ProcessingResponse, error) {
	answers, err := askWeir(ctx, address, count, request)
	if err != nil {
		return nil, fmt.Errorf("asking Weir for its answers: %w", err)
	}
	buffered := request.requestBody == extprocfilterv3.ProcessingMode_BUFFERED
	for _, answer := range answers {
		switch {
		case buffered && request.model && (answer.GetRequestHeaders() == nil || !skipsBody(answer)):
			return nil, fmt.Errorf("Weir did not answer the headers at once, but: %v", answer)
		case buffered && !request.model && skipsBody(answer):
			return nil, fmt.Errorf("Weir does not want the body: %v", answer)
		}
	}
	return answers, nil
}

// skipsBody reports whether the answer makes Envoy skip the request's body.
func skipsBody(answer *extprocv3.ProcessingResponse) bool {
	override := answer.GetModeOverride()
	return override != nil && override.GetRequestBodyMode() == extprocfilterv3.ProcessingMode_NONE
}

// askWeir returns the answers to concurrent requests: to the headers and, if these did not suffice, to a body in one
// message. Then it ends the requests.
func askWeir(ctx context.Context, address string, count int, request asked) ([]*extprocv3.ProcessingResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel() // ends the streams
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	var answers []*extprocv3.ProcessingResponse
	for range count {
		stream, err := extprocv3.NewExternalProcessorClient(connection).Process(ctx)
		if err != nil {
			return nil, err
		}
		own, err := request.ask(stream)
		if err != nil {
			return nil, err
		}
		answers = append(answers, own...)
	}
	return answers, nil
}

// ask sends the request and returns the answers that name its destination, and those before.
func (a asked) ask(stream extprocv3.ExternalProcessor_ProcessClient) ([]*extprocv3.ProcessingResponse, error) {
	err := stream.Send(&extprocv3.ProcessingRequest{
		Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{
			Headers: asEnvoySends(proxyHeader(a.model), len(a.body)),
		}},
		ProtocolConfig: &extprocv3.ProtocolConfiguration{RequestBodyMode: a.requestBody, ResponseBodyMode: a.responseBody},
	})
	if err != nil {
		return nil, err
	}
	sendBody := func() error {
		return stream.Send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{
			RequestBody: &extprocv3.HttpBody{Body: []byte(a.body), EndOfStream: true},
		}})
	}
	streamed := a.requestBody == extprocfilterv3.ProcessingMode_FULL_DUPLEX_STREAMED
	if streamed { // Weir replies to the headers when it has the body
		if err := sendBody(); err != nil {
			return nil, err
		}
	}
	first, err := stream.Recv()
	if err != nil || streamed || skipsBody(first) {
		return []*extprocv3.ProcessingResponse{first}, err
	}
	if err := sendBody(); err != nil {
		return nil, err
	}
	second, err := stream.Recv()
	return []*extprocv3.ProcessingResponse{first, second}, err
}

// asEnvoySends returns the headers of a POST in the order and the form of Envoy's messages.
func asEnvoySends(header http.Header, bodyBytes int) *corev3.HeaderMap {
	headers := &corev3.HeaderMap{}
	add := func(name, value string) {
		headers.Headers = append(headers.Headers, &corev3.HeaderValue{Key: name, RawValue: []byte(value)})
	}
	add(":authority", "127.0.0.1")
	add(":path", proxyPath)
	add(":method", http.MethodPost)
	add(":scheme", "http")
	add("content-length", strconv.Itoa(bodyBytes))
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			add(strings.ToLower(name), value)
		}
	}
	return headers
}
