package codec

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	aiv3 "github.com/envoyproxy/go-control-plane/envoy/data/ai/v3"
	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// messages are Envoy's messages: every kind, with every field that it fills.
func messages(t testing.TB) map[string]*extprocv3.ProcessingRequest {
	t.Helper()
	packed, err := anypb.New(&aiv3.TokenUsage{InputTokens: wrapperspb.UInt64(7), OutputTokens: wrapperspb.UInt64(300)})
	if err != nil {
		t.Fatal(err)
	}
	claims, err := structpb.NewStruct(map[string]any{
		"sub": "team-a", "exp": 1.7e9, "admin": true, "aud": []any{"a", 1.0, []any{}},
		"nested": map[string]any{"a": map[string]any{"b": "c"}}, "": "",
	})
	if err != nil {
		t.Fatal(err)
	}
	metadata := &corev3.Metadata{
		FilterMetadata:      map[string]*structpb.Struct{"envoy.lb": {}, "jwt": claims},
		TypedFilterMetadata: map[string]*anypb.Any{"envoy.ai.token_usage": packed, "empty": {}},
	}
	header := func(pairs ...string) *corev3.HeaderMap {
		m := &corev3.HeaderMap{}
		for i := 0; i < len(pairs); i += 2 {
			m.Headers = append(m.Headers, &corev3.HeaderValue{Key: pairs[i], RawValue: []byte(pairs[i+1])})
		}
		return m
	}
	all := map[string]*extprocv3.ProcessingRequest{
		"nothing": {},
		"request headers": {
			Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{
				Headers: header(":method", "POST", ":path", "/v1/chat/completions", "x-bytes", "\xff\x00", "x-empty", ""), EndOfStream: true,
			}},
			MetadataContext: metadata,
			Attributes:      map[string]*structpb.Struct{"envoy.filters.http.ext_proc": claims},
			ProtocolConfig: &extprocv3.ProtocolConfiguration{
				RequestBodyMode: modev3.ProcessingMode_BUFFERED, ResponseBodyMode: modev3.ProcessingMode_FULL_DUPLEX_STREAMED,
				SendBodyWithoutWaitingForHeaderResponse: true,
			},
			ObservabilityMode: true,
		},
		"values in the other field": {Request: &extprocv3.ProcessingRequest_RequestHeaders{RequestHeaders: &extprocv3.HttpHeaders{
			Headers: &corev3.HeaderMap{Headers: []*corev3.HeaderValue{{Key: "a", Value: "é"}, {}, {Value: "b", RawValue: []byte("c")}}},
		}}},
		"response headers": {
			Request: &extprocv3.ProcessingRequest_ResponseHeaders{ResponseHeaders: &extprocv3.HttpHeaders{
				Headers: header(":status", "200", "content-type", "text/event-stream"),
			}},
			MetadataContext: metadata,
		},
		"no headers": {Request: &extprocv3.ProcessingRequest_ResponseHeaders{ResponseHeaders: &extprocv3.HttpHeaders{}}},
		"request body": {Request: &extprocv3.ProcessingRequest_RequestBody{RequestBody: &extprocv3.HttpBody{
			Body: []byte(strings.Repeat("x", 3000)), EndOfStream: true,
		}}},
		"response body": {Request: &extprocv3.ProcessingRequest_ResponseBody{ResponseBody: &extprocv3.HttpBody{
			Body: []byte("data: {}\n\n"), EndOfStreamWithoutMessage: true,
		}}, MetadataContext: metadata},
		"end of a body":    {Request: &extprocv3.ProcessingRequest_ResponseBody{ResponseBody: &extprocv3.HttpBody{EndOfStream: true}}},
		"request trailers": {Request: &extprocv3.ProcessingRequest_RequestTrailers{RequestTrailers: &extprocv3.HttpTrailers{Trailers: header("a", "b")}}},
		"response trailers": {
			Request:         &extprocv3.ProcessingRequest_ResponseTrailers{ResponseTrailers: &extprocv3.HttpTrailers{Trailers: header()}},
			MetadataContext: metadata,
		},
		"no trailers": {Request: &extprocv3.ProcessingRequest_ResponseTrailers{ResponseTrailers: &extprocv3.HttpTrailers{}}},
	}
	return all
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Read gives every kind of Envoy's messages the meaning of the generated code.
func TestRead(t *testing.T) {
	for name, want := range messages(t) {
		var got extprocv3.ProcessingRequest
		if !Read(asEnvoy(t, want), &got) {
			t.Errorf("%s: not read", name)
		} else if late(&got, want); !proto.Equal(&got, want) {
			t.Errorf("%s:\n got %v\nwant %v", name, &got, want)
		}
	}
}

