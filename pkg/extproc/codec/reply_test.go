package codec

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	modev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// Two replies with their own parts share no memory, even if the shared bytes have spare capacity.
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

// A reply with other or unknown fields is not an encoded one.
func TestReplyWithUnknownFields(t *testing.T) {
	r := &extprocv3.ProcessingResponse{Response: &extprocv3.ProcessingResponse_RequestBody{RequestBody: &extprocv3.BodyResponse{}}}
	r.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
	if got := sent(t, r); !proto.Equal(got, r) {
		t.Errorf("sent as %v", got)
	}
}

// sent returns Envoy's view of a reply, by this codec and by the generated code.
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

// replies are Weir's replies.
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

// Any codec sends an encoded reply unchanged.
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

// A shared reply with an own part is sent as the two merged, and stays unchanged.
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
