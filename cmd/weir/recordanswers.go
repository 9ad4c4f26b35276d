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

// recordAnswers asks Weir, as the recommended Envoy would, for its answers to so many requests that are in flight at the
// same time, so that each goes to another endpoint: what the no-op processor then says, so that both name the same
// destinations, in header and metadata, and leave Envoy in the same mode.
func recordAnswers(
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
		if answer.GetRequestHeaders() == nil {
			return nil, fmt.Errorf("Weir did not answer the headers at once, but: %v", answer)
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

// asEnvoySends are the headers of a POST in the order and the form of Envoy's messages.
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
