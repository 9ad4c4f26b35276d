package integration

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weir-epp/weir/internal/modelsim"
)

// hostileLimit is Weir's limit for bodies in these tests.
const hostileLimit = 64 << 10

// The ext_proc port should be reachable for Envoy only, but often is not: scanners, a misconfigured proxy or a client
// of another protocol may connect. None of their bytes causes a panic, a leak or growth, and Envoy is still served.
func TestHostileBytes(t *testing.T) {
	t.Parallel()
	s := start(t, setup{
		models: []modelsim.Config{modelsim.Fixed(4, time.Millisecond)},
		config: fmt.Sprintf("limits: { maxBodyBytes: %d }\n", hostileLimit),
		flags:  []string{"--enable-pprof"},
	})
	if got := s.send(ask{}); got.status != 200 {
		t.Fatalf("got %d %v %s", got.status, got.err, got.body)
	}
	s.epp.settled()
	base := s.epp.resources()
	for name, attack := range map[string]func(){
		"garbage":                     s.sendGarbage,
		"a TLS client":                s.sendTLSHello,
		"10,000 connections":          s.openAndClose,
		"a stream that says nothing":  s.sayNothing,
		"messages in absurd orders":   s.sendAbsurdOrders,
		"a header map of 1 MB":        s.sendLargeHeaders,
		"a body in 1-byte chunks":     s.sendCrumbs,
		"a message beyond all limits": s.sendTooLargeMessage,
		"abandoned streams":           s.abandonStreams,
	} {
		s.run(name, func() {
			attack()
			s.epp.settled()
			s.epp.waitFor(0, "weir_extproc_streams")
			s.epp.waitFor(0, "weir_extproc_body_bytes")
			s.epp.unburdened(base)
			if got := s.send(ask{}); got.status != 200 {
				s.t.Errorf("afterwards Envoy got %d %v %s", got.status, got.err, got.body)
			}
		})
	}
}

// dial opens a connection to the ext_proc port. epp must end it by itself or when the test does, whatever it gets.
func (s *scene) dial() net.Conn {
	s.t.Helper()
	conn, err := net.DialTimeout("tcp", s.epp.Address, patience)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

func (s *scene) sendGarbage() {
	// HTTP/2's preface makes the following bytes frames.
	for _, preface := range []string{"", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\nhost: weir\r\n\r\n"} {
		for range 30 {
			garbage := make([]byte, 64<<10)
			_, _ = rand.Read(garbage)
			conn := s.dial()
			_, _ = conn.Write(append([]byte(preface), garbage...)) // an error means that epp has closed the connection
			_, err := io.Copy(io.Discard, conn)
			if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
				s.t.Errorf("epp keeps a connection that sent garbage behind %q", preface)
			}
			_ = conn.Close()
		}
	}
}

func (s *scene) sendTLSHello() {
	for range 30 {
		conn := s.dial()
		if err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).Handshake(); err == nil { //nolint:gosec // nothing is trusted here
			s.t.Error("a TLS handshake with a plain text port went well")
		}
		_ = conn.Close()
	}
}

func (s *scene) openAndClose() {
	var dialers sync.WaitGroup
	for range 20 {
		dialers.Go(func() {
			for range 500 {
				if conn, err := net.DialTimeout("tcp", s.epp.Address, patience); err == nil {
					_ = conn.(*net.TCPConn).SetLinger(0) // leave no ports in TIME_WAIT
					_ = conn.Close()
				}
			}
		})
	}
	dialers.Wait()
}

// processor returns a gRPC client that takes Envoy's place.
func (s *scene) processor() (extprocv3.ExternalProcessorClient, func()) {
	s.t.Helper()
	conn, err := grpc.NewClient(s.epp.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.t.Fatal(err)
	}
	return extprocv3.NewExternalProcessorClient(conn), func() { _ = conn.Close() }
}

// talk sends messages on one stream and reads until the stream ends. It returns the last answer.
func (s *scene) talk(messages ...*extprocv3.ProcessingRequest) (last *extprocv3.ProcessingResponse, err error) {
	s.t.Helper()
	client, hangUp := s.processor()
	defer hangUp()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stream, err := client.Process(ctx)
	if err != nil {
		return nil, err
	}
	go func() {
		for _, m := range messages {
			if stream.Send(m) != nil {
				return // epp has ended the stream; reading says why
			}
		}
		_ = stream.CloseSend()
	}()
	for {
		answer, err := stream.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return last, err
		}
		last = answer
	}
}

func (s *scene) sayNothing() {
	client, hangUp := s.processor()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range 100 {
		if _, err := client.Process(ctx); err != nil {
			s.t.Error(err)
		}
	}
	s.epp.waitFor(100, "weir_extproc_streams")
	hangUp()
}

