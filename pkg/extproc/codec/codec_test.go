package codec

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	aiv3 "github.com/envoyproxy/go-control-plane/envoy/data/ai/v3"
	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// messages are what Envoy sends: every kind, with every field that it fills.
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

// Every kind of message that Envoy sends is read here, and means the same.
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

// late takes out of bodies and trailers the metadata that is not read there, if it comes behind them, as Envoy has it.
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

// The filters' structs are read with headers only.
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

// checkAlike checks that the codec takes b for what the generated code takes it for, but for the metadata that is not read.
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

// Every truncation of every message, and every byte of it changed, means what it means to the generated code.
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

// FuzzRead: any bytes mean what they mean to the generated code.
func FuzzRead(f *testing.F) {
	for _, m := range messages(f) {
		f.Add(asEnvoy(f, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkAlike(t, b) })
}

// A message outlives the buffers that it came in, which gRPC uses again.
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

// The body of a response has no room behind it: a caller that appends to it changes nothing else. That of a request, which is
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

// Two replies with parts of their own, made of a shared one whose bytes have room behind them, have nothing in common.
func TestMergedApart(t *testing.T) {
	b := marshal(t, replies()["destination"])
	shared := ofBytes(append(make([]byte, 0, 2*len(b)), b...))
	own := func(n time.Duration) *extprocv3.ProcessingResponse {
		return &extprocv3.ProcessingResponse{OverrideMessageTimeout: durationpb.New(n * time.Second)}
	}
	id := func(value string) *Metadata { m := &Metadata{}; m.String("id", value); return m }
	first, named := Merged(shared, own(1)), WithMetadata(shared, "weir", id("1"))
	Merged(shared, own(2))
	WithMetadata(shared, "weir", id("2"))
	if got := sent(t, first).GetOverrideMessageTimeout().GetSeconds(); got != 1 {
		t.Errorf("the first timeout has become %d", got)
	}
	if got := sent(t, named).GetDynamicMetadata().GetFields()["weir"].GetStructValue().GetFields()["id"].GetStringValue(); got != "1" {
		t.Errorf("the first ID has become %q", got)
	}
}

// A reply with fields and unknown ones beside them is no encoded one.
func TestReplyWithUnknownFields(t *testing.T) {
	r := &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestBody{RequestBody: &extprocv3.BodyResponse{}}}
	r.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
	if got := sent(t, r); !proto.Equal(got, r) {
		t.Errorf("sent as %v", got)
	}
}

// A chunk is encoded as the generated code has it.
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
			clear(body) // its buffer is used again
			if got := sent(t, gotRequest); !proto.Equal(got, request) {
				t.Errorf("%d bytes of a request, end %v: %.300v", size, end, got)
			}
			if got := sent(t, gotResponse); !proto.Equal(got, response) {
				t.Errorf("%d bytes of a response, end %v: %.300v", size, end, got)
			}
		}
	}
}

// usages are what Envoy packs of an answer, and other messages.
func usages(t testing.TB) map[string]*anypb.Any {
	t.Helper()
	number := wrapperspb.UInt64
	all := map[string]*anypb.Any{}
	for name, m := range map[string]proto.Message{
		"nothing": &aiv3.TokenUsage{},
		"everything": &aiv3.TokenUsage{
			LlmProtocol: 2, Model: "m", InputTokens: number(1), OutputTokens: number(1 << 40), TotalTokens: number(0),
			InputTokenDetails:   &aiv3.InputTokenDetails{CachedTokens: number(4), CacheCreationTokens: number(5), ToolUseTokens: number(6)},
			OutputTokenDetails:  &aiv3.OutputTokenDetails{ReasoningTokens: number(7)},
			ProviderTotalTokens: number(8), ExtractionStatus: aiv3.TokenUsage_PARTIAL,
		},
		"empty details":   &aiv3.TokenUsage{InputTokenDetails: &aiv3.InputTokenDetails{}},
		"another message": &aiv3.RequestInfo{Model: "m"},
	} {
		packed, err := anypb.New(m)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = packed
	}
	return all
}