// lateKind reports whether a message is a body or trailers.
func lateKind(m *extprocv3.ProcessingRequest) bool {
	switch m.Request.(type) {
	case nil, *extprocv3.ProcessingRequest_RequestHeaders, *extprocv3.ProcessingRequest_ResponseHeaders:
		return false
	default:
		return true
	}
}

// late removes from bodies and trailers the metadata behind them, which Read skips.
func late(messages ...*extprocv3.ProcessingRequest) {
	for _, m := range messages {
		if lateKind(m) && m.MetadataContext != nil {
			m.MetadataContext.FilterMetadata = nil
		}
	}
}

// asEnvoy returns the message with its fields in the order of their numbers; Go has the oneof last.
func asEnvoy(t testing.TB, m *extprocv3.ProcessingRequest) []byte {
	t.Helper()
	rest := proto.CloneOf(m)
	rest.Request = nil
	return slices.Concat(marshal(t, &extprocv3.ProcessingRequest{Request: m.Request}), marshal(t, rest))
}

// Read decodes the filters' structs with headers only.
func TestReadLeavesOutStructs(t *testing.T) {
	for name, m := range messages(t) {
		var got extprocv3.ProcessingRequest
		if !Read(asEnvoy(t, m), &got) {
			t.Fatalf("%s: not read", name)
		}
		if want := len(m.GetMetadataContext().GetFilterMetadata()) > 0 && !lateKind(m); want != (got.GetMetadataContext().GetFilterMetadata() != nil) {
			t.Errorf("%s: has structs: %v, want %v", name, !want, want)
		}
	}
}

// Read leaves unexpected fields to the generated code.
func TestReadLeaves(t *testing.T) {
	message := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	field := func(number protowire.Number, value ...[]byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), slices.Concat(value...))
	}
	varint := func(number protowire.Number, value uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), value)
	}
	deep := []byte{}
	for range maxDepth {
		deep = field(6, field(1, deep)) // a list in a list
	}
	structs := []byte{}
	for range maxDepth {
		structs = field(5, field(1, field(2, structs)))
	}
	for name, b := range map[string][]byte{
		"an unknown field":                varint(99, 1),
		"a later kind of message":         field(17, nil),
		"a window update":                 field(13, nil),
		"two messages":                    message(field(4, nil), field(4, nil)),
		"two kinds of messages":           message(field(2, nil), field(4, nil)),
		"a body, then headers":            message(field(5, nil), field(2, nil)),
		"a body, then trailers":           message(field(5, nil), field(7, nil)),
		"lists of trailers twice":         field(7, field(1), field(1)),
		"structs deeper than anybody has": field(8, field(1, field(2, field(1, field(2, structs))))),
		"metadata twice":                  message(field(8, nil), field(8, nil)),
		"protocol configuration twice":    message(field(11, nil), field(11, nil)),
		"lists of headers twice":          field(2, field(1), field(1)),
		"attributes in headers":           field(2, field(2)),
		"a number for a message":          varint(2, 1),
		"a message for a number":          field(10),
		"a fixed32":                       {3<<3 | 5, 0, 0, 0, 0},
		"a group":                         {2<<3 | 3, 2<<3 | 4},
		"field 0":                         varint(0, 1),
		"a name that is not UTF-8":        field(2, field(1, field(1, field(1, []byte("\xff"))))),
		"a value that is not UTF-8":       field(2, field(1, field(1, field(2, []byte("\xff"))))),
		"a namespace that is not UTF-8":   field(8, field(1, field(1, []byte("\xff")))),
		"a type that is not UTF-8":        field(8, field(2, field(2, field(1, []byte("\xff"))))),
		"metadata that is not UTF-8":      field(8, field(1, field(2, field(1, field(2, field(3, []byte("\xff"))))))),
		"two values of an entry":          field(8, field(1, field(2, nil), field(2, nil))),
		"two kinds of a value":            field(8, field(1, field(2, field(1, field(2, field(3, nil), varint(4, 1)))))),
		"lists deeper than anybody has":   field(8, field(1, field(2, field(1, field(2, deep))))),
		"a length beyond the end":         {2<<3 | 2, 5, 0},
		"a length without an end":         {2<<3 | 2, 0x80},
		"a number without an end":         {10 << 3, 0x80},
		"a double that is cut short":      field(8, field(1, field(2, field(1, field(2, []byte{2<<3 | 1, 0}))))),
		"a value that is null":            field(8, field(1, field(2, field(1, field(2, varint(1, 0)))))),
		"half a tag":                      {0x80},
		"an unknown field of a body":      field(4, varint(9, 1)),
		"an unknown field of a header":    field(2, field(1, field(1, varint(9, 1)))),
		"an unknown field of headers":     field(2, varint(9, 1)),
		"an unknown field of a list":      field(2, field(1, varint(9, 1))),
		"an unknown field of trailers":    field(7, varint(9, 1)),
		"an unknown field of a mode":      field(11, varint(9, 1)),
		"an unknown field of metadata":    field(8, varint(9, 1)),
		"an unknown field of an entry":    field(8, field(1, varint(9, 1))),
		"an unknown field of an Any":      field(8, field(2, field(2, varint(9, 1)))),
		"an unknown field of a struct":    field(8, field(1, field(2, varint(9, 1)))),
		"an unknown field of a value":     field(8, field(1, field(2, field(1, field(2, varint(9, 1)))))),
		"an unknown field of a list's":    field(8, field(1, field(2, field(1, field(2, field(6, varint(9, 1))))))),
		"two drains of a body, one known": field(5, varint(5, 1)),
	} {
		var m extprocv3.ProcessingRequest
		if Read(slices.Clone(b), &m) {
			t.Errorf("%s was read: %v", name, &m)
		}
		checkAlike(t, b)
	}
}

