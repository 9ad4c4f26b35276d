package codec

import (
	"slices"
	"testing"

	aiv3 "github.com/envoyproxy/go-control-plane/envoy/data/ai/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// usages are Envoy's packed usages of answers, and other messages.
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

// checkUsageAlike checks that the codec reads usage like the generated code.
func checkUsageAlike(t testing.TB, packed *anypb.Any) {
	t.Helper()
	got, err := ReadUsage(packed)
	var want aiv3.TokenUsage
	wantErr := packed.UnmarshalTo(&want)
	if (err == nil) != (wantErr == nil) || err == nil && !proto.Equal(got, &want) {
		t.Fatalf("%v:\n got %v, %v\nwant %v, %v", packed, got, err, &want, wantErr)
	}
}

// The codec reads Envoy's packed usage, whole or damaged, like the generated code.
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

// FuzzReadUsage: any bytes give the same usage as in the generated code.
func FuzzReadUsage(f *testing.F) {
	for _, packed := range usages(f) {
		f.Add(packed.Value)
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkUsageAlike(t, &anypb.Any{TypeUrl: usageURL, Value: b}) })
}