func (s *scene) sendAbsurdOrders() {
	for _, mode := range []filterv3.ProcessingMode_BodySendMode{
		filterv3.ProcessingMode_NONE, filterv3.ProcessingMode_STREAMED, filterv3.ProcessingMode_BUFFERED,
		filterv3.ProcessingMode_FULL_DUPLEX_STREAMED, 77,
	} {
		kinds := []*extprocv3.ProcessingRequest{
			requestHeaders(mode, "content-type", "application/json"),
			requestBody(chat("tiny", false), true),
			{Request: &extprocv3.ProcessingRequest_RequestTrailers{}},
			{Request: &extprocv3.ProcessingRequest_ResponseHeaders{}},
			{Request: &extprocv3.ProcessingRequest_ResponseBody{ResponseBody: &extprocv3.HttpBody{Body: []byte("data: x\n\n")}}},
			{Request: &extprocv3.ProcessingRequest_ResponseTrailers{}},
			{},
		}
		// Every pair of kinds, then each kind twice, then all of them in reverse.
		for _, a := range kinds {
			for _, b := range kinds {
				if _, err := s.talk(a, b, b, a); err != nil {
					s.t.Errorf("mode %v: %v, %v: %v", mode, a, b, err)
				}
			}
		}
	}
}

func (s *scene) sendLargeHeaders() {
	var many []string
	for range 1024 {
		many = append(many, "x-filler", strings.Repeat("y", 1024))
	}
	answer, err := s.talk(requestHeaders(filterv3.ProcessingMode_BUFFERED, many...))
	if status := answer.GetImmediateResponse().GetStatus().GetCode(); err != nil || status != 413 {
		s.t.Errorf("got status %v, %v, want 413", status, err)
	}
}

func (s *scene) sendCrumbs() {
	body := chat("tiny", false)
	messages := []*extprocv3.ProcessingRequest{requestHeaders(filterv3.ProcessingMode_FULL_DUPLEX_STREAMED)}
	for i := range body {
		messages = append(messages, requestBody(body[i:i+1], i == len(body)-1))
	}
	answer, err := s.talk(messages...)
	if got := answer.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse(); err != nil || !got.GetEndOfStream() {
		s.t.Errorf("got %v, %v, want the end of the body", answer, err)
	}
	// The same without an end: Weir stops at the limit.
	messages = messages[:1]
	crumb := requestBody(" ", false)
	for range hostileLimit + 1 {
		messages = append(messages, crumb)
	}
	answer, err = s.talk(messages...)
	if status := answer.GetImmediateResponse().GetStatus().GetCode(); err != nil || status != 413 {
		s.t.Errorf("without an end: got status %v, %v, want 413", status, err)
	}
}

func (s *scene) sendTooLargeMessage() {
	large := string(bytes.Repeat([]byte{' '}, 16<<20))
	answer, err := s.talk(requestHeaders(filterv3.ProcessingMode_BUFFERED), requestBody(large, true))
	if status := answer.GetImmediateResponse().GetStatus().GetCode(); err != nil || status != 413 {
		s.t.Errorf("got status %v, %v, want 413", status, err)
	}
}

func (s *scene) abandonStreams() {
	client, hangUp := s.processor()
	defer hangUp()
	for i := range 1000 {
		ctx, cancel := context.WithCancel(context.Background())
		if stream, err := client.Process(ctx); err == nil {
			_ = stream.Send(requestHeaders(filterv3.ProcessingMode_FULL_DUPLEX_STREAMED))
			if i%2 == 0 {
				_ = stream.Send(requestBody(chat("tiny", false)[:20], false))
			}
		}
		cancel()
	}
}

// requestHeaders returns the first message of a stream; further headers are name, value, ….
func requestHeaders(body filterv3.ProcessingMode_BodySendMode, further ...string) *extprocv3.ProcessingRequest {
	headers := &corev3.HeaderMap{}
	pairs := append([]string{":method", "POST", ":path", "/v1/chat/completions", ":authority", "weir"}, further...)
	for i := 0; i+1 < len(pairs); i += 2 {
		headers.Headers = append(headers.Headers, &corev3.HeaderValue{Key: pairs[i], RawValue: []byte(pairs[i+1])})
	}
	return &extprocv3.ProcessingRequest{
		Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{Headers: headers}},
		ProtocolConfig: &extprocv3.ProtocolConfiguration{
			RequestBodyMode: body, ResponseBodyMode: filterv3.ProcessingMode_FULL_DUPLEX_STREAMED,
		},
	}
}

func requestBody(part string, end bool) *extprocv3.ProcessingRequest {
	return &extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_RequestBody{
		RequestBody: &extprocv3.HttpBody{Body: []byte(part), EndOfStream: end},
	}}
}