// checkUsageAlike checks that usage is read as the generated code reads it.
func checkUsageAlike(t testing.TB, packed *anypb.Any) {
	t.Helper()
	got, err := ReadUsage(packed)
	var want aiv3.TokenUsage
	wantErr := packed.UnmarshalTo(&want)
	if (err == nil) != (wantErr == nil) || err == nil && !proto.Equal(got, &want) {
		t.Fatalf("%v:\n got %v, %v\nwant %v, %v", packed, got, err, &want, wantErr)
	}
}

// The usage that Envoy packs is read, whole or damaged, as the generated code reads it.
func TestReadUsage(t *testing.T) {
	for name, packed := range usages(t) {
		if whole := readUsage(packed.GetValue(), &aiv3.TokenUsage{}); !whole && name != "another message" {
			t.Errorf("%s: read: %v", name, whole)
		}
		checkUsageAlike(t, packed)
		for n := range packed.Value {
			checkUsageAlike(t, &anypb.Any{TypeUrl: packed.TypeUrl, Value: packed.Value[:n]})
			for _, change := range []byte{0x01, 0x02, 0x08, 0x10, 0x80, 0xff} {
				changed := slices.Clone(packed.Value)
				changed[n] ^= change
				checkUsageAlike(t, &anypb.Any{TypeUrl: packed.TypeUrl, Value: changed})
			}
		}
		checkUsageAlike(t, &anypb.Any{TypeUrl: packed.TypeUrl, Value: slices.Concat(packed.Value, packed.Value)})
		checkUsageAlike(t, &anypb.Any{TypeUrl: "/envoy.data.ai.v3.TokenUsage", Value: packed.Value})
	}
	checkUsageAlike(t, nil)
	for _, detailed := range []*aiv3.TokenUsage{
		{InputTokenDetails: &aiv3.InputTokenDetails{CachedTokens: wrapperspb.UInt64(1)}},
		{OutputTokenDetails: &aiv3.OutputTokenDetails{ReasoningTokens: wrapperspb.UInt64(1)}},
	} { // details that come twice are merged
		empty := &aiv3.TokenUsage{InputTokenDetails: &aiv3.InputTokenDetails{}, OutputTokenDetails: &aiv3.OutputTokenDetails{}}
		checkUsageAlike(t, &anypb.Any{TypeUrl: usageURL, Value: slices.Concat(marshal(t, detailed), marshal(t, empty))})
	}
}

// FuzzReadUsage: any bytes are the usage that the generated code reads.
func FuzzReadUsage(f *testing.F) {
	for _, packed := range usages(f) {
		f.Add(packed.Value)
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkUsageAlike(t, &anypb.Any{TypeUrl: usageURL, Value: b}) })
}

// Other messages, and replies that were not encoded before, are gRPC's own codec's.
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

// sent returns what Envoy gets of a reply, by this codec and by the generated code.
func sent(t *testing.T, r *extprocv3.ProcessingResponse) *extprocv3.ProcessingResponse {
	t.Helper()
	data, err := New().Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var here, there extprocv3.ProcessingResponse
	if err := errors.Join(proto.Unmarshal(data.Materialize(), &here), proto.Unmarshal(marshal(t, r), &there)); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(&here, &there) {
		t.Errorf("sent as %v, by the generated code as %v", &here, &there)
	}
	return &here
}