// checkAlike checks that the codec gives b the meaning of the generated code, except for the skipped metadata.
func checkAlike(t testing.TB, b []byte) {
	t.Helper()
	var got, want extprocv3.ProcessingRequest
	wantErr := proto.Unmarshal(b, &want)
	err := New().Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, &got)
	late(&got, &want)
	if (err == nil) != (wantErr == nil) && !(err == nil && lateKind(&got)) {
		t.Fatalf("%x: %v, the generated code %v", b, err, wantErr)
	}
	if err == nil && wantErr == nil && !proto.Equal(&got, &want) {
		t.Fatalf("%x:\n got %v\nwant %v", b, &got, &want)
	}
}

// Every truncation and every changed byte of every message has the same meaning as in the generated code.
func TestReadDamaged(t *testing.T) {
	for _, m := range messages(t) {
		b := asEnvoy(t, m)
		if len(b) > 1000 {
			continue
		}
		for n := range b {
			checkAlike(t, b[:n])
			for _, change := range []byte{0x01, 0x02, 0x08, 0x10, 0x80, 0xff} {
				changed := slices.Clone(b)
				changed[n] ^= change
				checkAlike(t, changed)
			}
		}
	}
}

// FuzzRead: any bytes have the same meaning as in the generated code.
func FuzzRead(f *testing.F) {
	for _, m := range messages(f) {
		f.Add(asEnvoy(f, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkAlike(t, b) })
}

// A message outlives its buffers, which gRPC reuses.
func TestReadOwnsItsBytes(t *testing.T) {
	for name, want := range messages(t) {
		b := asEnvoy(t, want)
		var got extprocv3.ProcessingRequest
		half := len(b) / 2
		if err := New().Unmarshal(mem.BufferSlice{mem.SliceBuffer(b[:half]), mem.SliceBuffer(b[half:])}, &got); err != nil {
			t.Fatal(err)
		}
		for i := range b {
			b[i] = 0xaa
		}
		if late(&got, want); !proto.Equal(&got, want) {
			t.Errorf("%s has changed with the buffer: %v", name, &got)
		}
	}
}

// The body of a response has no spare capacity: an append to it changes nothing else. The body of a request, which is
// kept, has all the memory of its message, with the metadata, so that its holder can account for it.
func TestRoomBehindBodies(t *testing.T) {
	for _, request := range []bool{true, false} {
		body := &extprocv3.HttpBody{Body: []byte("abc")}
		m := &extprocv3.ProcessingRequest{
			Request: &extprocv3.ProcessingRequest_ResponseBody{ResponseBody: body},
			MetadataContext: &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{
				"a": {TypeUrl: "type.googleapis.com/a", Value: make([]byte, 5000)},
			}},
		}
		if request {
			m.Request = &extprocv3.ProcessingRequest_RequestBody{RequestBody: body}
		}
		var got extprocv3.ProcessingRequest
		if !Read(asEnvoy(t, m), &got) {
			t.Fatal("not read")
		}
		b := append(got.GetRequestBody().GetBody(), got.GetResponseBody().GetBody()...)
		if string(b) != "abc" {
			t.Errorf("body %q", b)
		}
		room := cap(got.GetRequestBody().GetBody()) + cap(got.GetResponseBody().GetBody())
		if request && room < 5000 || !request && room != 3 {
			t.Errorf("request %t: a body of 3 bytes with room for %d", request, room)
		}
		if v := got.GetMetadataContext().GetTypedFilterMetadata()["a"].GetValue(); cap(v) != len(v) {
			t.Errorf("metadata of %d bytes has room for %d", len(v), cap(v))
		}
	}
}

