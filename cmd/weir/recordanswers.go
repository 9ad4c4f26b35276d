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

// recordAnswers asks Weir, as the recommended Envoy would, for its answers to count concurrent requests, so that each
// goes to another endpoint. The no-op processor replays them, so that both processors name the same destinations, in
// header and metadata, and leave Envoy in the same mode.
func recordAnswers(ctx context.Context, address string, count int) ([]*extprocv3.ProcessingResponse, error) {
	answers, err := askWeir(ctx, address, count, proxyHeader(true), smallBody)
	if err != nil {
		return nil, err
	}
	for _, answer := range answers {
		if answer.GetRequestHeaders() == nil || !skipsBody(answer) {
			return nil, fmt.Errorf("Weir did not answer the headers at once, but: %v", answer)
		}
	}
	return answers, nil
}

// checkBodies returns an error unless Weir wants the body of a request whose headers do not name the model, which the
// scenarios with a body are meant to measure.
func checkBodies(ctx context.Context, address string) error {
	answers, err := askWeir(ctx, address, 1, proxyHeader(false), smallBody)
	if err != nil {
		return err
	}
	if skipsBody(answers[0]) {
		return fmt.Errorf("Weir does not want the body: %v", answers[0])
	}
	return nil
}

// skipsBody reports whether the answer tells Envoy not to send the request's body.
func skipsBody(answer *extprocv3.ProcessingResponse) bool {
	override := answer.GetModeOverride()
	return override != nil && override.GetRequestBodyMode() == extprocfilterv3.ProcessingMode_NONE
}

// askWeir returns the first answers to concurrent requests, and then ends these.
func askWeir(
	ctx context.Context, address string, count int, header http.Header, bodyBytes int,
) ([]*extprocv3.ProcessingResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel() // ends the streams
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("asking Weir for its answers: %w", err)
	}
	defer func() { _ = connection.Close() }()
	message := &extprocv3.ProcessingRequest{
		Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{
			Headers: asEnvoySends(header, bodyBytes),
		}},
		ProtocolConfig: &extprocv3.ProtocolConfiguration{
			RequestBodyMode:  extprocfilterv3.ProcessingMode_BUFFERED,
			ResponseBodyMode: extprocfilterv3.ProcessingMode_NONE,
		},
	}
	var answers []*extprocv3.ProcessingResponse
	for range count {
		stream, err := extprocv3.NewExternalProcessorClient(connection).Process(ctx)
		if err != nil {
			return nil, fmt.Errorf("asking Weir for its answers: %w", err)
		}
		if err := stream.Send(message); err != nil {
			return nil, fmt.Errorf("asking Weir for its answers: %w", err)
		}
		answer, err := stream.Recv()
		if err != nil {
			return nil, fmt.Errorf("asking Weir for its answers: %w", err)
		}
		answers = append(answers, answer)
	}
	return answers, nil
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