// replies are what Weir sends.
func replies() map[string]*extprocv3.ProcessingResponse {
	set := func(name, value string) *corev3.HeaderValueOption {
		return &corev3.HeaderValueOption{Header: &corev3.HeaderValue{Key: name, RawValue: []byte(value)}}
	}
	headers := func(c *extprocv3.CommonResponse) *extprocv3.ProcessingResponse {
		return &extprocv3.ProcessingResponse{
			Response: &extprocv3.ProcessingResponse_RequestHeaders{RequestHeaders: &extprocv3.HeadersResponse{Response: c}},
		}
	}
	destination := headers(&extprocv3.CommonResponse{ClearRouteCache: true, HeaderMutation: &extprocv3.HeaderMutation{
		SetHeaders: []*corev3.HeaderValueOption{set("destination", "10.0.0.1:8000")}, RemoveHeaders: []string{"a", "b"},
	}})
	destination.ModeOverride = &modev3.ProcessingMode{ResponseHeaderMode: modev3.ProcessingMode_SEND}
	destination.DynamicMetadata = &structpb.Struct{Fields: map[string]*structpb.Value{"envoy.lb": structpb.NewStringValue("x")}}
	own := headers(&extprocv3.CommonResponse{
		HeaderMutation: &extprocv3.HeaderMutation{
			SetHeaders: []*corev3.HeaderValueOption{set("traceparent", "00")}, RemoveHeaders: []string{"c"},
		},
		BodyMutation: &extprocv3.BodyMutation{Mutation: &extprocv3.BodyMutation_Body{Body: []byte("{}")}},
	})
	own.DynamicMetadata = &structpb.Struct{Fields: map[string]*structpb.Value{"weir": structpb.NewBoolValue(true)}}
	return map[string]*extprocv3.ProcessingResponse{
		"nothing": {}, "destination": destination, "own": own,
		"empty":   {Response: &extprocv3.ProcessingResponse_RequestHeaders{RequestHeaders: &extprocv3.HeadersResponse{}}},
		"timeout": {OverrideMessageTimeout: durationpb.New(time.Minute)},
	}
}

// A reply that was encoded before is sent as it was, by this codec and by any other.
func TestEncoded(t *testing.T) {
	for name, want := range replies() {
		if got := sent(t, want); !proto.Equal(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", name, got, want)
		}
		if got := sent(t, Encoded(want)); !proto.Equal(got, want) {
			t.Errorf("%s, encoded:\n got %v\nwant %v", name, got, want)
		}
	}
}

// A shared reply with a part of its own is sent as the two merged, and stays as it was.
func TestMerged(t *testing.T) {
	for sharedName, s := range replies() {
		shared := Encoded(s)
		for ownName, own := range replies() {
			want := proto.CloneOf(s)
			proto.Merge(want, own)
			if got := sent(t, Merged(shared, own)); !proto.Equal(got, want) {
				t.Errorf("%s with %s:\n got %v\nwant %v", sharedName, ownName, got, want)
			}
		}
		for _, value := range []string{"", "1-2", strings.Repeat("x", 127), strings.Repeat("x", 200), strings.Repeat("x", 20_000)} {
			own := &extprocv3.ProcessingResponse{DynamicMetadata: &structpb.Struct{Fields: map[string]*structpb.Value{
				"weir": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
					"id": structpb.NewStringValue(value), value: structpb.NewStringValue("x"), "wait": structpb.NewNumberValue(float64(len(value)) / 3),
					"yes": structpb.NewBoolValue(true), "no": structpb.NewBoolValue(false),
				}}),
			}}}
			var m Metadata
			m.String("id", value)
			m.String(value, "x")
			m.Number("wait", float64(len(value))/3)
			m.Bool("yes", true)
			m.Bool("no", false)
			want := proto.CloneOf(s)
			proto.Merge(want, own)
			if got := sent(t, WithMetadata(shared, "weir", &m)); !proto.Equal(got, want) {
				t.Errorf("%s with metadata:\n got %v\nwant %v", sharedName, got, want)
			}
		}
		if got := sent(t, shared); !proto.Equal(got, s) {
			t.Errorf("%s has changed to %v", sharedName, got)
		}
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

// The package has at most 600 lines of code: with more it would want to be generated (ADR 0128).
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