// A chunk is encoded like the generated code's.
func TestChunks(t *testing.T) {
	for _, size := range []int{0, 1, 100, 110, 120, 126, 127, 128, 300, 16_370, 16_383, 16_384, 64 << 10} {
		for _, end := range []bool{false, true} {
			body := bytes.Repeat([]byte("x"), size)
			streamed := &extprocv3.BodyResponse{Response: &extprocv3.CommonResponse{BodyMutation: &extprocv3.BodyMutation{
				Mutation: &extprocv3.BodyMutation_StreamedResponse{
					StreamedResponse: &extprocv3.StreamedBodyResponse{Body: slices.Clone(body), EndOfStream: end},
				},
			}}}
			request := &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestBody{RequestBody: streamed}}
			response := &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_ResponseBody{ResponseBody: streamed}}
			gotRequest, gotResponse := RequestChunk(body, end), ResponseChunk(body, end)
			clear(body) // its buffer is reused
			if got := sent(t, gotRequest); !proto.Equal(got, request) {
				t.Errorf("%d bytes of a request, end %v: %.300v", size, end, got)
			}
			if got := sent(t, gotResponse); !proto.Equal(got, response) {
				t.Errorf("%d bytes of a response, end %v: %.300v", size, end, got)
			}
		}
	}
}

// gRPC's own codec handles other messages, and replies that were not encoded before.
func TestOtherMessages(t *testing.T) {
	c := New()
	want := &structpb.Value{Kind: &structpb.Value_NumberValue{NumberValue: math.Pi}}
	data, err := c.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got structpb.Value
	if err := c.Unmarshal(data, &got); err != nil || !proto.Equal(&got, want) {
		t.Errorf("%v, %v", &got, err)
	}
	if _, err := c.Marshal("no message"); err == nil {
		t.Error("a string was encoded")
	}
}

func BenchmarkRead(b *testing.B) {
	all := messages(b)
	for _, name := range []string{"request headers", "response trailers", "response body"} {
		message := asEnvoy(b, all[name])
		for _, way := range []struct {
			name string
			read func(*extprocv3.ProcessingRequest) error
		}{
			{"generated", func(m *extprocv3.ProcessingRequest) error { return proto.Unmarshal(message, m) }},
			{"codec", func(m *extprocv3.ProcessingRequest) error {
				return New().Unmarshal(mem.BufferSlice{mem.SliceBuffer(message)}, m)
			}},
		} {
			b.Run(name+"/"+way.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := way.read(&extprocv3.ProcessingRequest{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// The package has at most 600 lines of code: a larger one should be generated (ADR 0128).
func TestAtMost600Lines(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				n++
			}
		}
	}
	if n == 0 || n > 600 {
		t.Errorf("%d lines of code", n)
	}
}
